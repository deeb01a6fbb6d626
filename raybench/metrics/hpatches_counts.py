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
from raybench.metrics.proposals import proposer

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
        for t in range(thresholds.shape[1]):
            closer = _packed(closeness > high[:, t, None])
            if low is not high:
                undecided = _packed(closeness > low[:, t, None]) ^ closer
                for row, column in _listed(undecided):
                    near = row_distances(queries[rows][row], references[column], distance) < thresholds[rows][row, t]
                    _set(closer, row[near], column[near])
            counts[rows, t] = _counted(closer, cuts[rows])
    return counts


def _leave_out(closeness: NDArray[Any], own: NDArray[np.int32], groups: NDArray[np.int32]) -> None:
    """Make references of the query's own group farther than any threshold."""
    edges = np.flatnonzero(own[1:] != own[:-1]) + 1
    for start, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(own)], strict=True):
        closeness[start:stop, np.flatnonzero(groups == own[start])] = -np.inf


def _packed(flags: NDArray[np.bool_]) -> Words:
    """Flags as bits of 64-bit words, with a word of zeros at the end."""
    packed = np.zeros((len(flags), (flags.shape[1] // WORD + 1) * 8), np.uint8)
    octets = np.packbits(flags, axis=1, bitorder="little")
    packed[:, : octets.shape[1]] = octets
    return packed.view("<u8")


def _listed(flags: Words) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of the set bits, some thousands at once."""
    rows, words = np.nonzero(flags)
    for start in range(0, len(rows), ROWS_AT_ONCE // WORD):
        some = slice(start, start + ROWS_AT_ONCE // WORD)
        octets = np.ascontiguousarray(flags[rows[some], words[some]]).view(np.uint8).reshape(-1, 8)
        which, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
        yield rows[some][which], words[some][which] * WORD + bit


def _set(flags: Words, row: NDArray[np.int64], column: NDArray[np.int64]) -> None:
    bits = np.left_shift(np.uint64(1), (column % WORD).astype(np.uint64))
    np.bitwise_or.at(flags, (row, column // WORD), bits)


def _counted(flags: Words, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows, cuts): set bits of each row before each cut."""
    before = np.zeros((len(flags), flags.shape[1] + 1), np.int64)
    np.cumsum(np.bitwise_count(flags), axis=1, out=before[:, 1:])
    word = cuts // WORD
    mask = np.left_shift(np.uint64(1), (cuts % WORD).astype(np.uint64)) - np.uint64(1)
    partial = np.take_along_axis(flags, word, axis=1) & mask
    return np.take_along_axis(before, word, axis=1) + np.bitwise_count(partial)
