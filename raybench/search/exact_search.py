"""Exact nearest rows and exact rows within a limit, by squared L2 distance or inner product; FAISS and GEMM propose.

A proposal is a float32 value with a proven bound of its error, for every order of summation, so for every BLAS, tile
and device. Whatever the bound leaves in question is measured by `row_distances`, row by row in float64, and ordered by
(distance, place). "Distance" falls as things get closer: the squared L2 distance, or minus the inner product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.partials import NO_REFERENCE

METRICS = ("L2", "ip")
UNIT = 2.0**-23  # twice float32's rounding error: the factor to spare covers terms of second order
TINY = 2.0**-120  # what a product of very small numbers may lose
VANISHING = 2.0**-126  # float32 squares below may be lost
HUGE = 2.0**120  # squares beyond may overflow in float32: then nothing that was proposed counts
EINSUM_DIMENSION = 4_096  # longer rows einsum cuts where the block's size says
BLOCK_VALUES = 1 << 18  # float64 values measured at once: 2 MB stay in the cache
CELLS = 1 << 21  # proposals looked at once when a search is widened

Vectors = NDArray[np.float32]  # (n, d), finite
Positions = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows of queries, rows of references
Propose = Callable[[Vectors, Vectors, int, str], tuple[NDArray[np.float32], NDArray[np.int64]]]
Below = Callable[[Vectors, Vectors, NDArray[np.float32]], Positions]
Nearest = tuple[NDArray[np.float64], NDArray[np.int64]]  # distances and places, (queries, k)


@dataclass(frozen=True)
class References:
    """Rows that are searched, each with its place in the whole set, which breaks ties."""

    place: NDArray[np.int64]
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.vectors)


def row_distances(a: Vectors, b: Vectors, metric: str) -> NDArray[np.float64]:
    """The deciding distance of each row of `a` to the same row of `b`.

    >>> a, b = np.array([[1, 2]], np.float32), np.array([[3, 5]], np.float32)
    >>> row_distances(a, b, "L2").tolist(), row_distances(a, b, "ip").tolist()
    ([13.0], [-13.0])
    """
    # Rows in one piece: sums run along memory, and their last bits with it.
    if metric == "L2":
        left: NDArray[np.float64] = np.subtract(a, b, dtype=np.float64, order="C")
        right = left
    else:
        left, right = np.negative(a, dtype=np.float64, order="C"), b.astype(np.float64, order="C")
    return row_sums(left, right) + 0.0  # no negative zero


def row_sums(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of products along each row, equal to the bit for every cut of the rows; both in C order."""
    wide = left.shape[1] > EINSUM_DIMENSION
    sums: NDArray[np.float64] = (left * right).sum(axis=1) if wide else np.einsum("ij,ij->i", left, right)
    return sums


def pair_distances(queries: Vectors, references: Vectors, pairs: Positions, metric: str) -> NDArray[np.float64]:
    """The deciding distances of pairs of rows."""
    out = np.empty(len(pairs[0]), np.float64)
    step = min(max(BLOCK_VALUES // max(queries.shape[1], 1), 1), max(len(out), 1))
    left, right = (np.empty((step, queries.shape[1]), np.float32) for _ in range(2))  # fresh memory would cost a fifth
    for start in range(0, len(out), step):
        query, reference = (column[start : start + step] for column in pairs)
        own, other = left[: len(query)], right[: len(query)]
        np.take(queries, query, axis=0, out=own, mode="clip")  # "raise" would copy twice
        np.take(references, reference, axis=0, out=other, mode="clip")
        out[start : start + step] = row_distances(own, other, metric)
    return out


def nearest_places(
    queries: Vectors, references: References, k: int, margin: int, metric: str, propose: Propose
) -> Nearest:
    """The k nearest references of each query, ordered by (distance, place).

    `propose` gives its float32 values (squared distances, or products) and rows of so many nearest, in their order.
    With fewer than k references a row ends in (inf, NO_REFERENCE).
    """
    if queries.shape[1] != references.vectors.shape[1]:
        raise ValueError(f"queries have dimension {queries.shape[1]}, references {references.vectors.shape[1]}")
    asked = min(k + margin, len(references))
    if not asked or not len(queries):
        return _nothing(len(queries), k)
    values, rows = propose(queries, references.vectors, asked, metric)
    values = values if metric == "L2" else -values
    with np.errstate(invalid="ignore"):  # inf - inf, where products overflowed
        limit = values[:, min(k, asked) - 1] + 2.0 * _errors(queries, references.vectors, metric)
    usable = np.isfinite(limit) & (rows.min(axis=1) >= 0)  # FAISS leaves places open where its values overflow
    settled = usable & ((values[:, -1] > limit) | (asked == len(references)))
    found = _first_of(queries, references, rows, settled[:, None] & ~(values > limit[:, None]), k, metric)
    (unsettled,) = np.nonzero(~settled)
    if len(unsettled):
        proposed = np.where(usable[unsettled, None], rows[unsettled], -1)
        widened = _widened(queries[unsettled], references, proposed, k, metric)
        found[0][unsettled], found[1][unsettled] = widened
    return found


def pairs_within(
    queries: Vectors,
    references: Vectors,
    limits: NDArray[np.float64],
    metric: str,
    below: Below,
    cells: int = CELLS,
) -> Iterator[tuple[Positions, NDArray[np.float64]]]:
    """All pairs whose distance is at most the query's limit, with their distances; whole queries at a time."""
    left, right, proposed = _products(queries, references, limits, metric)
    height = max(cells // max(len(references), 1), 1)
    for start in range(0, len(queries), height):
        at = slice(start, start + height)
        query, reference = below(left[at], right, proposed[at])
        query = query + start
        distances = pair_distances(queries, references, (query, reference), metric)
        kept = distances <= limits[query]
        yield (query[kept], reference[kept]), distances[kept]


def below_by_numpy(left: Vectors, right: Vectors, limits: NDArray[np.float32]) -> Positions:
    """Where the products do not exceed their row's limit; what is not a number counts as below."""
    with np.errstate(over="ignore", invalid="ignore"):
        query, reference = np.nonzero(~(left @ right.T > limits[:, None]))
    return query, reference


def _widened(queries: Vectors, references: References, rows: NDArray[np.int64], k: int, metric: str) -> Nearest:
    """The nearest of queries for which too little was proposed; -1 in `rows` is no proposal."""
    found = _first_of(queries, references, rows, rows >= 0, k, metric)
    limits = found[0][:, -1].copy()  # at least k references are as near as that
    fewer = _first_copies(references, k)
    for (query, reference), distances in pairs_within(queries, fewer.vectors, limits, metric, below_by_numpy):
        _fill(found, query, fewer.place[reference], distances)
    return found


def _first_copies(references: References, k: int) -> References:
    """Without those of equal rows that stand behind k others: of many equal descriptors no more can be needed."""
    rows = np.ascontiguousarray(references.vectors).view(np.dtype((np.void, references.vectors[0].nbytes)))[:, 0]
    _, group = np.unique(rows, return_inverse=True)
    order = np.lexsort((references.place, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    turn = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    kept = np.sort(order[turn < k])
    return references if len(kept) == len(order) else References(references.place[kept], references.vectors[kept])


def _first_of(
    queries: Vectors, references: References, rows: NDArray[np.int64], asked: NDArray[np.bool_], k: int, metric: str
) -> Nearest:
    """Of the rows proposed for each query, (queries, any), those that are asked for, measured; the first k of them."""
    distance, place = _nothing(len(queries), max(k, rows.shape[1]))
    query, column = np.nonzero(asked)
    pairs = query, rows[query, column]
    distance[query, column] = pair_distances(queries, references.vectors, pairs, metric)
    place[query, column] = references.place[pairs[1]]
    order = np.lexsort((place, distance), axis=1)[:, :k]
    return np.take_along_axis(distance, order, axis=1), np.take_along_axis(place, order, axis=1)


def _nothing(queries: int, k: int) -> Nearest:
    return np.full((queries, k), np.inf), np.full((queries, k), NO_REFERENCE, np.int64)


def _fill(found: Nearest, query: NDArray[np.int64], place: NDArray[np.int64], distance: NDArray[np.float64]) -> None:
    """The first k of each query that comes here, by (distance, place)."""
    order = np.lexsort((place, distance, query))
    query, place, distance = query[order], place[order], distance[order]
    first = np.flatnonzero(np.diff(query, prepend=-1))
    turn = np.arange(len(query)) - np.repeat(first, np.diff(first, append=len(query)))
    kept = turn < found[0].shape[1]
    at = query[kept], turn[kept]
    found[0][at], found[1][at] = distance[kept], place[kept]


def _errors(queries: Vectors, references: Vectors, metric: str) -> NDArray[np.float64]:
    """How far a float32 value of each query may be from the truth, for any of the references; inf where unknown."""
    slack = (queries.shape[1] + 16) * UNIT
    with np.errstate(over="ignore"):
        squares = float(np.einsum("ij,ij->i", references, references).max(initial=0.0))  # five times as fast as float64
    own, most = np.sqrt(_squares(queries)), np.sqrt(squares * (1 + slack) + references.shape[1] * VANISHING)
    reach = np.square(own + most)
    error = slack * (reach if metric == "L2" else own * most) + queries.shape[1] * TINY
    return np.where(reach < HUGE, error, np.inf)


def _products(
    queries: Vectors, references: Vectors, limits: NDArray[np.float64], metric: str
) -> tuple[Vectors, Vectors, NDArray[np.float32]]:
    """Factors whose product stays at or below the limits given back for every pair that is within `limits`.

    With s the slack: r^2 - 2 q.r less 2 s r^2 against limit - q^2 + s q^2 for L2; -q.r less 2 s |q| |r| against the
    limit for the inner product. The last column carries what is taken off, so that each reference has its own bound.
    """
    slack = (queries.shape[1] + 16) * UNIT
    own, other = _squares(queries), _squares(references)
    spare = np.abs(limits) * 2.0**-40 + queries.shape[1] * TINY  # of this sum's own rounding
    with np.errstate(over="ignore"):  # what overflows is not safe, so its limit is inf
        if metric == "L2":
            left = np.column_stack([-2 * queries, np.ones(len(queries), np.float32)])
            right = np.column_stack([references, (other * (1 - 2 * slack)).astype(np.float32)])
            bound = limits - own + slack * own + spare
        else:
            left = np.column_stack([-queries, -np.sqrt(own).astype(np.float32)])
            right = np.column_stack([references, (2 * slack * np.sqrt(other)).astype(np.float32)])
            bound = limits + spare
        safe = np.square(np.sqrt(own) + np.sqrt(other.max(initial=0.0))) < HUGE
        rounded = np.nextafter(np.where(safe, bound, np.inf).astype(np.float32), np.float32(np.inf))
    return left, right, rounded


def _squares(rows: Vectors) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return squares
