"""How many references are closer to a query than given distances, or come before its true one; without sorting.

Values of tiles propose, the row-wise float64 routine decides what lies too near a threshold, so that counts are equal
for every tile. Against thresholds "closer" is strictly closer: at equal distance the positive, which stands first,
leads. Against the true reference ties go by place, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.by_numpy import ByNumpy, ValueTile, positions
from raybench.search.distances import as_compared, measured, row_distances
from raybench.search.nearest import Neighbours
from raybench.search.products import Margins

QUERIES_AT_ONCE = 64  # 64 x 4,096 float32 are compared thirty times: they should stay in the cache
PAIRS_AT_ONCE = 16_384  # undecided pairs that are gathered at once
WORD = 64

Words = NDArray[np.uint64]


def nearest_and_closer(
    queries: NDArray[Any],
    references: NDArray[Any],
    truth: NDArray[np.int64],
    k: int,
    distance: str,
    proposer: ByNumpy | None = None,
) -> tuple[Neighbours, NDArray[np.int64]]:
    """The nearest references, and for each query how many references come before its true one.

    >>> nearest_and_closer(np.array([[0.0]]), np.array([[2.0], [1.0], [-1.0]]), np.array([0]), 1, "L2")[1].tolist()
    [2]
    """
    queries, references, distance = as_compared(queries, references, distance)
    found = Neighbours.unknown(len(queries), min(k, len(references)))
    closer = np.zeros(len(queries), np.int64)
    for tile in (proposer or ByNumpy()).tiles(queries, references, distance):
        for pairs in tile.near(found.place.shape[1]):
            found.fill(*pairs, measured(queries, references, pairs, distance))
        hits = found.place[tile.queries] == truth[tile.queries, None]
        closer[tile.queries] = hits.argmax(axis=1)
        (beyond,) = np.nonzero(~hits.any(axis=1))  # only where the true one is not among the nearest is more to count
        closer[tile.queries.start + beyond] = _before_truth(queries, references, truth, distance, tile, beyond)
    return found, closer


def _before_truth(
    queries: NDArray[Any],
    references: NDArray[Any],
    truth: NDArray[np.int64],
    distance: str,
    tile: ValueTile,
    rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For some rows of a tile, how many come before the true one: those surely closer, and those measured so."""
    values, width = tile.values[rows], tile.margins.width[rows]
    own, true = tile.queries.start + rows, truth[tile.queries][rows]
    value = values[np.arange(len(rows)), true]
    with np.errstate(invalid="ignore", over="ignore"):  # of what overflowed everything is measured
        low, high = (value - width).astype(np.float32), (value + width).astype(np.float32)
    surely = values < low[:, None]
    row, reference = positions(~(surely | (values > high[:, None])))
    limit = row_distances(queries[own], references[true], distance)[row]
    distances = measured(queries, references, (own[row], reference), distance)
    before = (distances < limit) | ((distances == limit) & (reference < true[row]))
    counts: NDArray[np.int64] = surely.sum(axis=1) + np.bincount(row[before], minlength=len(rows))
    return counts


def closer_counts(
    queries: NDArray[Any],
    references: NDArray[Any],
    thresholds: NDArray[np.float64],
    cuts: NDArray[np.int64],
    groups: tuple[NDArray[np.int32], NDArray[np.int32]],
    distance: str,
) -> NDArray[np.int64]:
    """(queries, thresholds, cuts): how many of the first `cuts` references are closer to the query than the threshold.

    `thresholds` (queries, t) are distances, `cuts` (queries, k) lengths, `groups` those of queries and of references:
    a reference of the query's own group never counts. Fast where queries of one group are neighbours.

    >>> near = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> other = (np.zeros(1, np.int32), np.ones(4, np.int32))
    >>> closer_counts(np.array([[0.0]]), near, np.array([[2.0, 9.0]]), np.array([[1, 4]]), other, "L2").tolist()
    [[[1, 2], [1, 4]]]
    """
    queries, references, distance = as_compared(queries, references, distance)
    counts = np.empty((len(queries), thresholds.shape[1], cuts.shape[1]), np.int64)
    for tile in ByNumpy(QUERIES_AT_ONCE * len(references)).tiles(queries, references, distance):
        start = tile.queries.start
        low, high = _bounds(tile.margins, thresholds[tile.queries])
        usable = _others(groups[0][tile.queries], groups[1])
        closer = _packed(np.less, tile.values, low) & usable
        if (low != high).any():
            farther = _packed(np.greater, tile.values, high)
            for t, row, column in _listed(~(closer | farther) & usable):
                near = row_distances(queries[start + row], references[column], distance) < thresholds[start + row, t]
                _set(closer, t[near], row[near], column[near])
        counts[tile.queries] = _counted(closer, cuts[tile.queries])
    return counts


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


def _others(own: NDArray[np.int32], groups: NDArray[np.int32]) -> Words:
    """(rows, words): where references are of another group than the query of the row, as bits."""
    starts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
    masks = _packed(np.not_equal, groups[None], own[None, starts])[:, 0]
    return np.repeat(masks, np.diff(np.r_[starts, len(own)]), axis=0)


def _packed(compare: np.ufunc, values: NDArray[Any], bounds: NDArray[Any]) -> Words:
    """(bounds, rows, words): how values (rows, columns) compare with bounds (rows, bounds), as bits of 64-bit words.

    Behind the columns there is at least one bit of zero, so that a cut at their end has a word.
    """
    rows, columns = values.shape
    words = columns // WORD + 1
    flags = np.zeros((rows, words * WORD), np.bool_)
    packed = np.empty((bounds.shape[1], rows, words), "<u8")
    for t in range(bounds.shape[1]):
        compare(values, bounds[:, t, None], out=flags[:, :columns])
        packed[t] = np.packbits(flags.reshape(-1), bitorder="little").view("<u8").reshape(rows, words)
    return packed


def _listed(flags: Words) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Bound, row and column of the set bits, some thousands at once."""
    where = np.nonzero(flags)
    for start in range(0, len(where[0]), PAIRS_AT_ONCE // WORD):
        bound, row, word = (axis[start : start + PAIRS_AT_ONCE // WORD] for axis in where)
        octets = flags[bound, row, word].view(np.uint8).reshape(-1, 8)
        which, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
        yield bound[which], row[which], word[which] * WORD + bit


def _set(flags: Words, bound: NDArray[np.int64], row: NDArray[np.int64], column: NDArray[np.int64]) -> None:
    bits = np.left_shift(np.uint64(1), (column % WORD).astype(np.uint64))
    np.bitwise_or.at(flags, (bound, row, column // WORD), bits)


def _counted(flags: Words, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows, bounds, cuts): set bits of each row before each cut."""
    bounds, rows, words = flags.shape
    before = np.zeros((bounds, rows, words + 1), np.int64)
    np.cumsum(np.bitwise_count(flags), axis=2, out=before[:, :, 1:])
    row, word = np.arange(rows)[:, None], cuts // WORD
    mask = np.left_shift(np.uint64(1), (cuts % WORD).astype(np.uint64)) - np.uint64(1)
    counts: NDArray[np.int64] = before[:, row, word] + np.bitwise_count(flags[:, row, word] & mask)
    return counts.swapaxes(0, 1)
