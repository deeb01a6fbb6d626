"""Proposals: fast float32 values that rise with the distance, each with a bound of its error. They never decide.

L2 goes by one matrix product, L1 dimension by dimension, hamming by population counts (exact). The bounds hold for
every order of summation, so for every BLAS, tile and device; `metrics.nearest` and `metrics.counts` decide what lies
within them, by the row-wise float64 routine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING = 2.0**-24  # relative error of one float32 operation
TINY = 2.0**-120  # what products of very small numbers may lose
SAFE_EXPONENT = 40  # float32 squares of numbers below 2**40 and above 2**-40 neither overflow nor vanish
SAFE_REACH = 2.0**62  # sums of float32 squares and products of numbers below it do not overflow


@dataclass(frozen=True)
class Proposals:
    """`values` rise with the distance to each reference, apart from an error below `error`."""

    values: NDArray[np.float32]  # (queries, references)
    error: NDArray[np.float32]  # (queries,)
    origin: NDArray[np.float64]  # (queries,): what was left out of each row, see `at`
    scale: float
    squared: bool

    def at(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values that references at these distances (queries, …) would have without error."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = distances * self.scale
            origin = self.origin.reshape(-1, *(1,) * (distances.ndim - 1))
            return (scaled * scaled if self.squared else scaled) - origin


Propose = Callable[[NDArray[Any], NDArray[np.float32]], Proposals]


def proposing(references: NDArray[Any], distance: str) -> Propose:
    """The function that gives proposals of queries (n, d) against these references (m, d), in an array (n, m) of yours.

    Fresh memory for every tile would cost a fifth of the time.
    """
    return {"L2": _squares, "L1": _sums, "hamming": _counts}[distance](references)


def dot_error(terms: int) -> float:
    """By how much a float32 dot product of so many terms may be off, as a share of the product of its factors' norms.

    In any order of summation, fused or not: each term meets at most `terms` roundings, and the sizes of the terms add
    up to at most that product (Cauchy-Schwarz). Factors that were rounded to float32 themselves count as two more.
    """
    share = terms * ROUNDING
    return share / (1.0 - share) if share < 1.0 else float("inf")


def _squares(references: NDArray[Any]) -> Propose:
    """|r|^2 - 2 q.r, which is the squared distance less |q|^2; the product's extra column adds |r|^2.

    The sizes of its terms add up to at most 2 |q||r| + |r|^2. Beside d + 1 terms there are the roundings of q, r and
    |r|^2. What |q|^2 itself is off by, and the float64 routine, which is far more exact, are within 4 roundings of it.
    """
    scale = _scale(references)
    scaled = _scaled(references, scale)
    squares = _square_norms(scaled)
    extended = np.column_stack([scaled, squares.astype(np.float32)])
    radius = np.sqrt(squares.max(initial=0.0))
    share = dot_error(references.shape[1] + 16)
    lost = references.shape[1] * np.square(scale * 2.0**-511) + TINY  # the deciding squares vanish below 2**-1022
    limit = min(SAFE_REACH, 2.0**511 * scale)  # beyond, the deciding squares are infinite

    def propose(queries: NDArray[Any], values: NDArray[np.float32]) -> Proposals:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is proposed, since it compares as nothing
            rows = _scaled(queries, scale)
            origin = _square_norms(rows)
            norms = np.sqrt(origin)
            doubled = np.ones((len(rows), rows.shape[1] + 1), np.float32)
            np.multiply(rows, np.float32(-2), out=doubled[:, :-1])
            np.matmul(doubled, extended.T, out=values)
            error = share * (2 * norms + radius) * radius + 4 * ROUNDING * origin + lost
            error = np.where(norms + radius < limit, error, np.inf)
            return Proposals(values, error.astype(np.float32), origin, scale, squared=True)

    return propose


def _sums(references: NDArray[Any]) -> Propose:
    """The sum of absolute differences, in float32."""
    scale = _scale(references)
    columns = np.ascontiguousarray(_scaled(references, scale).T)  # (d, references)
    radius = np.abs(columns).sum(axis=0, dtype=np.float64).max(initial=0.0)
    share = dot_error(references.shape[1] + 16)

    def propose(queries: NDArray[Any], values: NDArray[np.float32]) -> Proposals:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = _scaled(queries, scale)
            values[:] = 0
            term = np.empty_like(values)
            for query_values, reference_values in zip(rows.T, columns, strict=True):
                np.subtract(query_values[:, None], reference_values, out=term)
                np.add(values, np.abs(term, out=term), out=values)
            reach = np.abs(rows).sum(axis=1, dtype=np.float64) + radius
            error = np.where(reach < min(SAFE_REACH, 2.0**1022 * scale), share * reach + TINY, np.inf)
            return Proposals(values, error.astype(np.float32), np.zeros(len(rows)), scale, squared=False)

    return propose


def _counts(references: NDArray[np.uint8]) -> Propose:
    """The number of differing bits, without error (below 2**24)."""
    columns = np.ascontiguousarray(_words(references).T)  # (words, references)

    def propose(queries: NDArray[np.uint8], values: NDArray[np.float32]) -> Proposals:
        values[:] = 0
        for query_word, reference_word in zip(_words(queries).T, columns, strict=True):
            np.add(values, np.bitwise_count(query_word[:, None] ^ reference_word), out=values)
        exact = np.zeros(len(queries), np.float32)
        return Proposals(values, exact, exact.astype(np.float64), scale=1.0, squared=False)

    return propose


def _square_norms(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = rows.astype(np.float64)
    squares: NDArray[np.float64] = np.vecdot(wide, wide)
    return squares


def _scale(references: NDArray[Any]) -> float:
    """A power of two that brings the largest value near 1, where that is needed; it changes no order and no digit."""
    largest = float(max(references.max(initial=0), -float(references.min(initial=0))))
    exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
    return 1.0 if abs(exponent) <= SAFE_EXPONENT else float(np.ldexp(1.0, int(np.clip(-exponent, -1000, 1000))))


def _scaled(rows: NDArray[Any], scale: float) -> NDArray[np.float32]:
    exact = rows if scale == 1.0 else np.multiply(rows, scale, dtype=np.float64)
    return exact.astype(np.float32, copy=False)


def _words(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Bytes as words of 64 bits, padded with zeros."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view(np.uint64)
