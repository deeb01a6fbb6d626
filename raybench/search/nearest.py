"""The k nearest references of queries, by (distance, place), and all pairs within limits: exact, whoever proposes.

A proposer names every reference that its bound leaves in question; the row-wise float64 routine decides. So results
are equal to the byte for every tile, shard, library and device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.partials import NO_REFERENCE
from raybench.search.by_numpy import ByNumpy
from raybench.search.distances import RowPairs, as_compared, measured
from raybench.search.proposers import Proposer, Unsettled


@dataclass(frozen=True)
class Neighbours:
    """The nearest references of each query, in order of (distance, place)."""

    distance: NDArray[np.float64]  # (queries, k), rising along a row
    place: NDArray[np.int64]  # (queries, k), of the references

    @classmethod
    def unknown(cls, queries: int, k: int) -> Neighbours:
        """None yet: inf and NO_REFERENCE."""
        return cls(np.full((queries, k), np.inf), np.full((queries, k), NO_REFERENCE, np.int64))

    def fill(self, query: NDArray[np.int64], place: NDArray[np.int64], distance: NDArray[np.float64]) -> None:
        """Set the queries that come here, in order, to the first of their references by (distance, place).

        Queries of like numbers of references are sorted together, as rows: ten times as fast as one sort of all.
        """
        count = np.bincount(query, minlength=len(self.place))
        if len(query) == count.max(initial=0) * np.count_nonzero(count):
            self._keep_first(np.flatnonzero(count), distance, place)
            return
        _, size = np.frexp(count)  # padding to the longest of a size at most doubles the rest
        for like in np.unique(size[count > 0]):
            rows, own = np.flatnonzero(size == like), size[query] == like
            padded = Neighbours.unknown(len(rows), int(count[rows].max()))
            there = np.arange(padded.place.shape[1]) < count[rows, None]
            padded.distance[there], padded.place[there] = distance[own], place[own]
            self._keep_first(rows, padded.distance, padded.place)

    def _keep_first(self, rows: NDArray[np.int64], distance: NDArray[np.float64], place: NDArray[np.int64]) -> None:
        """Set rows to the first of their references, of which all have as many."""
        shape = len(rows), -1 if len(rows) else 0
        distance, place = distance.reshape(shape), place.reshape(shape)
        order = np.lexsort((place, distance), axis=1)[:, : self.place.shape[1]]
        at = rows[:, None], np.arange(order.shape[1])
        self.distance[at] = np.take_along_axis(distance, order, axis=1)
        self.place[at] = np.take_along_axis(place, order, axis=1)


def nearest(
    queries: NDArray[Any],
    references: NDArray[Any],
    k: int,
    distance: str,
    proposer: Proposer | None = None,
    places: NDArray[np.int64] | None = None,
) -> Neighbours:
    """The k nearest references of each query (all of them if there are fewer). Ties go to the lower place.

    `places` are those of the references in a larger set, all different; their rows, if not given.

    >>> nearest(np.array([[0.0]]), np.array([[2.0], [1.0], [-1.0]]), 2, "L2").place.tolist()
    [[1, 2]]
    """
    queries, references, distance = as_compared(queries, references, distance)
    known = np.arange(len(references)) if places is None else places
    found = Neighbours.unknown(len(queries), min(k, len(references)))
    for pairs, left in (proposer or ByNumpy()).near(queries, references, found.place.shape[1], distance):
        found.fill(pairs[0], known[pairs[1]], measured(queries, references, pairs, distance))
        if len(left):
            _widen(found, left, queries, references, distance, known)
    return found


def _widen(
    found: Neighbours,
    left: Unsettled,
    queries: NDArray[Any],
    references: NDArray[Any],
    distance: str,
    places: NDArray[np.int64],
) -> None:
    """Search again for queries of which too little was proposed: at least k references are as near as their last."""
    kept = _first_copies(references, places, found.place.shape[1])
    for pairs, distances in within(queries[left], references[kept], found.distance[left, -1], distance):
        found.fill(left[pairs[0]], places[kept[pairs[1]]], distances)


def _first_copies(references: NDArray[Any], places: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Rows without those of equal ones that stand behind k others: of many equal descriptors no more can be needed."""
    rows = np.ascontiguousarray(references).view(np.dtype((np.void, references[0].nbytes)))[:, 0]
    _, group = np.unique(rows, return_inverse=True)
    order = np.lexsort((places, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    turn = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return np.sort(order[turn < k])


def within(
    queries: NDArray[Any],
    references: NDArray[Any],
    limits: NDArray[np.float64],
    distance: str,
    proposer: Proposer | None = None,
) -> Iterator[tuple[RowPairs, NDArray[np.float64]]]:
    """All pairs whose distance is at most the query's limit, with their distances; whole queries at a time.

    >>> rows = np.array([[0.0], [1.0], [3.0]])
    >>> [(pairs[1].tolist(), d.tolist()) for pairs, d in within(rows[:1], rows, np.array([1.0]), "L2")]
    [([0, 1], [0.0, 1.0])]
    """
    queries, references, distance = as_compared(queries, references, distance)
    for query, reference in (proposer or ByNumpy()).within(queries, references, limits, distance):
        distances = measured(queries, references, (query, reference), distance)
        kept = distances <= limits[query]
        yield (query[kept], reference[kept]), distances[kept]
