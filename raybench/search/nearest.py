"""The K nearest references of queries, and how many references are closer than the true one: exact, tile by tile.

`metrics.proposals` proposes every reference that its error bound leaves in question; the row-wise float64 routine
decides, ordered by (distance, index). So results are equal to the byte for every tile, shard, library and device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.distances import as_compared, row_distances
from raybench.search.proposals import Proposals, proposing

TILE_CELLS = 1 << 21  # proposals at once: 8 MB of float32; image pairs are then two tiles or three
BLOCK = 2_048  # pairs of rows decided at once: their float64 differences of 128-d stay in the cache
FEW = 4  # neighbours that are found by as many passes over the proposals; for more, groups of columns are faster
GROUP = 8  # columns that are looked at together: a group whose least value is too large is passed over
COLUMNS_PER_NEIGHBOUR = 16  # left when the k-th value is bounded; fewer would propose more, more would take longer

Rows = NDArray[Any]  # (n, d)
Positions = tuple[NDArray[np.int64], NDArray[np.int64]]  # queries of a tile, and references


@dataclass(frozen=True)
class Neighbours:
    """The nearest references of each query, in order of (distance, index)."""

    distance: NDArray[np.float64]  # (queries, k), rising along a row
    index: NDArray[np.int64]  # (queries, k), rows of the references

    def at(self, rows: slice) -> Neighbours:
        """Those of some queries, as views."""
        return Neighbours(self.distance[rows], self.index[rows])


def nearest(queries: Rows, references: Rows, k: int, distance: str, tile_cells: int = TILE_CELLS) -> Neighbours:
    """The k nearest references of each query (all of them if there are fewer). Ties go to the lower index.

    >>> nearest(np.array([[0.0]]), np.array([[2.0], [1.0], [-1.0]]), 2, "L2").index.tolist()
    [[1, 2]]
    """
    queries, references, distance = as_compared(queries, references, distance)
    found = _empty(len(queries), min(k, len(references)))
    for at, proposals, padded in _tiles(queries, references, distance, tile_cells):
        _find(queries[at], references, distance, proposals, padded, found.at(at))
    return found


def nearest_and_closer(
    queries: Rows, references: Rows, truth: NDArray[np.int64], k: int, distance: str, tile_cells: int = TILE_CELLS
) -> tuple[Neighbours, NDArray[np.int64]]:
    """The nearest references, and for each query how many references come before its true one.

    >>> nearest_and_closer(np.array([[0.0]]), np.array([[2.0], [1.0], [-1.0]]), np.array([0]), 1, "L2")[1].tolist()
    [2]
    """
    queries, references, distance = as_compared(queries, references, distance)
    found = _empty(len(queries), min(k, len(references)))
    closer = np.zeros(len(queries), np.int64)
    for at, proposals, padded in _tiles(queries, references, distance, tile_cells):
        own = found.at(at)
        _find(queries[at], references, distance, proposals, padded, own)
        hits = own.index == truth[at, None]
        closer[at] = hits.argmax(axis=1)
        (beyond,) = np.nonzero(~hits.any(axis=1))  # only where the true one is not among the nearest is more to count
        values, error = proposals.values[beyond], proposals.error[beyond]
        closer[at.start + beyond] = _closer(queries[at][beyond], references, truth[at][beyond], distance, values, error)
    return found, closer


def _empty(queries: int, k: int) -> Neighbours:
    return Neighbours(np.empty((queries, k), np.float64), np.empty((queries, k), np.int64))


def _tiles(
    queries: Rows, references: Rows, distance: str, tile_cells: int
) -> Iterator[tuple[slice, Proposals, NDArray[np.float32]]]:
    """Tiles of queries with their proposals, and these once more, padded with inf to whole groups of columns."""
    if queries.shape[1] != references.shape[1]:
        raise ValueError(f"queries have dimension {queries.shape[1]}, references {references.shape[1]}")
    propose = proposing(references, distance)
    most = max(tile_cells // max(len(references), 1), 1)
    height = -(-len(queries) // max(-(-len(queries) // most), 1))  # tiles of one size
    padded = np.empty((height, -(-len(references) // GROUP) * GROUP), np.float32)
    padded[:, len(references) :] = np.inf
    for start in range(0, len(queries), max(height, 1)):
        at = slice(start, min(start + height, len(queries)))
        own = padded[: at.stop - at.start]
        yield at, propose(queries[at], own[:, : len(references)]), own


def _find(
    queries: Rows,
    references: Rows,
    distance: str,
    proposals: Proposals,
    padded: NDArray[np.float32],
    found: Neighbours,
) -> None:
    """Fill in one tile."""
    k = found.index.shape[1]
    if not 0 < k <= FEW or k == len(references):
        candidates = _in_question(padded, proposals.error, k)
        found.index[:], found.distance[:] = _decided(queries, references, distance, candidates, k)
        return
    columns, values = _lowest(padded, k + 1)
    # Beyond their error the k lowest are the k nearest; a row with a value that is not a number has that first.
    with np.errstate(invalid="ignore"):
        limit = values[:, k - 1] + 2 * proposals.error
    settled = (values[:, k] > limit) & ~np.isnan(values[:, 0])
    found.index[:], found.distance[:] = _ordered(queries, references, distance, np.sort(columns[:, :k], axis=1))
    (left,) = np.nonzero(~settled)
    if len(left):
        candidates = _in_question(padded[left], proposals.error[left], k)
        found.index[left], found.distance[left] = _decided(queries[left], references, distance, candidates, k)


def _lowest(values: NDArray[np.float32], count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Columns and values of the `count` lowest of each row, rising; one pass each, which numpy does in no time.

    Padding is never among the columns: at inf the first leads. What is not in one piece, argmin would copy.
    """
    rows = np.arange(len(values))
    columns = np.empty((count, len(values)), np.int64)
    lowest = np.empty((count, len(values)), np.float32)
    for column, low in zip(columns, lowest, strict=True):
        values.argmin(axis=1, out=column)
        low[:] = values[rows, column]
        values[rows, column] = np.inf
    for column, low in zip(columns[::-1], lowest[::-1], strict=True):  # where all are inf a column may come twice
        values[rows, column] = low
    return columns.T, lowest.T


def _ordered(
    queries: Rows, references: Rows, distance: str, index: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """These references of each query (queries, k), rising by index, in order of (distance, index)."""
    distances = np.empty(index.shape, np.float64)
    for start in range(0, len(queries), BLOCK):
        block = slice(start, start + BLOCK)
        for turn in range(index.shape[1]):
            distances[block, turn] = row_distances(queries[block], references[index[block, turn]], distance)
    order = np.argsort(distances, axis=1, kind="stable")
    order += np.arange(len(index))[:, None] * index.shape[1]  # places in all rows: two calls less deep than by row
    return index.take(order), distances.take(order)


def _in_question(padded: NDArray[np.float32], error: NDArray[np.float32], k: int) -> Positions:
    """Queries and references of all pairs that may be among the k nearest, padding perhaps among them.

    At least k references are within `bound + error` in truth; one proposed above `bound + 2 error` is farther than all
    of these. Comparisons are written so that a value that is not a number counts as in question.
    """
    groups = padded.reshape(len(padded), GROUP, padded.shape[1] // GROUP)  # group g has columns g, g + width, …
    width = groups.shape[2]
    if not k or not width:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    least = groups.min(axis=1)
    with np.errstate(invalid="ignore"):
        limit = _bound_of_kth(least if width >= COLUMNS_PER_NEIGHBOUR * k else padded, k) + 2 * error
    query, group = _positions(~(least > limit[:, None]))
    member, turn = _positions(~(groups[query, :, group] > limit[query, None]))
    return query[member], turn * width + group[member]


def _decided(
    queries: Rows, references: Rows, distance: str, candidates: Positions, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The candidates are measured and ordered, and the first k of each query are kept."""
    query, reference = (column[candidates[1] < len(references)] for column in candidates)
    distances = _pair_distances(queries, references, query, reference, distance)
    order = np.lexsort((reference, distances, query))
    counts = np.bincount(query, minlength=len(queries))
    first = order[(np.cumsum(counts) - counts)[:, None] + np.arange(k)]
    return reference[first], distances[first]


def _bound_of_kth(values: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """A value for each row that at least k of its columns do not exceed.

    Columns are folded to minima of disjoint groups, which is much faster than selecting among all of them.
    """
    while values.shape[1] >= 2 * COLUMNS_PER_NEIGHBOUR * k:
        half = values.shape[1] // 2
        values = np.minimum(values[:, :half], values[:, half : 2 * half])
    kth: NDArray[np.float32] = np.partition(values, k - 1, axis=1)[:, k - 1]
    return kth


def _closer(
    queries: Rows,
    references: Rows,
    truth: NDArray[np.int64],
    distance: str,
    values: NDArray[np.float32],
    error: NDArray[np.float32],
) -> NDArray[np.int64]:
    """How many references come before the true one: those surely closer, and those that a measurement finds so."""
    own = values[np.arange(len(queries)), truth]
    with np.errstate(invalid="ignore"):  # of what overflowed everything is measured
        low, high = own - 2 * error, own + 2 * error
    surely = values < low[:, None]
    query, reference = _positions(~(surely | (values > high[:, None])))
    true_distances = row_distances(queries, references[truth], distance)
    distances = _pair_distances(queries, references, query, reference, distance)
    limit = true_distances[query]
    before = (distances < limit) | ((distances == limit) & (reference < truth[query]))
    counts: NDArray[np.int64] = surely.sum(axis=1) + np.bincount(query[before], minlength=len(queries))
    return counts


def _positions(mask: NDArray[np.bool_]) -> Positions:
    """Rows and columns of what is set, in order."""
    flat = np.flatnonzero(mask)
    rows, columns = np.divmod(flat, max(mask.shape[1], 1))
    return rows, columns


def _pair_distances(
    queries: Rows, references: Rows, query: NDArray[np.int64], reference: NDArray[np.int64], distance: str
) -> NDArray[np.float64]:
    out = np.empty(len(query), np.float64)
    for start in range(0, len(query), BLOCK):
        block = slice(start, start + BLOCK)
        out[block] = row_distances(queries[query[block]], references[reference[block]], distance)
    return out
