"""Mergeable results of shards. Merging is associative and commutative, so cutting and order can't matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

NO_REFERENCE = np.iinfo(np.int64).max


class ArrayFields:
    """A dataclass of arrays: they are stored by the names of its fields."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        return cls(**arrays)


@dataclass(frozen=True)
class Rows(ArrayFields):
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


@dataclass(frozen=True)
class TopK(ArrayFields):
    """The k nearest references of each query so far, by (distance, reference). Merging joins disjoint references.

    `query` rises strictly. Where fewer than k references were seen, a row ends in (inf, NO_REFERENCE).

    >>> a, b = (TopK.of(np.array([0]), np.array([[d]]), np.array([[r]]), k=2) for d, r in ((0.5, 7), (0.5, 3)))
    >>> TopK.merged([a, b]).reference.tolist()
    [[3, 7]]
    """

    query: NDArray[np.int64]  # (queries,)
    distance: NDArray[np.float64]  # (queries, k)
    reference: NDArray[np.int64]  # (queries, k)

    @classmethod
    def of(cls, query: NDArray[np.int64], distance: NDArray[np.float64], reference: NDArray[np.int64], k: int) -> Self:
        """The k nearest of each query; a row is what one search found, in any order, and a query may have several."""
        queries, row = np.unique(query, return_inverse=True)
        order = np.argsort(row, kind="stable")
        counts = np.bincount(row, minlength=len(queries))
        turn = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)  # a query's first row, its second …
        width, turns = distance.shape[1], int(counts.max(initial=0))
        distances = np.full((len(queries), max(turns, 1), max(width, k)), np.inf)
        references = np.full(distances.shape, NO_REFERENCE, np.int64)
        distances[row[order], turn, :width] = distance[order]
        references[row[order], turn, :width] = reference[order]
        return cls(queries, *_first_columns(distances, references, k))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        query, distance, reference = (
            np.concatenate(columns)
            for columns in zip(*((part.query, part.distance, part.reference) for part in parts), strict=True)
        )
        return cls.of(query, distance, reference, distance.shape[1])


def _first_columns(
    distances: NDArray[np.float64], references: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The first k by (distance, reference) of each query's rows, (queries, rows, width)."""
    flat = (len(distances), distances.shape[1] * distances.shape[2])
    distances, references = distances.reshape(flat), references.reshape(flat)
    order = np.lexsort((references, distances), axis=1)
    distances = np.take_along_axis(distances, order, axis=1)
    references = np.take_along_axis(references, order, axis=1)
    same = (references[:, 1:] == references[:, :-1]) & (distances[:, 1:] == distances[:, :-1])
    if np.any(same & (references[:, 1:] != NO_REFERENCE)):
        raise ValueError("a reference comes twice")
    return np.ascontiguousarray(distances[:, :k]), np.ascontiguousarray(references[:, :k])


@dataclass(frozen=True)
class Counts(ArrayFields):
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
