"""How many references are closer to a query than given distances, exactly and without sorting.

Serves the HPatches retrieval task, where only the ranks of five positives among many distractors are needed. A product
proposes, the row-wise float64 routine decides what lies too near a threshold (see `proposals`), so that counts are
equal for every tile. "Closer" is strictly closer: at equal distance the positive, which stands first, leads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.distances import row_distances
from raybench.metrics.hpatches_proposals import proposer

QUERIES_AT_ONCE = 64  # 64 x 4,096 float32 are compared thirty times: they should stay in the cache
ROWS_AT_ONCE = 16_384  # undecided pairs that are gathered at once
WORD = 64

Words = NDArray[np.uint64]


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
    proposed = proposer(queries, references, distance)
    counts = np.empty((len(queries), thresholds.shape[1], cuts.shape[1]), np.int64)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        rows = slice(start, min(start + QUERIES_AT_ONCE, len(queries)))
        closeness = proposed.closeness(rows)
        _leave_out(closeness, groups[0][rows], groups[1])
        low, high = proposed.bounds(rows, thresholds[rows])
        closer = _above(closeness, high)
        if (low != high).any():
            for t, row, column in _listed(_above(closeness, low) ^ closer):
                near = row_distances(queries[start + row], references[column], distance) < thresholds[start + row, t]
                _set(closer, t[near], row[near], column[near])
        counts[rows] = _counted(closer, cuts[rows])
    return counts


def _leave_out(closeness: NDArray[Any], own: NDArray[np.int32], groups: NDArray[np.int32]) -> None:
    """Make references of the query's own group farther than any threshold."""
    edges = np.flatnonzero(own[1:] != own[:-1]) + 1
    for start, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(own)], strict=True):
        closeness[start:stop, np.flatnonzero(groups == own[start])] = -np.inf


def _above(closeness: NDArray[Any], bounds: NDArray[Any]) -> Words:
    """(bounds, rows, words): where closeness (rows, columns) is above bounds (rows, bounds), as bits of 64-bit words.

    Behind the columns there is at least one bit of zero, so that a cut at their end has a word.
    """
    rows, columns = closeness.shape
    words = columns // WORD + 1
    flags = np.zeros((rows, words * WORD), np.bool_)
    packed = np.empty((bounds.shape[1], rows, words), "<u8")
    for t in range(bounds.shape[1]):
        np.greater(closeness, bounds[:, t, None], out=flags[:, :columns])
        packed[t] = np.packbits(flags.reshape(-1), bitorder="little").view("<u8").reshape(rows, words)
    return packed


def _listed(flags: Words) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Bound, row and column of the set bits, some thousands at once."""
    where = np.nonzero(flags)
    for start in range(0, len(where[0]), ROWS_AT_ONCE // WORD):
        bound, row, word = (axis[start : start + ROWS_AT_ONCE // WORD] for axis in where)
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
