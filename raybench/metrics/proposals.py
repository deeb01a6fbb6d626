"""Proposals: fast float32 values that rise with the distance, each with a bound of its error. They never decide.

L2 goes by one matrix product, L1 dimension by dimension, hamming by population counts (exact). The bounds hold for
every order of summation, so for every BLAS, tile and device; `metrics.nearest` decides what lies within them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-23  # twice float32's rounding error: the factor to spare covers terms of second order
TINY = 2.0**-120  # what products of very small numbers may lose
SAFE_EXPONENT = 40  # float32 squares of numbers below 2**40 and above 2**-40 neither overflow nor vanish


@dataclass(frozen=True)
class Proposals:
    """`values` rise with the distance to each reference, apart from an error below `error`."""

    values: NDArray[np.float32]  # (queries, references)
    error: NDArray[np.float32]  # (queries,)


Propose = Callable[[NDArray[Any], NDArray[np.float32]], Proposals]


def proposing(references: NDArray[Any], distance: str) -> Propose:
    """The function that gives proposals of queries (n, d) against these references (m, d), in an array (n, m) of yours.

    Fresh memory for every tile would cost a fifth of the time.
    """
    return {"L2": _squares, "L1": _sums, "hamming": _counts}[distance](references)


def _squares(references: NDArray[Any]) -> Propose:
    """|r|^2 - 2 q.r, which is the squared distance less |q|^2; the product's extra column adds |r|^2."""
    scale = _scale(references)
    scaled = _scaled(references, scale)
    squares = np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64)
    extended = np.column_stack([scaled, squares.astype(np.float32)])
    radius = np.sqrt(squares.max(initial=0.0))
    slack = (references.shape[1] + 16) * UNIT
    lost = references.shape[1] * np.square(scale * 2.0**-511) + TINY  # the deciding squares vanish below 2**-1022

    def propose(queries: NDArray[Any], values: NDArray[np.float32]) -> Proposals:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is proposed, since it compares as nothing
            rows = _scaled(queries, scale)
            reach = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)) + radius
            doubled = np.column_stack([-2 * rows, np.ones(len(rows), np.float32)])
            np.matmul(doubled, extended.T, out=values)
            error = np.where(reach < 2.0**511 * scale, slack * reach * reach + lost, np.inf)  # beyond, all is infinite
            return Proposals(values, error.astype(np.float32))

    return propose


def _sums(references: NDArray[Any]) -> Propose:
    """The sum of absolute differences, in float32."""
    scale = _scale(references)
    columns = np.ascontiguousarray(_scaled(references, scale).T)  # (d, references)
    radius = np.abs(columns).sum(axis=0, dtype=np.float64).max(initial=0.0)
    slack = (references.shape[1] + 16) * UNIT

    def propose(queries: NDArray[Any], values: NDArray[np.float32]) -> Proposals:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = _scaled(queries, scale)
            values[:] = 0
            term = np.empty_like(values)
            for query_values, reference_values in zip(rows.T, columns, strict=True):
                np.subtract(query_values[:, None], reference_values, out=term)
                np.add(values, np.abs(term, out=term), out=values)
            reach = np.abs(rows).sum(axis=1, dtype=np.float64) + radius
            error = np.where(reach < 2.0**1022 * scale, slack * reach + TINY, np.inf)
            return Proposals(values, error.astype(np.float32))

    return propose


def _counts(references: NDArray[np.uint8]) -> Propose:
    """The number of differing bits, without error (below 2**24)."""
    columns = np.ascontiguousarray(_words(references).T)  # (words, references)

    def propose(queries: NDArray[np.uint8], values: NDArray[np.float32]) -> Proposals:
        values[:] = 0
        for query_word, reference_word in zip(_words(queries).T, columns, strict=True):
            np.add(values, np.bitwise_count(query_word[:, None] ^ reference_word), out=values)
        return Proposals(values, np.zeros(len(queries), np.float32))

    return propose


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
