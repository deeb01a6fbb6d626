"""Squared L2 and inner product as one matrix product, whose values are lowered by what they may be off.

The exact value is |r|^2 - 2 q.r, the squared distance less the query's own |q|^2, or -q.r. By the share s of `bound` it
may be off by s (2 |q||r| + |r|^2), at most s |q|^2 + 2 s |r|^2, or by s |q||r|. An extra column takes off what depends
on the reference, so that one huge reference does not blur all others; what the query adds stands in `Margins`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.bound import Bound, largest, scale_of, scaled, squares


@dataclass(frozen=True)
class Margins:
    """Where the exact values of each query lie: from `value - below` to `value + above`, whatever the reference."""

    below: NDArray[np.float64]  # (queries,)
    above: NDArray[np.float64]  # (queries,)
    origin: NDArray[np.float64]  # (queries,), what was left out of each row
    distance: str
    scale: float

    @property
    def width(self) -> NDArray[np.float64]:
        """A value that is more than this above another belongs to a farther reference."""
        return self.below + self.above

    def of(self, rows: NDArray[np.int64]) -> Margins:
        """Those of some queries."""
        return replace(self, below=self.below[rows], above=self.above[rows], origin=self.origin[rows])

    def at(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The exact values of references at these distances (queries, …)."""
        with np.errstate(over="ignore", invalid="ignore"):
            exact = distances * self.scale
            if self.distance == "L2":
                exact = exact * exact
            elif self.distance in ("squared_L2", "ip"):
                exact = exact * self.scale
            return exact - self.origin.reshape(-1, *(1,) * (distances.ndim - 1))


class Factors:
    """References as the right factor of the product, (references, d + 1); `left` makes that of queries."""

    def __init__(self, references: NDArray[Any], distance: str) -> None:
        scale = scale_of(largest(references))
        rows = scaled(references, scale)
        self._bound = Bound(distance, references.shape[1], scale)
        lengths = squares(rows)
        self._radius = float(np.sqrt(lengths.max(initial=0.0)))
        share = self._bound.share
        with np.errstate(invalid="ignore"):  # of rows so long that nothing is known
            column = share * np.sqrt(lengths) if distance == "ip" else lengths * (1.0 - 2.0 * share)
        self.right = np.column_stack([rows, column.astype(np.float32)])

    def left(self, queries: NDArray[Any]) -> tuple[NDArray[np.float32], Margins]:
        """The left factor of queries, and where their exact values lie."""
        bound, share = self._bound, self._bound.share
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is in question: it compares as nothing
            rows = scaled(queries, bound.scale)
            origin = squares(rows)
            own = np.sqrt(origin)
            factor = np.empty((len(rows), rows.shape[1] + 1), np.float32)
            lost = bound.lost(own, self._radius)
            if bound.distance == "ip":
                np.negative(rows, out=factor[:, :-1])
                factor[:, -1] = -own
                below, above = lost, lost + 2.0 * share * own * self._radius
                origin = np.zeros(len(rows))
            else:
                np.multiply(rows, np.float32(-2), out=factor[:, :-1])
                factor[:, -1] = 1.0
                below = lost + share * origin
                above = below + 4.0 * share * self._radius**2
            below, above = (bound.where_known(error, own, self._radius) for error in (below, above))
        return factor, Margins(below, above, origin, bound.distance, bound.scale)
