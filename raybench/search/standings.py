"""The standing of given references in a query's ranking: how many others come before each, without a list of all.

A float64 product tells nearly all references apart from a limit; those within its bound are measured by the row-wise
routine, which decides. So standings are equal for every cut. At equal distance the lower place comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.search.distances import RowPairs, measured

FLOAT64_ROUNDOFF = 2.0**-53
SPARE_ROUNDINGS = 16
REFERENCE_BYTES = 2**26  # of references as float64, at once
CELLS_AT_ONCE = 1 << 20  # distances, sorted by query
MANY_MEASURED = 1 << 16  # from here on equal references are measured once
FEW_IN_A_ROW = 8  # asked for: up to here comparisons cost less than a sort
MOST_LOOKS = 4  # at distances within an error of a limit, per distance
EXACT_SUM = 2.0**53  # whole numbers below it are exact in float64

Vectors = NDArray[np.float32]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """References whose standing is asked for: the row of its query, its place, its distance; by row."""

    row: Whole
    place: Whole
    distance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.row)

    def at(self, chosen: Whole) -> Asked:
        """Some of them."""
        return Asked(self.row[chosen], self.place[chosen], self.distance[chosen])


@dataclass(frozen=True)
class Standings:
    """How many references come before each that is asked for: by place at equal distance, or in any order.

    `fewest` are strictly closer; `most` are all that are as near, too, the reference itself aside.
    """

    before: Whole
    fewest: Whole
    most: Whole


def standings(queries: Vectors, references: Vectors, places: Whole, asked: Asked, distance: str) -> Standings:
    """Standings among these references, `places` being theirs in the whole set; those of several parts add up.

    >>> near = np.float32([[3], [1], [2], [2]])
    >>> asked = Asked(np.array([0, 0]), np.array([2, 3]), np.array([4.0, 4.0]))
    >>> standings(np.float32([[0]]), near, np.arange(4), asked, "squared_L2")
    Standings(before=array([1, 2]), fewest=array([1, 1]), most=array([2, 2]))
    """
    counts = np.zeros((3, len(asked)), np.int64)
    size = max(REFERENCE_BYTES // (8 * max(references.shape[1], 1)), 1)
    for start in range(0, len(references), size):
        block, own = references[start : start + size], places[start : start + size]
        order = np.argsort(own)  # so that a stable sort by distance is one by (distance, place)
        counts += _counted(queries, block[order], own[order], asked, distance)
    return Standings(*counts)


def _counted(queries: Vectors, references: Vectors, places: Whole, asked: Asked, distance: str) -> Whole:
    """Before, fewest and most, (3, asked), of references in order of their places."""
    product = _Product.of(queries, references, distance)
    counts = np.zeros((3, len(asked)), np.int64)
    height = max(CELLS_AT_ONCE // max(len(references), 1), 1)
    for start in range(0, len(queries), height):
        first, last = np.searchsorted(asked.row, [start, start + height])
        if first < last:
            rows = slice(start, min(start + height, len(queries)))
            own = Asked(asked.row[first:last] - start, asked.place[first:last], asked.distance[first:last])
            tile = _Tile(queries[rows], references, places, product.values(rows), product.errors[rows], distance)
            counts[:, first:last] = tile.counts(own)
    return counts


@dataclass(frozen=True)
class _Product:
    """Distances of all pairs of rows by one float64 product, and how far those of each query may be off.

    Squared L2 is |q|^2 plus the product of (-2 q, 1) and (r, |r|^2): passes over all cells cost more than one column.
    """

    queries: NDArray[np.float64]
    references: NDArray[np.float64]
    added: NDArray[np.float64]  # by query, to every product
    errors: NDArray[np.float64]  # by query; all 0 where values are whole numbers, as of packed bits

    @classmethod
    def of(cls, queries: Vectors, references: Vectors, distance: str) -> _Product:
        left, right = queries.astype(np.float64), references.astype(np.float64)
        squares = np.vecdot(left, left), np.vecdot(right, right)
        errors = _errors(left, right, squares, distance)
        if distance == "ip":
            return cls(np.subtract(0.0, left), right, np.zeros(len(left)), errors)
        left, right = np.column_stack([-2.0 * left, np.ones(len(left))]), np.column_stack([right, squares[1]])
        return cls(left, right, squares[0], errors)

    def values(self, rows: slice) -> NDArray[np.float64]:
        """Distances (rows, references)."""
        products: NDArray[np.float64] = self.queries[rows] @ self.references.T
        products += self.added[rows, None]  # no -0 is left, either
        return products


def _errors(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    squares: tuple[NDArray[np.float64], NDArray[np.float64]],
    distance: str,
) -> NDArray[np.float64]:
    """How far products may lie from what the row-wise routine gives: both are off by as much, as `bound` tells.

    Products of float32 numbers neither overflow nor vanish in float64.
    """
    largest = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
    whole = all(np.array_equal(rows, np.rint(rows)) for rows in (left, right))
    if whole and 4.0 * largest**2 * left.shape[1] < EXACT_SUM:
        return np.zeros(len(left))
    own, other = np.sqrt(squares[0]), float(np.sqrt(squares[1].max(initial=0.0)))
    reach = own * other if distance == "ip" else np.square(own + other)
    rounded = (left.shape[1] + SPARE_ROUNDINGS) * FLOAT64_ROUNDOFF
    found: NDArray[np.float64] = 4.0 * rounded * reach
    return found


@dataclass(frozen=True)
class _Tile:
    """Some queries against references in order of their places, and the distances that a product gave."""

    queries: Vectors
    references: Vectors
    places: Whole
    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    distance: str

    def counts(self, asked: Asked) -> Whole:
        """Before, fewest and most, (3, asked)."""
        turn = np.arange(len(asked)) - np.searchsorted(asked.row, asked.row)  # of each within its row
        if int(turn.max()) < FEW_IN_A_ROW:
            counts = np.zeros((3, len(asked)), np.int64)
            for number in range(int(turn.max()) + 1):  # one comparison with all beats a sort, for few
                (own,) = np.nonzero(turn == number)
                counts[:, own] = self._compared(asked.at(own))
            return counts
        return self._sorted(asked)

    def _compared(self, asked: Asked) -> Whole:
        """The counts of at most one of each row, which is held against the whole row in two passes."""
        values = self.values if len(asked) == len(self.values) else self.values[asked.row]
        error = self.errors[asked.row]
        low, high = (asked.distance - error)[:, None], (asked.distance + error)[:, None]
        closer = np.count_nonzero(values < low, axis=1)
        in_question = np.count_nonzero(values <= high, axis=1) - closer
        own = np.flatnonzero(in_question)
        at, column = np.nonzero((values[own] >= low[own]) & (values[own] <= high[own]))
        return np.stack([closer, closer, closer]) + self._looked_at(asked, own[at], column)

    def _sorted(self, asked: Asked) -> Whole:
        """The counts of many in a row: by its sorted distances, and by a look at what lies within the error."""
        order = np.argsort(self.values, axis=1)
        ordered = np.take_along_axis(self.values, order, axis=1)
        error = self.errors[asked.row]
        low = _places(ordered, asked.row, asked.distance - error, right=False)
        width = _places(ordered, asked.row, asked.distance + error, right=True) - low
        if width.sum() > MOST_LOOKS * self.values.size:
            return self._sorted_exactly(asked, order, low, low + width)
        own = np.repeat(np.arange(len(asked)), width)
        place = np.arange(len(own)) - np.repeat(np.cumsum(width) - width, width)
        return low + self._looked_at(asked, own, order[asked.row[own], low[own] + place])

    def _looked_at(self, asked: Asked, own: Whole, column: Whole) -> Whole:
        """Of the references in question, at these columns, those that count: before, fewest and most, (3, asked)."""
        row, limit = asked.row[own], asked.distance[own]
        values = self._decided((row, column)) if self.errors.any() else self.values[row, column]
        mine = np.searchsorted(self.places, asked.place)
        closer, equal = values < limit, values == limit
        chosen = (
            closer | (equal & (column < mine[own])),
            closer,
            (closer | equal) & (self.places[column] != asked.place[own]),
        )
        return np.stack([np.bincount(own[some], minlength=len(asked)) for some in chosen])

    def _sorted_exactly(self, asked: Asked, order: Whole, low: Whole, high: Whole) -> Whole:
        """The same where most are as near, as of a model that gives all images one vector: each is decided once."""
        values = self.values.copy()
        if self.errors.any():
            edges = np.zeros((len(values), values.shape[1] + 1), np.int64)  # +1 where a window begins, -1 where it ends
            np.add.at(edges, (asked.row, low), 1)
            np.add.at(edges, (asked.row, high), -1)
            at, place = np.nonzero(np.cumsum(edges, axis=1)[:, :-1])
            values[at, order[at, place]] = self._decided((at, order[at, place]))
        order = np.argsort(values, axis=1, kind="stable")  # by (distance, place)
        ordered = np.take_along_axis(values, order, axis=1)
        closer = _places(ordered, asked.row, asked.distance, right=False)
        as_near = _places(ordered, asked.row, asked.distance, right=True)
        column = np.searchsorted(self.places, asked.place)
        before = _places(order, asked.row, column, right=False, between=(closer, as_near))
        return np.stack([before, closer, as_near - self._holds(asked.place, column)])

    def _holds(self, place: Whole, column: Whole) -> NDArray[np.bool_]:
        """Whether references of these places are here, at these columns."""
        here: NDArray[np.bool_] = self.places[np.minimum(column, len(self.places) - 1)] == place
        return here

    def _decided(self, pairs: RowPairs) -> NDArray[np.float64]:
        """The deciding distances; of references that are equal one is measured, where there are many pairs."""
        if len(pairs[0]) < MANY_MEASURED:
            return measured(self.queries, self.references, pairs, self.distance)
        rows = np.ascontiguousarray(self.references).view(np.dtype((np.void, self.references[0].nbytes)))[:, 0]
        _, first, same = np.unique(rows, return_index=True, return_inverse=True)
        kinds, back = np.unique(pairs[0] * len(rows) + first[same[pairs[1]]], return_inverse=True)
        return measured(self.queries, self.references, np.divmod(kinds, len(rows)), self.distance)[back]


def _places(
    ordered: NDArray[np.generic],
    row: Whole,
    value: NDArray[np.generic],
    right: bool,
    between: tuple[Whole, Whole] | None = None,
) -> Whole:
    """Where each value would stand in its row of rising numbers, behind equal ones if `right`; by bisection of all."""
    low, high = between or (np.zeros(len(row), np.int64), np.full(len(row), ordered.shape[1]))
    low, high = low.copy(), high.copy()
    while np.any(low < high):
        middle = (low + high) // 2
        found = ordered[row, np.minimum(middle, ordered.shape[1] - 1)]
        beyond = (found <= value if right else found < value) & (low < high)
        low, high = np.where(beyond, middle + 1, low), np.where(beyond | (low == high), high, middle)
    return low
