"""The one bound of a proposal's error: how far a float32 value may lie from the distance that decides.

Let u = 2**-24 be float32's relative rounding. However a library sums (in any order, fused or not) and whether it takes
a squared distance as it stands or as |q|^2 - 2 q.r + |r|^2, no term q_i^2, q_i r_i or r_i^2 meets more than d + 8
roundings: two when rows become float32, at most three of differences, squares or products, and at most d + 3 of sums.
So with m = d + 16 a value is off by at most m u / (1 - m u) times the sum of its terms' sizes, its reach:

    squared L2     (|q| + |r|)^2     by Minkowski as it stands, by Cauchy-Schwarz in three parts
    inner product  |q| |r|           by Cauchy-Schwarz
    L1             |q|_1 + |r|_1

With x = m u the bound takes s = x / (1 - 4 x) as the share of the reach, which is at least x (1 + 2 s) / (1 - x): so a
value that is lowered by up to 2 s of its reach on purpose (see `products`) stays within it. Eight roundings to spare
cover the arithmetic on limits and the float64 routine, whose own error is 2**-29 of one rounding per term.

Near zero an operation or a flushed factor loses up to 2**-126 beside: d + 16 times that, and once more times each
norm; 2**-120 covers their constants. Squares of float64 rows vanish below 2**-1022. Rows are therefore brought near 1
by a power of two where that is needed, which changes no order and no digit, and where sums may overflow none the less,
nothing is known: the error is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT_ROUNDOFF = 2.0**-24
SPARE_ROUNDINGS = 16
LOST_NEAR_ZERO = 2.0**-120
VANISHING_ROOT = 2.0**-511  # smaller differences have squares that float64 may lose
SAFE_EXPONENT = 40  # float32 squares of numbers below 2**40 and above 2**-40 neither overflow nor vanish
SAFE_REACH = 2.0**62  # sums of float32 squares and products of numbers below it do not overflow


@dataclass(frozen=True)
class Bound:
    """The bound for rows of one dimension that were multiplied by `scale`; its norms and errors are of these."""

    distance: str
    dimension: int
    scale: float = 1.0

    @property
    def share(self) -> float:
        """The share of its reach by which a value may be off, apart from what is lost near zero."""
        rounded = (self.dimension + SPARE_ROUNDINGS) * UNIT_ROUNDOFF
        return rounded / (1.0 - 4.0 * rounded) if rounded < 0.125 else float("inf")

    def errors(self, own: NDArray[np.float64], other: float) -> NDArray[np.float64]:
        """How far values may be off, of queries of these norms and references of at most that norm; inf: any."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach = own + other
            if self.distance != "L1":
                reach = own * other if self.distance == "ip" else np.square(reach)
            return self.where_known(self.share * reach + self.lost(own, other), own, other)

    def lost(self, own: NDArray[np.float64], other: float) -> NDArray[np.float64]:
        """What values may lose near zero."""
        vanished = 0.0 if self.distance == "L1" else np.square(self.scale * VANISHING_ROOT)
        return (self.dimension + SPARE_ROUNDINGS) * (LOST_NEAR_ZERO * (1.0 + own + other) + vanished)

    def where_known(self, errors: NDArray[np.float64], own: NDArray[np.float64], other: float) -> NDArray[np.float64]:
        """The errors, or inf where float32 sums or the deciding ones may overflow."""
        largest = 2.0**1022 if self.distance == "L1" else 2.0**511
        return np.where(own + other < min(SAFE_REACH, largest * self.scale), errors, np.inf)


def norms(rows: NDArray[np.float32], distance: str) -> NDArray[np.float64]:
    """The norm of each row by which the bound counts."""
    if distance == "L1":
        sums: NDArray[np.float64] = np.abs(rows).sum(axis=1, dtype=np.float64)
        return sums
    return np.sqrt(squares(rows))


def squares(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """The squared length of each row."""
    wide = rows.astype(np.float64)
    found: NDArray[np.float64] = np.vecdot(wide, wide)
    return found


def radius(rows: NDArray[np.float32]) -> float:
    """No row is longer than that. By float32 squares, which is five times as fast, unless they overflow or vanish."""
    rows = rows.astype(np.float32, copy=False)
    with np.errstate(over="ignore"):
        square = float(np.einsum("ij,ij->i", rows, rows).max(initial=0.0))
    if not 2.0**-80 < square < 2.0**80:
        square = float(squares(rows).max(initial=0.0))
    return float(np.sqrt(square * (1.0 + Bound("squared_L2", rows.shape[1]).share)))


def largest(rows: NDArray[Any]) -> float:
    """The largest absolute value."""
    return float(max(rows.max(initial=0), -float(rows.min(initial=0))))


def scale_of(size: float) -> float:
    """A power of two that brings this size near 1, where that is needed."""
    exponent = int(np.frexp(size)[1]) if np.isfinite(size) else 0
    return 1.0 if abs(exponent) <= SAFE_EXPONENT else float(np.ldexp(1.0, int(np.clip(-exponent, -1000, 1000))))


def scaled(rows: NDArray[Any], scale: float) -> NDArray[np.float32]:
    """Rows times the scale, as float32; rows themselves where that changes nothing."""
    with np.errstate(over="ignore"):  # what overflows has an infinite norm, of which nothing is known
        exact = rows if scale == 1.0 else np.multiply(rows, scale, dtype=np.float64)
        return exact.astype(np.float32, copy=False)
