"""Proposals: how close references are to queries, as far as a matrix product can tell, with a bound on its error.

Closeness rises as things get closer. What lies within the bound of a threshold is undecided and left to the row-wise
routine (`distances.row_distances`), so that no decision depends on the product, its tiling or its threads:

- L2: closeness is (|q|^2 - d^2) / 2 = q.x - |x|^2 / 2, one float32 product of rows lengthened by one value.
- hamming: bits - 2 d, a float32 product of rows of +1 and -1. Every term and sum is a small integer: exact.
- L1, masked_L1: -d by the row-wise routine itself: exact.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.distances import masked, row_distances

ROUNDING = 2.0**-24  # relative error of one float32 operation
ROWS_AT_ONCE = 2_048  # of the row-wise routine, so that its blocks stay in the cache


class Proposer(Protocol):
    """Queries and references, made ready for products."""

    def closeness(self, rows: slice) -> NDArray[Any]:
        """(queries in `rows`, references) float32 or float64."""
        ...

    def bounds(self, rows: slice, distances: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Low and high for thresholds of any shape (queries, …): closeness above high is surely at a smaller distance
        than the threshold, closeness at or below low surely is not. Equal where closeness is exact."""
        ...

    def slack(self, rows: slice) -> NDArray[np.float64]:
        """(queries,) by how much the closeness of the nearest may stay below the highest closeness."""
        ...


def proposer(queries: NDArray[Any], references: NDArray[Any], distance: str) -> Proposer:
    """The proposer of a distance; vectors are rows."""
    if distance == "L2":
        return EuclideanProducts(queries, references)
    if distance == "hamming":
        return BitProducts(queries, references)
    if distance == "masked_L1":
        return ExactRows(masked(queries), masked(references))
    return ExactRows(queries, references)


class EuclideanProducts:
    """L2 by one product. Vectors are scaled by a power of two so that no norm is above 1: nothing overflows.

    Let u = 2^-24 and d the dimension. A float32 dot product of d + 1 terms, in any order, is off by at most
    (d + 1) u (1 + small) times the sum of its terms' sizes, which Cauchy-Schwarz bounds by |q||x| + |x|^2 / 2; rounding
    the factors to float32 adds at most 3 u of the same. `_error` has (d + 8) u for both, 1% for the `small` (d below
    10^5), and a term for what underflows. The float64 parts (norms, thresholds, and the row-wise routine that decides)
    are off by far less; `_float64_share` covers them.
    """

    def __init__(self, queries: NDArray[Any], references: NDArray[Any]) -> None:
        left, right = queries.astype(np.float64), references.astype(np.float64)
        self._squares = np.einsum("ij,ij->i", left, left)
        squares = np.einsum("ij,ij->i", right, right)
        longest = np.sqrt(max(self._squares.max(initial=0.0), squares.max(initial=0.0)))
        self._scale = 2.0 ** -int(np.ceil(np.log2(longest))) if longest > 0 else 1.0
        self._squares *= self._scale**2
        squares *= self._scale**2
        dimension = left.shape[1]
        self._queries = np.ones((len(left), dimension + 1), np.float32)
        self._references = np.empty((len(right), dimension + 1), np.float32)
        np.multiply(left, self._scale, out=self._queries[:, :-1], casting="same_kind")
        np.multiply(right, self._scale, out=self._references[:, :-1], casting="same_kind")
        self._references[:, -1] = squares / -2.0
        largest = float(squares.max(initial=0.0))
        size = np.sqrt(self._squares * largest) + largest / 2.0
        self._error = 1.01 * (dimension + 8) * ROUNDING * size + dimension * 2.0**-120
        self._float64_share = (dimension + 16) * 2.0**-50
        self._largest = largest

    def closeness(self, rows: slice) -> NDArray[np.float32]:
        return self._queries[rows] @ self._references.T

    def bounds(self, rows: slice, distances: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        shape = (-1,) + (1,) * (distances.ndim - 1)
        squares = (distances * self._scale) ** 2
        own = self._squares[rows].reshape(shape)
        exact = (own - squares) / 2.0
        error = self._error[rows].reshape(shape) + self._float64_share * (own + squares + self._largest)
        low, high = (exact - error).astype(np.float32), (exact + error).astype(np.float32)
        return np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))

    def slack(self, rows: slice) -> NDArray[np.float64]:
        in_float64 = self._float64_share * (self._squares[rows] + self._largest)
        both: NDArray[np.float64] = 2.0 * self._error[rows] + 4.0 * in_float64
        return both


class BitProducts:
    """Hamming by one exact product: dot products of +1 and -1 are integers below 2^24."""

    def __init__(self, queries: NDArray[Any], references: NDArray[Any]) -> None:
        self._queries, self._references = _signs(queries), _signs(references)
        assert self._queries.shape[1] < 2**24, "float32 would no longer hold every count of bits"

    def closeness(self, rows: slice) -> NDArray[np.float32]:
        return self._queries[rows] @ self._references.T

    def bounds(self, rows: slice, distances: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        exact = (self._queries.shape[1] - 2.0 * distances).astype(np.float32)
        return exact, exact

    def slack(self, rows: slice) -> NDArray[np.float64]:
        return np.zeros(len(self._queries[rows]))


class ExactRows:
    """L1 by the routine that decides; there is no product that is faster."""

    def __init__(self, queries: NDArray[Any], references: NDArray[Any]) -> None:
        self._queries, self._references = queries, references

    def closeness(self, rows: slice) -> NDArray[np.float64]:
        queries = self._queries[rows]
        out = np.empty((len(queries), len(self._references)))
        for start in range(0, len(self._references), ROWS_AT_ONCE):
            block = self._references[start : start + ROWS_AT_ONCE]
            for i, query in enumerate(queries):
                out[i, start : start + len(block)] = row_distances(query[None], block, "L1")
        return np.negative(out, out=out)

    def bounds(self, rows: slice, distances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return -distances, -distances

    def slack(self, rows: slice) -> NDArray[np.float64]:
        return np.zeros(len(self._queries[rows]))


def _signs(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    bits = np.unpackbits(rows, axis=1)
    return bits.astype(np.float32) * 2.0 - 1.0
