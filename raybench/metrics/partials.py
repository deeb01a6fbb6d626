"""Mergeable results of shards. Merging is associative and commutative, so cutting and order can't matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """Values by item: `index` rises strictly, `values` has one entry for each. Merging joins disjoint items.

    >>> Rows.of(np.array([2, 0]), np.array([0.2, 0.0])).merge(Rows.of(np.array([1]), np.array([0.1]))).values.tolist()
    [0.0, 0.1, 0.2]
    """

    index: NDArray[np.int64]
    values: NDArray[Any]

    @classmethod
    def of(cls, index: NDArray[np.int64], values: NDArray[Any]) -> Self:
        """Rows from items in any order; an item that comes twice is an error."""
        order = np.argsort(index, kind="stable")
        ordered = index[order]
        if np.any(ordered[1:] == ordered[:-1]):
            raise ValueError("an item comes twice")
        return cls(ordered, values[order])

    def merge(self, other: Self) -> Self:
        return self.of(np.concatenate([self.index, other.index]), np.concatenate([self.values, other.values]))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"index": self.index, "values": self.values}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        return cls(arrays["index"], arrays["values"])
