"""Tiles of values in numpy: consecutive queries against all references, and what is asked of them.

A value falls as things get closer, and `Margins` says where the exact one lies. A tile names the pairs in question, and
counts what is surely closer than a limit; `device_tiles` does the same on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.search.distances import RowPairs
from raybench.search.products import Margins

FEW = 4  # neighbours that are found by as many passes over the values; for more, groups of columns are faster
GROUP_COLUMNS = 8  # columns that are looked at together: a group whose least value is too large is passed over
COLUMNS_PER_NEIGHBOUR = 16  # left when the k-th value is bounded; fewer would propose more, more would take longer
PAIRS_AT_ONCE = 16_384  # undecided pairs that are listed at once
WORD = 64

Words = NDArray[np.uint64]
Groups = tuple[NDArray[np.int32], NDArray[np.int32]]  # of queries, of references
Limits = NDArray[np.float32]  # (queries,) or (queries, limits): of values
Undecided = Iterator[tuple[NDArray[np.int64], ...]]  # limit, row of the tile and reference of some pairs


class Tile(Protocol):
    """What is asked of values of consecutive queries, of which `margins` says where the exact ones lie."""

    @property
    def queries(self) -> slice: ...

    @property
    def margins(self) -> Margins: ...

    def near(self, k: int) -> Iterator[RowPairs]:
        """All pairs in question for the k nearest of each query."""
        ...

    def apart(self, rows: NDArray[np.int64], low: Limits, high: Limits) -> tuple[NDArray[np.int64], RowPairs]:
        """Of some rows, how many values are below `low`, and pairs (place in `rows`, reference) up to `high`."""
        ...

    def closer(
        self, low: Limits, high: Limits, groups: Groups, cuts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Undecided]:
        """(rows, limits, cuts): how many of the first references are surely closer than each limit; and the undecided.

        References of the query's own group never count.
        """
        ...


class Tiler(Protocol):
    """What cuts a search into tiles of values."""

    def tiles(self, queries: NDArray[Any], references: NDArray[Any], distance: str) -> Iterator[Tile]:
        """Tiles of queries, in order; each stands until the next."""
        ...


@dataclass(frozen=True)
class ValueTile:
    """Values of consecutive queries against all references, until the next tile; padded by inf to whole groups."""

    queries: slice
    padded: NDArray[np.float32]
    references: int
    margins: Margins

    @property
    def values(self) -> NDArray[np.float32]:
        return self.padded[:, : self.references]

    def near(self, k: int) -> Iterator[RowPairs]:
        """All pairs in question for the k nearest of each query: first those of queries that a few passes settle."""
        left = np.arange(len(self.padded))
        if 0 < k <= FEW:
            columns, values = _lowest(self.padded, k + 1)
            with np.errstate(invalid="ignore"):  # values that are no numbers have an infinite width: never settled
                settled = values[:, k] > values[:, k - 1] + self.margins.width
            rows, left = np.flatnonzero(settled), np.flatnonzero(~settled)
            yield np.repeat(rows + self.queries.start, k), columns[rows, :k].reshape(-1)
        if k and len(left):
            padded = self.padded if len(left) == len(self.padded) else self.padded[left]
            query, reference = _in_question(padded, self.margins.width[left], k)
            there = reference < self.references
            yield left[query[there]] + self.queries.start, reference[there]

    def apart(self, rows: NDArray[np.int64], low: Limits, high: Limits) -> tuple[NDArray[np.int64], RowPairs]:
        values = self.values[rows]
        surely = values < low[:, None]
        return surely.sum(axis=1), positions(~(surely | (values > high[:, None])))

    def closer(
        self, low: Limits, high: Limits, groups: Groups, cuts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Undecided]:
        usable = _others(*groups)
        closer = _packed(np.less, self.values, low) & usable
        undecided: Undecided = iter(())
        if (low != high).any():
            undecided = _listed(~(closer | _packed(np.greater, self.values, high)) & usable)
        return _counted(closer, cuts), undecided


def positions(mask: NDArray[np.bool_]) -> RowPairs:
    """Rows and columns of what is set, in order."""
    rows, columns = np.divmod(np.flatnonzero(mask), max(mask.shape[1], 1))
    return rows, columns


def _lowest(values: NDArray[np.float32], count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Columns and values of the `count` lowest of each row, rising; one pass for each, which is fast in numpy.

    Padding is never among the columns: among several inf the first leads. Values must be contiguous, or argmin copies.
    """
    rows = np.arange(len(values))
    columns = np.empty((count, len(values)), np.int64)
    lowest = np.empty((count, len(values)), np.float32)
    for column, low in zip(columns, lowest, strict=True):
        values.argmin(axis=1, out=column)
        low[:] = values[rows, column]
        values[rows, column] = np.inf
    for column, low in zip(columns[::-1], lowest[::-1], strict=True):  # where all are inf a column may come twice
        values[rows, column] = low
    return columns.T, lowest.T


def _in_question(padded: NDArray[np.float32], width: NDArray[np.float64], k: int) -> RowPairs:
    """Queries and references of all pairs that may be among the k nearest, padding perhaps among them.

    At least k references have a value of at most `bound`; one whose value is above `bound + width` is farther than all
    of these. Comparisons are written so that a value that is not a number counts as in question.
    """
    groups = padded.reshape(len(padded), GROUP_COLUMNS, -1)  # group g has columns g, g + their number, …
    count = groups.shape[2]
    least = groups.min(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        bound = bound_of_kth(least if count >= COLUMNS_PER_NEIGHBOUR * k else padded, k)
        limit = (bound + width).astype(np.float32)
    query, group = positions(~(least > limit[:, None]))
    member, turn = positions(~(groups[query, :, group] > limit[query, None]))
    return query[member], turn * count + group[member]


def bound_of_kth(values: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """A value for each row that at least k of its columns do not exceed.

    Columns are folded to minima of disjoint groups, which is much faster than selecting among all of them.
    """
    while values.shape[1] >= 2 * COLUMNS_PER_NEIGHBOUR * k:
        half = values.shape[1] // 2
        values = np.minimum(values[:, :half], values[:, half : 2 * half])
    kth: NDArray[np.float32] = np.partition(values, k - 1, axis=1)[:, k - 1]
    return kth


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


def _counted(flags: Words, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows, bounds, cuts): set bits of each row before each cut."""
    bounds, rows, words = flags.shape
    before = np.zeros((bounds, rows, words + 1), np.int64)
    np.cumsum(np.bitwise_count(flags), axis=2, out=before[:, :, 1:])
    row, word = np.arange(rows)[:, None], cuts // WORD
    mask = np.left_shift(np.uint64(1), (cuts % WORD).astype(np.uint64)) - np.uint64(1)
    counts: NDArray[np.int64] = before[:, row, word] + np.bitwise_count(flags[:, row, word] & mask)
    return counts.swapaxes(0, 1)
