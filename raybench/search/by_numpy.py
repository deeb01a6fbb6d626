"""numpy as a proposer: values of tiles of queries against all references, for every distance.

L2 and inner products go by one matrix product, L1 dimension by dimension, hamming by population counts (exact). Tiles
can be had as values, too: `closer` counts in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.bound import Bound, largest, norms, scale_of, scaled
from raybench.search.distances import RowPairs
from raybench.search.products import Factors, Margins
from raybench.search.proposers import Unsettled
from raybench.search.tiles import even_size

TILE_CELLS = 1 << 21  # values at once: 8 MB of float32; image pairs are then two tiles or three
FEW = 4  # neighbours that are found by as many passes over the values; for more, groups of columns are faster
GROUP_COLUMNS = 8  # columns that are looked at together: a group whose least value is too large is passed over
COLUMNS_PER_NEIGHBOUR = 16  # left when the k-th value is bounded; fewer would propose more, more would take longer

Fill = Callable[[NDArray[Any], NDArray[np.float32]], Margins]


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


@dataclass(frozen=True)
class ByNumpy:
    """The proposer, for so many values at once."""

    cells: int = TILE_CELLS

    def near(
        self, queries: NDArray[Any], references: NDArray[Any], k: int, distance: str
    ) -> Iterator[tuple[RowPairs, Unsettled]]:
        for tile in self.tiles(queries, references, distance):
            for pairs in tile.near(k):
                yield pairs, np.zeros(0, np.int64)

    def within(
        self, queries: NDArray[Any], references: NDArray[Any], limits: NDArray[np.float64], distance: str
    ) -> Iterator[RowPairs]:
        for tile in self.tiles(queries, references, distance):
            query, reference = positions(~(tile.values > limits_of(tile.margins, limits[tile.queries])[:, None]))
            yield query + tile.queries.start, reference

    def tiles(self, queries: NDArray[Any], references: NDArray[Any], distance: str) -> Iterator[ValueTile]:
        """Tiles of one size, in order."""
        fill = _FILLS[distance](references, distance)
        height = even_size(len(queries), self.cells // max(len(references), 1))
        padded = np.empty((height, -(-len(references) // GROUP_COLUMNS) * GROUP_COLUMNS), np.float32)
        padded[:, len(references) :] = np.inf
        for start in range(0, len(queries), height):
            at = slice(start, min(start + height, len(queries)))
            own = padded[: at.stop - at.start]
            yield ValueTile(at, own, len(references), fill(queries[at], own[:, : len(references)]))


def limits_of(margins: Margins, limits: NDArray[np.float64]) -> NDArray[np.float32]:
    """Values beyond these belong to references beyond these distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (margins.at(limits) + margins.below).astype(np.float32)


def positions(mask: NDArray[np.bool_]) -> RowPairs:
    """Rows and columns of what is set, in order."""
    rows, columns = np.divmod(np.flatnonzero(mask), max(mask.shape[1], 1))
    return rows, columns


def _products(references: NDArray[Any], distance: str) -> Fill:
    factors = Factors(references, distance)

    # Fresh memory for every tile's values would cost a fifth of the time.
    def fill(queries: NDArray[Any], values: NDArray[np.float32]) -> Margins:
        left, margins = factors.left(queries)
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(left, factors.right.T, out=values)
        return margins

    return fill


def _sums(references: NDArray[Any], distance: str) -> Fill:
    scale = scale_of(largest(references))
    rows = scaled(references, scale)
    bound, most = Bound(distance, references.shape[1], scale), float(norms(rows, distance).max(initial=0.0))
    columns = np.ascontiguousarray(rows.T)  # (d, references)

    def fill(queries: NDArray[Any], values: NDArray[np.float32]) -> Margins:
        with np.errstate(over="ignore", invalid="ignore"):
            own = scaled(queries, scale)
            values[:] = 0
            term = np.empty_like(values)
            for query_values, reference_values in zip(own.T, columns, strict=True):
                np.subtract(query_values[:, None], reference_values, out=term)
                np.add(values, np.abs(term, out=term), out=values)
            errors = bound.errors(norms(own, distance), most)
            return Margins(errors, errors, np.zeros(len(own)), distance, scale)

    return fill


def _bits(references: NDArray[np.uint8], distance: str) -> Fill:
    columns = np.ascontiguousarray(_words(references).T)  # (words, references)

    def fill(queries: NDArray[np.uint8], values: NDArray[np.float32]) -> Margins:
        values[:] = 0
        for query_word, reference_word in zip(_words(queries).T, columns, strict=True):
            np.add(values, np.bitwise_count(query_word[:, None] ^ reference_word), out=values)
        exact = np.zeros(len(queries))
        return Margins(exact, exact, exact, distance, scale=1.0)

    return fill


_FILLS = {"L2": _products, "squared_L2": _products, "ip": _products, "L1": _sums, "hamming": _bits}


def _words(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Bytes as words of 64 bits, padded with zeros."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view(np.uint64)


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
