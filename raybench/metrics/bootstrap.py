"""Confidence intervals of pooled figures by drawing queries, not predictions, with replacement.

A query that is drawn twice brings its predictions and its true pairs twice, and copies of equal score follow the tie
rule (wrong first). Draws depend on the seed and the number of queries alone, so two runs over the same queries are
drawn alike, and the differences of their draws are those of a paired test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.micro_ap import PRECISIONS, Blocks, TruePairs

RESAMPLES = 1_000
CONFIDENCE = 0.95
COUNTED = 2**18  # predictions at once


@dataclass(frozen=True)
class Interval:
    """Where a figure lies in the middle share of the draws; None for an end that does not exist (no threshold)."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class PooledDraws:
    """The figures of every draw; nan where none of the drawn queries has a true pair.

    A threshold is inf where no score is precise enough.
    """

    micro_ap: NDArray[np.float64]  # (draws,)
    recall: NDArray[np.float64]  # (draws, precisions)
    threshold: NDArray[np.float64]  # (draws, precisions)


def pooled_draws(
    truth: TruePairs,
    blocks: Blocks,
    queries: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PooledDraws:
    """Figures of `resamples` draws of `queries` queries, which are numbered from 0; some may have no prediction."""
    found = _found(truth, blocks)
    wrong, ahead = _wrong(truth, blocks, found)
    random = np.random.default_rng(seed)
    micro_ap = np.full(resamples, np.nan)
    recall, threshold = (np.full((resamples, len(PRECISIONS)), np.nan) for _ in range(2))
    for draw in range(resamples):
        times = np.bincount(random.integers(0, queries, queries), minlength=queries)
        pairs = int(times[truth.query].sum())
        if pairs:
            precision, score = _points(times, found, _weights(times, wrong, ahead))
            micro_ap[draw] = precision.sum() / pairs
            for column, least in enumerate(PRECISIONS):
                good = np.flatnonzero(precision >= least)
                recall[draw, column] = (good[-1] + 1) / pairs if len(good) else 0.0
                threshold[draw, column] = score[good[-1]] if len(good) else np.inf
    return PooledDraws(micro_ap, recall, threshold)


QueryScores = tuple[NDArray[np.int64], NDArray[np.float64]]


def _found(truth: TruePairs, blocks: Blocks) -> QueryScores:
    """Query and score of the true pairs that are predicted, by falling score."""
    query, score = [np.zeros(0, np.int64)], [np.zeros(0)]
    for block in blocks():
        hit = truth.places(block.query, block.reference) >= 0
        query.append(block.query[hit].astype(np.int64))
        score.append(block.score[hit].astype(np.float64))
    queries, scores = np.concatenate(query), np.concatenate(score)
    order = np.argsort(-scores, kind="stable")
    return queries[order], scores[order]


def _wrong(truth: TruePairs, blocks: Blocks, found: QueryScores) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Queries of the wrong predictions by falling score, and how many of them score as much as each found pair.

    Those below every found pair are left out, and the order between two found pairs is left open: neither counts.
    """
    levels = np.unique(found[1])
    query, level = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block in blocks():
        reached = np.searchsorted(levels, block.score, side="right") - 1  # the highest level with at most its score
        chosen = (reached >= 0) & (truth.places(block.query, block.reference) < 0)
        query.append(block.query[chosen].astype(np.int32))
        level.append(-reached[chosen].astype(np.int32))
    falling = np.concatenate(level)
    order = np.argsort(falling, kind="stable")
    ahead = np.searchsorted(falling[order], -np.searchsorted(levels, found[1]), side="right")
    return np.concatenate(query)[order], ahead


def _weights(times: NDArray[np.int64], wrong: NDArray[np.int32], ahead: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many wrong predictions stand ahead of each found pair where each query counts so many times."""
    weights = np.zeros(len(ahead), np.int64)
    total, first = np.int64(0), int(np.searchsorted(ahead, 0, side="right"))
    for start in range(0, int(ahead[-1]) if len(ahead) else 0, COUNTED):
        sums = np.cumsum(times[wrong[start : start + COUNTED]])
        last = int(np.searchsorted(ahead, start + len(sums), side="right"))
        weights[first:last] = total + sums[ahead[first:last] - start - 1]
        total, first = total + sums[-1], last
    return weights


def _points(
    times: NDArray[np.int64], found: QueryScores, weights: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and score at each copy of a found pair, where each query counts so many times."""
    copies = times[found[0]]
    rank = np.arange(1, int(copies.sum()) + 1)
    return rank / (rank + np.repeat(weights, copies)), np.repeat(found[1], copies)


def interval(draws: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """The middle share of the draws, nan ones aside; ends are draws themselves, as many beyond one as beyond the other.

    >>> interval(np.arange(1000.0), 0.95)
    Interval(low=25.0, high=974.0)
    """
    there = np.sort(draws[~np.isnan(draws)])
    if not len(there):
        return Interval(None, None)
    beyond = int(round((1 - confidence) / 2 * len(there), 9))
    low, high = (float(end) if np.isfinite(end) else None for end in (there[beyond], there[len(there) - 1 - beyond]))
    return Interval(low, high)
