"""How many references are closer to a query than given distances, or come before its true one; without sorting.

Values of tiles propose, the row-wise float64 routine decides what lies too near a threshold, so that counts are equal
for every tile. Against thresholds "closer" is strictly closer: at equal distance the positive, which stands first,
leads. Against the true reference ties go by place, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.by_numpy import ByNumpy
from raybench.search.distances import as_compared, measured, row_distances
from raybench.search.nearest import Neighbours
from raybench.search.products import Margins
from raybench.search.value_tiles import Tile, Tiler

QUERIES_AT_ONCE = 64  # 64 x 4,096 float32 are compared thirty times: they should stay in the cache


@dataclass(frozen=True)
class BeforeTruth:
    """For each query how many references come before its true one: by place at equal distance, or in any order.

    `fewest` are strictly closer; `most` counts all others that are as near, too.
    """

    closer: NDArray[np.int64]
    fewest: NDArray[np.int64]
    most: NDArray[np.int64]

    @classmethod
    def unknown(cls, queries: int) -> BeforeTruth:
        return cls(*np.zeros((3, queries), np.int64))

    def fill(self, rows: NDArray[np.int64], other: BeforeTruth) -> None:
        """Set some queries."""
        self.closer[rows], self.fewest[rows], self.most[rows] = other.closer, other.fewest, other.most


def nearest_and_closer(
    queries: NDArray[Any],
    references: NDArray[Any],
    truth: NDArray[np.int64],
    k: int,
    distance: str,
    tiler: Tiler | None = None,
) -> tuple[Neighbours, BeforeTruth]:
    """The nearest references, and for each query how many references come before its true one.

    >>> nearest_and_closer(np.array([[0.0]]), np.array([[1.0], [1.0], [-1.0]]), np.array([1]), 1, "L2")[1]
    BeforeTruth(closer=array([1]), fewest=array([0]), most=array([2]))
    """
    queries, references, distance = as_compared(queries, references, distance)
    found = Neighbours.unknown(len(queries), min(k, len(references)))
    before = BeforeTruth.unknown(len(queries))
    for tile in (tiler or ByNumpy()).tiles(queries, references, distance):
        for pairs in tile.near(found.place.shape[1]):
            found.fill(*pairs, measured(queries, references, pairs, distance))
        listed, known = before_in_list(found.distance[tile.queries], found.place[tile.queries], truth[tile.queries])
        before.fill(np.arange(len(queries))[tile.queries], listed)
        beyond = np.flatnonzero(~known)  # only where a list does not settle it is more to count
        before.fill(tile.queries.start + beyond, _before_truth(queries, references, truth, distance, tile, beyond))
    return found, before


def before_in_list(
    distance: NDArray[np.float64], place: NDArray[np.int64], truth: NDArray[np.int64]
) -> tuple[BeforeTruth, NDArray[np.bool_]]:
    """Counts within lists of the nearest (queries, k), and whether they are all: the list goes on beyond the true one.

    Where the true one is not in its list, all counts are 0.
    """
    hits = place == truth[:, None]
    own = np.where(hits, distance, 0.0).sum(axis=1)
    there = hits.any(axis=1)
    fewest = ((distance < own[:, None]) & there[:, None]).sum(axis=1)
    most = ((distance <= own[:, None]) & there[:, None] & ~hits).sum(axis=1)
    return BeforeTruth(hits.argmax(axis=1), fewest, most), there & (distance[:, -1] > own)


def _before_truth(
    queries: NDArray[Any],
    references: NDArray[Any],
    truth: NDArray[np.int64],
    distance: str,
    tile: Tile,
    rows: NDArray[np.int64],
) -> BeforeTruth:
    """For some rows of a tile, how many come before the true one: those surely closer, and those measured so."""
    own, true = tile.queries.start + rows, truth[tile.queries][rows]
    limit = row_distances(queries[own], references[true], distance)
    low, high = _bounds(tile.margins.of(rows), limit[:, None])
    surely, (row, reference) = tile.apart(rows, low[:, 0], high[:, 0])
    distances = measured(queries, references, (own[row], reference), distance)
    nearer, equal = distances < limit[row], distances == limit[row]
    chosen = (nearer | (equal & (reference < true[row])), nearer, nearer | (equal & (reference != true[row])))
    return BeforeTruth(*(surely + np.bincount(row[before], minlength=len(rows)) for before in chosen))


@dataclass(frozen=True)
class CloserCounts:
    """(queries, thresholds, cuts): references that are closer to the query than the threshold, and as near as it."""

    closer: NDArray[np.int64]
    equal: NDArray[np.int64]


def closer_counts(
    queries: NDArray[Any],
    references: NDArray[Any],
    thresholds: NDArray[np.float64],
    cuts: NDArray[np.int64],
    groups: tuple[NDArray[np.int32], NDArray[np.int32]],
    distance: str,
    tiler: Tiler | None = None,
) -> CloserCounts:
    """How many of the first `cuts` references are closer to the query than each threshold, and how many just there.

    `thresholds` (queries, t) are distances, `cuts` (queries, k) lengths, `groups` those of queries and of references:
    a reference of the query's own group never counts. Fast where queries of one group are neighbours.

    >>> near = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> other = (np.zeros(1, np.int32), np.ones(4, np.int32))
    >>> found = closer_counts(np.array([[0.0]]), near, np.array([[2.0, 9.0]]), np.array([[1, 4]]), other, "L2")
    >>> found.closer.tolist(), found.equal.tolist()
    ([[[1, 2], [1, 4]]], [[[0, 1], [0, 0]]])
    """
    queries, references, distance = as_compared(queries, references, distance)
    closer, equal = np.zeros((2, len(queries), thresholds.shape[1], cuts.shape[1]), np.int64)
    for tile in (tiler or ByNumpy(QUERIES_AT_ONCE * len(references))).tiles(queries, references, distance):
        own, own_cuts = thresholds[tile.queries], cuts[tile.queries]
        asked = (groups[0][tile.queries], groups[1]), own_cuts
        if not tile.margins.width.any():
            closer[tile.queries], equal[tile.queries] = _counted_exactly(tile, own, *asked)
            continue
        surely, undecided = tile.closer(*_bounds(tile.margins, own), *asked)
        closer[tile.queries] = surely
        for t, row, column in undecided:
            found = row_distances(queries[tile.queries.start + row], references[column], distance)
            for counts, chosen in ((closer, found < own[row, t]), (equal, found == own[row, t])):
                at = (tile.queries.start + row[chosen], t[chosen])
                np.add.at(counts, at, column[chosen, None] < own_cuts[row[chosen]])
    return CloserCounts(closer, equal)


def _counted_exactly(
    tile: Tile,
    thresholds: NDArray[np.float64],
    groups: tuple[NDArray[np.int32], NDArray[np.int32]],
    cuts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Closer ones and equal ones where values are exact, as whole numbers: below the threshold, and up to it."""
    exact = tile.margins.at(thresholds)
    limits = np.concatenate([np.ceil(exact), np.floor(exact) + 1], axis=1).astype(np.float32)
    counts, _ = tile.closer(limits, limits, groups, cuts)
    below, up_to = np.split(counts, 2, axis=1)
    return below, up_to - below


def _bounds(margins: Margins, thresholds: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Low and high, of the thresholds' shape: values below low are surely closer, those above high surely not.

    Equal where the values are exact. What is neither, also a value that is not a number, is left to be measured.
    """
    exact = margins.at(thresholds)
    if not margins.width.any():
        whole = np.ceil(exact).astype(np.float32)  # as the values are
        return whole, whole
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = exact - margins.above[:, None], exact + margins.below[:, None]
        return low.astype(np.float32), high.astype(np.float32)
