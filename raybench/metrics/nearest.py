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

from raybench.metrics.distances import row_distances
from raybench.metrics.proposals import Proposals, proposing

TILE_CELLS = 1 << 20  # proposals at once: 4 MB of float32
BLOCK = 2_048  # pairs of rows decided at once: their float64 differences of 128-d stay in the cache
GROUP = 8  # columns that are looked at together: a group whose least value is too large is passed over
COLUMNS_PER_NEIGHBOUR = 16  # left when the k-th value is bounded; fewer would propose more, more would take longer

Rows = NDArray[Any]  # (n, d)
Positions = tuple[NDArray[np.int64], NDArray[np.int64]]  # queries of a tile, and references


@dataclass(frozen=True)
class Neighbours:
    """The nearest references of each query, in order of (distance, index)."""

    distance: NDArray[np.float64]  # (queries, k), rising along a row
    index: NDArray[np.int64]  # (queries, k), rows of the references


def nearest(queries: Rows, references: Rows, k: int, distance: str, tile_cells: int = TILE_CELLS) -> Neighbours:
    """The k nearest references of each query (all of them if there are fewer). Ties go to the lower index.

    >>> nearest(np.array([[0.0]]), np.array([[2.0], [1.0], [-1.0]]), 2, "L2").index.tolist()
    [[1, 2]]
    """
    found = _empty(len(queries), min(k, len(references)))
    for at, proposals, padded in _tiles(queries, references, distance, tile_cells):
        candidates = _in_question(padded, proposals.error, found.index.shape[1])
        _decide(queries[at], references, distance, candidates, found, at)
    return found


def nearest_and_closer(
    queries: Rows, references: Rows, truth: NDArray[np.int64], k: int, distance: str, tile_cells: int = TILE_CELLS
) -> tuple[Neighbours, NDArray[np.int64]]:
    """The nearest references, and for each query how many references come before its true one.

    >>> nearest_and_closer(np.array([[0.0]]), np.array([[2.0], [1.0], [-1.0]]), np.array([0]), 1, "L2")[1].tolist()
    [2]
    """
    found = _empty(len(queries), min(k, len(references)))
    closer = np.zeros(len(queries), np.int64)
    for at, proposals, padded in _tiles(queries, references, distance, tile_cells):
        candidates = _in_question(padded, proposals.error, found.index.shape[1])
        _decide(queries[at], references, distance, candidates, found, at)
        hits = found.index[at] == truth[at, None]
        closer[at] = hits.argmax(axis=1)
        (beyond,) = np.nonzero(~hits.any(axis=1))  # only where the true one is not among the nearest is more to count
        left = Proposals(proposals.values[beyond], proposals.error[beyond])
        closer[at.start + beyond] = _closer(queries[at][beyond], references, truth[at][beyond], distance, left)
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
    height = min(max(tile_cells // max(len(references), 1), 1), max(len(queries), 1))
    padded = np.full((height, -(-len(references) // GROUP) * GROUP), np.inf, np.float32)
    for start in range(0, len(queries), height):
        at = slice(start, min(start + height, len(queries)))
        own = padded[: at.stop - at.start]
        yield at, propose(queries[at], own[:, : len(references)]), own


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
    limit = _bound_of_kth(least if width >= COLUMNS_PER_NEIGHBOUR * k else padded, k) + 2 * error
    query, group = _positions(~(least > limit[:, None]))
    member, turn = _positions(~(groups[query, :, group] > limit[query, None]))
    return query[member], turn * width + group[member]


def _decide(
    queries: Rows, references: Rows, distance: str, candidates: Positions, found: Neighbours, at: slice
) -> None:
    """Fill in one tile: the candidates are measured and ordered, and the first k of each query are kept."""
    query, reference = (column[candidates[1] < len(references)] for column in candidates)
    distances = _pair_distances(queries, references, query, reference, distance)
    order = np.lexsort((reference, distances, query))
    counts = np.bincount(query, minlength=len(queries))
    first = order[(np.cumsum(counts) - counts)[:, None] + np.arange(found.index.shape[1])]
    found.distance[at], found.index[at] = distances[first], reference[first]


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
    queries: Rows, references: Rows, truth: NDArray[np.int64], distance: str, proposals: Proposals
) -> NDArray[np.int64]:
    """How many references come before the true one: those surely closer, and those that a measurement finds so."""
    values = proposals.values
    own = values[np.arange(len(queries)), truth]
    margin = 2 * proposals.error
    surely = values < (own - margin)[:, None]
    query, reference = _positions(~(surely | (values > (own + margin)[:, None])))
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
