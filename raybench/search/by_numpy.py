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
from raybench.search.value_tiles import GROUP_COLUMNS, ValueTile, positions

TILE_CELLS = 1 << 21  # values at once: 8 MB of float32; image pairs are then two tiles or three

Fill = Callable[[NDArray[Any], NDArray[np.float32]], Margins]


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
