"""Predictions of all queries in one pool against true pairs: µAP and its companions, as the ISC 2021 metrics have them.

Order: falling score, and among equal scores wrong ones first (the worst case). Recall rises at true pairs only, so all
that is needed is, at the score of each true pair that was predicted, how many predictions score as much. Hence blocks
of predictions stream by twice: `found_scores` collects those scores, `AtLeast` counts. Counts are integers, so how
predictions are cut and in which order blocks come changes nothing. A true pair that nobody predicted counts in recall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.partials import ArrayFields, Rows

PRECISIONS = (0.90, 0.95, 0.99)
CURVE_POINTS = 5_000


@dataclass(frozen=True)
class Predictions:
    """A block of predictions; a higher score is closer. No (query, reference) may come twice, in any of the blocks."""

    query: NDArray[np.int64]
    reference: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True)
class TruePairs:
    """The (query, reference) pairs that match, by query, then reference."""

    query: NDArray[np.int64]
    reference: NDArray[np.int64]

    @classmethod
    def of(cls, query: NDArray[np.int64], reference: NDArray[np.int64]) -> Self:
        """From pairs in any order; a pair that comes twice is an error."""
        order = np.lexsort((reference, query))
        query, reference = query[order].astype(np.int64), reference[order].astype(np.int64)
        if np.any((query[1:] == query[:-1]) & (reference[1:] == reference[:-1])):
            raise ValueError("a true pair comes twice")
        return cls(query, reference)

    def __len__(self) -> int:
        return len(self.query)

    def places(self, query: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each pair among these, -1 where it is none of them.

        >>> TruePairs.of(np.array([5, 0]), np.array([1, 7])).places(np.array([5, 5, 0]), np.array([1, 7, 7])).tolist()
        [1, -1, 0]
        """
        places = np.full(len(query), -1, np.int64)
        if not len(self) or not len(query):
            return places
        beyond = int(self.reference.max()) + 1
        asked = np.flatnonzero(_among(query, self.query) & (reference < beyond))  # a table is faster than a search
        keys = self.query * beyond + self.reference
        wanted = query[asked].astype(np.int64) * beyond + reference[asked]
        nearest = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        hit = keys[nearest] == wanted
        places[asked[hit]] = nearest[hit]
        return places


def _among(query: NDArray[Any], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    last = int(known.max())
    table = np.zeros(last + 2, np.bool_)
    table[known] = True
    flags: NDArray[np.bool_] = table[np.minimum(query, last + 1)]
    return flags


def found_scores(truth: TruePairs, predictions: Predictions) -> Rows:
    """Scores of the true pairs that are predicted: `index` is the place in `truth`. Merge those of all blocks.

    A true pair that is predicted twice is an error, in one block or between blocks.
    """
    places = truth.places(predictions.query, predictions.reference)
    hit = places >= 0
    return Rows.of(places[hit], predictions.score[hit].astype(np.float64))


@dataclass(frozen=True)
class AtLeast(ArrayFields):
    """How many predictions score at least as much as each found pair: of all queries, and of the pair's own query.

    Merging adds. `pool` is by distinct score (rising), `own` by found pair.
    """

    pool: NDArray[np.int64]
    own: NDArray[np.int64]

    @classmethod
    def of(cls, truth: TruePairs, found: Rows, predictions: Predictions) -> Self:
        """The counts of one block."""
        levels = np.unique(found.values)
        if np.isnan(predictions.score).any():
            raise ValueError("a score is NaN")
        scores = np.sort(predictions.score)
        pool = len(scores) - np.searchsorted(scores, levels)
        return cls(pool.astype(np.int64), _at_least_in_query(truth.query[found.index], found.values, predictions))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        return cls(np.sum([part.pool for part in parts], axis=0), np.sum([part.own for part in parts], axis=0))


def _at_least_in_query(
    query: NDArray[np.int64], score: NDArray[np.float64], predictions: Predictions
) -> NDArray[np.int64]:
    """For each pair the predictions of its query with at least its score. `query` rises (not strictly)."""
    counts = np.zeros(len(query), np.int64)
    if not len(query):
        return counts
    queries, slot = np.unique(query, return_inverse=True)
    lowest = np.full(len(queries), np.inf)
    np.minimum.at(lowest, slot, score)
    slots = np.full(int(queries[-1]) + 2, -1, np.int64)
    slots[queries] = np.arange(len(queries))
    theirs = slots[np.minimum(predictions.query, queries[-1] + 1)]
    asked = np.flatnonzero(theirs >= 0)
    asked = asked[predictions.score[asked] >= lowest[theirs[asked]]]
    theirs = theirs[asked]
    # Of a query with one found pair, all that are left here count for it; only the others need a search.
    pairs = np.bincount(slot, minlength=len(queries))
    single = pairs[slot] == 1
    counts[single] = np.bincount(theirs, minlength=len(queries))[slot[single]]
    if not single.all():
        several = pairs[theirs] > 1
        counts[~single] = _counted_by_search(
            slot[~single], score[~single], theirs[several], predictions.score[asked[several]]
        )
    return counts


def _counted_by_search(
    slot: NDArray[np.int64], score: NDArray[np.float64], theirs: NDArray[np.int64], scores: NDArray[Any]
) -> NDArray[np.int64]:
    """For each (slot, score) the predictions of that slot with at least that score; all their slots are there."""
    levels = np.unique(score)
    order = np.lexsort((score, slot))
    keys = slot[order] * len(levels) + np.searchsorted(levels, score[order])  # by slot, then score
    wanted = theirs * len(levels) + np.searchsorted(levels, scores, side="right") - 1
    reached = np.bincount(np.searchsorted(keys, wanted, side="right") - 1, minlength=len(keys))
    upwards = np.cumsum(reached[::-1])[::-1]
    last = np.searchsorted(slot[order], slot[order], side="right") - 1
    counts = np.empty(len(slot), np.int64)
    counts[order] = upwards - upwards[last] + reached[last]
    return counts


@dataclass(frozen=True)
class OperatingPoint:
    """The highest recall with at least this precision, and the score from which on it is reached (None: never)."""

    precision: float
    recall: float
    threshold: float | None


@dataclass(frozen=True)
class PooledFigures:
    """What one list of predictions is worth; nan where there are no true pairs."""

    micro_ap: float
    accuracy_at_1: float
    recall_at_10: float
    at_precision: tuple[OperatingPoint, ...]


@dataclass(frozen=True)
class PooledCurve:
    """Points of the precision-recall curve, each at a found true pair; `rank` counts from 1."""

    rank: NDArray[np.int64]
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    score: NDArray[np.float64]

    def thinned(self, most: int = CURVE_POINTS) -> PooledCurve:
        """At most about `most` points, evenly by recall, the first and the last among them."""
        chosen = np.unique(np.linspace(0, max(len(self.rank) - 1, 0), most).astype(np.int64))[: len(self.rank)]
        return PooledCurve(self.rank[chosen], self.recall[chosen], self.precision[chosen], self.score[chosen])


def pooled_curve(truth: TruePairs, found: Rows, counts: AtLeast) -> PooledCurve:
    """The point at every found pair, by falling score: of equal ones the wrong stand first, then each true one."""
    levels, level = np.unique(found.values, return_inverse=True)
    order = np.argsort(-level, kind="stable")
    tied = np.bincount(level, minlength=len(levels))
    wrong = counts.pool - np.cumsum(tied[::-1])[::-1]  # by level: wrong ones with at least its score
    ranked = np.arange(1, len(order) + 1)
    rank = ranked + wrong[level[order]]
    return PooledCurve(rank, ranked / max(len(truth), 1), ranked / rank, found.values[order])


def measure(truth: TruePairs, found: Rows, counts: AtLeast, precisions: Sequence[float] = PRECISIONS) -> PooledFigures:
    """The figures, from what all blocks together gave."""
    if not len(truth):
        nan = float("nan")
        return PooledFigures(nan, nan, nan, tuple(OperatingPoint(least, nan, None) for least in precisions))
    points = pooled_curve(truth, found, counts)
    return PooledFigures(
        micro_ap=float(points.precision.sum() / len(truth)),
        accuracy_at_1=int((counts.own == 1).sum()) / len(truth),
        recall_at_10=int((counts.own <= 10).sum()) / len(truth),
        at_precision=tuple(operating_point(points, least) for least in precisions),
    )


def operating_point(points: PooledCurve, precision: float) -> OperatingPoint:
    """The last point with at least this precision. Between true pairs precision only falls: no other item can be one.

    >>> one = PooledCurve(np.array([1, 4]), np.array([0.5, 1.0]), np.array([1.0, 0.5]), np.array([0.9, 0.2]))
    >>> operating_point(one, 0.9)
    OperatingPoint(precision=0.9, recall=0.5, threshold=0.9)
    """
    good = np.flatnonzero(points.precision >= precision)
    if not len(good):
        return OperatingPoint(precision, 0.0, None)
    return OperatingPoint(precision, float(points.recall[good[-1]]), float(points.score[good[-1]]))


Blocks = Callable[[], Iterable[Predictions]]  # gives the same blocks each time it is called


def count_blocks(truth: TruePairs, blocks: Blocks) -> tuple[Rows, AtLeast]:
    """Found scores and counts of predictions that come in blocks, of which one at a time is held."""
    none = Predictions(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    found = Rows.merged([found_scores(truth, none), *(found_scores(truth, block) for block in blocks())])
    counts = AtLeast.of(truth, found, none)
    for block in blocks():
        counts = AtLeast.merged([counts, AtLeast.of(truth, found, block)])
    return found, counts


def score_pooled(truth: TruePairs, predictions: Predictions, precisions: Sequence[float] = PRECISIONS) -> PooledFigures:
    """The figures of predictions that are all there."""
    found, counts = count_blocks(truth, lambda: [predictions])
    return measure(truth, found, counts, precisions)
