"""Predictions of one pool as a ranking that can be drawn again: found pairs, and the wrong ones that count.

Order: falling score, and among equal scores wrong ones first, as `metrics.micro_ap` has it. Wrong ones below every
found pair are left out, since recall rises at found pairs only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.drawn_ranking import DrawnRanking
from raybench.metrics.micro_ap import Blocks, TruePairs


@dataclass(frozen=True)
class PooledItems:
    """Found pairs by falling score; the queries of wrong predictions, and how many are ahead of each found pair.

    The order of wrong predictions between two found pairs is left open: it does not count.
    """

    query: NDArray[np.int32]  # (found,)
    score: NDArray[np.float64]
    wrong: NDArray[np.int32]  # the query of each
    ahead: NDArray[np.int64]  # (found,)

    def ranking(self, queries: int) -> DrawnRanking:
        """To be drawn by query, of which there are so many."""
        return DrawnRanking.within(self.query, self.wrong, self.ahead, queries)

    def ranked(self) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """In rank order which items are found pairs, and the query of each."""
        positive = np.zeros(len(self.query) + len(self.wrong), np.bool_)
        positive[np.arange(len(self.ahead)) + self.ahead] = True
        query = np.empty(len(positive), np.int32)
        query[positive], query[~positive] = self.query, self.wrong
        return positive, query


def pooled_items(truth: TruePairs, blocks: Blocks) -> PooledItems:
    """The items of predictions that come in blocks, of which one at a time is held."""
    query, score = _found(truth, blocks)
    return PooledItems(query, score, *_wrong(truth, blocks, score))


def _found(truth: TruePairs, blocks: Blocks) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Query and score of the true pairs that are predicted, by falling score."""
    query, score = [np.zeros(0, np.int32)], [np.zeros(0)]
    for block in blocks():
        hit = truth.places(block.query, block.reference) >= 0
        query.append(block.query[hit].astype(np.int32))
        score.append(block.score[hit].astype(np.float64))
    queries, scores = np.concatenate(query), np.concatenate(score)
    order = np.lexsort((queries, -scores))  # the same in whatever order predictions come
    return queries[order], scores[order]


def _wrong(truth: TruePairs, blocks: Blocks, found: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Queries of wrong predictions by falling score, and how many of them score as much as each found pair or more."""
    levels = np.unique(found)
    query, level = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block in blocks():
        reached = np.searchsorted(levels, block.score, side="right") - 1  # the highest level with at most its score
        chosen = (reached >= 0) & (truth.places(block.query, block.reference) < 0)
        query.append(block.query[chosen].astype(np.int32))
        level.append(-reached[chosen].astype(np.int32))
    falling = np.concatenate(level)
    order = np.argsort(falling, kind="stable")
    ahead = np.searchsorted(falling[order], -np.searchsorted(levels, found), side="right")
    return np.concatenate(query)[order], ahead
