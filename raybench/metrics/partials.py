"""Mergeable results of shards. Merging is associative and commutative, so cutting and order can't matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """Values by item, in any order until merged; then `index` rises strictly. Merging joins disjoint items.

    >>> Rows.merged([Rows.of(np.array([2, 0]), np.array([0.2, 0.0])), Rows.of(np.array([1]), np.array([0.1]))]).values
    array([0. , 0.1, 0.2])
    """

    index: NDArray[np.int64]
    values: NDArray[Any]

    @classmethod
    def of(cls, index: NDArray[np.int64], values: NDArray[Any]) -> Self:
        """Rows from items in any order; an item that comes twice is an error."""
        first, last = (int(index.min()), int(index.max())) if len(index) else (0, -1)
        if last - first + 1 == len(index):  # dense, as whole results are: every item has its place, which beats sorting
            ordered, sorted_index = np.empty_like(values), np.arange(first, last + 1)
            taken = np.zeros(len(index), np.bool_)
            ordered[index - first], taken[index - first] = values, True
            twice = not taken.all()
        else:
            order = np.argsort(index, kind="stable")
            ordered, sorted_index = values[order], index[order]
            twice = bool(np.any(sorted_index[1:] == sorted_index[:-1]))
        if twice:
            raise ValueError("an item comes twice")
        return cls(sorted_index, ordered)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        return cls.of(np.concatenate([part.index for part in parts]), np.concatenate([part.values for part in parts]))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"index": self.index, "values": self.values}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        return cls(arrays["index"], arrays["values"])


@dataclass(frozen=True)
class Counts:
    """Integer counts by item; merging adds those of one item. `index` rises strictly.

    >>> Counts.merged([Counts.of(np.array([2, 0]), np.array([5, 1])), Counts.of(np.array([2]), np.array([1]))]).values
    array([1, 6])
    """

    index: NDArray[np.int64]
    values: NDArray[np.int64]

    @classmethod
    def of(cls, index: NDArray[np.int64], values: NDArray[np.int64]) -> Self:
        """Counts from items in any order; `values` are (items, …)."""
        items, place = np.unique(index, return_inverse=True)
        summed = np.zeros((len(items), *values.shape[1:]), np.int64)
        np.add.at(summed, place, values)
        return cls(items, summed)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        items = np.unique(np.concatenate([part.index for part in parts]))
        summed = np.zeros((len(items), *parts[0].values.shape[1:]), np.int64)
        for part in parts:  # within a part no item comes twice, so that plain indexing adds
            summed[np.searchsorted(items, part.index)] += part.values
        return cls(items, summed)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"index": self.index, "values": self.values}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        return cls(arrays["index"], arrays["values"])
