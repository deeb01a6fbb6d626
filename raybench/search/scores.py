"""Scores of queries against the references that pass by: one matrix product, whose error is known.

A score is q.r, or for squared distances of vectors of unequal length q.r - |r|^2 / 2; it rises as things get closer.
The queries' factor is made once, the references' once per block, so each reference goes to the device once, however
many queries there are. numpy's scores, in float32, are here; torch's, in bfloat16 or on a GPU, are in `coarse`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.search.bound import Bound, largest, norms, radius, scale_of

FLOAT64_SHARE = 2.0**-29  # of float32's rounding is float64's
OFFSET_REACH = 1.01  # an offset in parts of bfloat16 has a reach of 1 + 2**-8 + 2**-16 of its size
NARROW_SPREAD = 2.0**-9  # of |r|^2 / 2: up to here q.r serves squared distances, too

Reached = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]  # query, reference, score; by query


class Scores(Protocol):
    """Scores of the queries that it was made with. References are put one block after the other."""

    rounding: float  # the share of a score by which it may have been rounded when it was stored
    block_references: int  # that are put at once
    tile_cells: int  # scores at once

    def put(self, references: NDArray[np.float32], offsets: NDArray[np.float32] | None) -> NDArray[np.float64]:
        """Make these the references, less their offsets; how far a query's scores may be off before they are stored."""
        ...

    def values(self, rows: slice) -> NDArray[np.float32]:
        """Scores of some queries against the references, (queries, references); they stand until the next call."""
        ...

    def reaching(self, rows: slice, limits: NDArray[np.float64]) -> Reached:
        """All pairs of some queries whose score is at least the query's limit, rounded as scores are."""
        ...


class FloatScores:
    """Scores by numpy, in float32."""

    rounding = 0.0
    block_references = 8_192
    tile_cells = 1 << 22

    def __init__(self, queries: NDArray[np.float32]) -> None:
        self._queries = np.ascontiguousarray(np.column_stack([queries, np.ones(len(queries), np.float32)]))
        self._lengths = norms(queries, "ip")
        self._references = queries[:0]
        self._values = np.empty(0, np.float32)  # fresh memory for every tile would cost a tenth of the time

    def put(self, references: NDArray[np.float32], offsets: NDArray[np.float32] | None) -> NDArray[np.float64]:
        self._references = references if offsets is None else np.column_stack([references, -offsets])
        return product_errors(self._lengths, radius(references), references.shape[1], offsets)

    def values(self, rows: slice) -> NDArray[np.float32]:
        own = self._queries[rows, : self._references.shape[1]]
        count = len(own) * len(self._references)
        if len(self._values) < count:
            self._values = np.empty(count, np.float32)
        return np.matmul(own, self._references.T, out=self._values[:count].reshape(len(own), -1))

    def reaching(self, rows: slice, limits: NDArray[np.float64]) -> Reached:
        values = self.values(rows)
        query, reference = set_places(values >= rounded_down(limits)[:, None])
        return query + rows.start, reference, values[query, reference]


def product_errors(
    lengths: NDArray[np.float64], longest: float, dimension: int, offsets: NDArray[np.float32] | None
) -> NDArray[np.float64]:
    """How far a float32 score of each query may be off, of references of at most this length and of these offsets.

    An offset is itself off by as many roundings as the product: of |r|^2 / 2, and of its own size, which in a block of
    short references is that of the run's origin. The float64 routine that decides sums squares of differences: of a
    query much longer than the references its own rounding is what counts.
    """
    bound = Bound("ip", dimension + 3)
    reach = lengths * longest + FLOAT64_SHARE * np.square(lengths + longest)
    if offsets is not None:
        reach += longest**2 + OFFSET_REACH * float(np.abs(offsets).max(initial=0.0))
    return bound.share * reach + bound.lost(lengths, longest)


def rounded_down(limits: NDArray[np.float64]) -> NDArray[np.float32]:
    """The nearest float32 that is not above each limit."""
    near = limits.astype(np.float32)
    return np.where(near > limits, np.nextafter(near, np.float32(-np.inf)), near)


def set_places(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of what is set, in order, where little is: eight cells are passed over at once."""
    flat = mask.reshape(-1)
    whole = len(flat) // 8 * 8
    words = np.flatnonzero(flat[:whole].view(np.uint64) != 0)
    word, turn = np.nonzero(flat[:whole].reshape(-1, 8)[words])
    places = np.concatenate([words[word] * 8 + turn, whole + np.flatnonzero(flat[whole:])])
    rows, columns = np.divmod(places, max(mask.shape[1], 1))
    return rows, columns


@dataclass(frozen=True)
class Lengths:
    """What the lengths of the references of a run ask for.

    Squared distances are ordered by q.r - |r|^2 / 2. Where all |r|^2 / 2 lie within a narrow `spread`, q.r alone serves
    both distances; else each block is put with offsets, its |r|^2 / 2 less `origin`, which changes no order but keeps
    scores small.
    """

    spread: float
    origin: float

    @property
    def is_narrow(self) -> bool:
        return self.spread <= NARROW_SPREAD * self.origin

    @classmethod
    def of(cls, pieces: Sequence[NDArray[np.float32]]) -> Lengths:
        halves = [half_squares(piece) for piece in pieces]
        low, high = (float(pick([pick(one) for one in halves])) for pick in (min, max))
        share = Bound("squared_L2", pieces[0].shape[1]).share
        return cls((high - low) + 2.0 * share * high, (low + high) / 2.0)

    def offsets(self, references: NDArray[np.float32]) -> NDArray[np.float32]:
        return half_squares(references) - np.float32(self.origin)


def half_squares(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    squares: NDArray[np.float32] = np.einsum("ij,ij->i", rows, rows)
    return squares / np.float32(2)


def is_tame(rows: NDArray[np.float32]) -> bool:
    """Whether squares of these rows neither overflow nor, all of them, vanish in float32."""
    size = largest(rows)
    return bool(np.isfinite(size)) and scale_of(size) == 1.0
