"""The nearest reference of each query, exactly: a product proposes, the row-wise float64 routine decides.

The rule of the HPatches matching task: the smallest distance, and among equal ones the first reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.distances import row_distances
from raybench.metrics.hpatches_proposals import ROWS_AT_ONCE, proposer

QUERIES_AT_ONCE = 256


def nearest(
    queries: NDArray[Any], references: NDArray[Any], distance: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The index of the nearest reference of each query and its distance; ties go to the lower index.

    >>> nearest(np.array([[0.0], [5.0]]), np.array([[4.0], [1.0], [-1.0]]), "L2")
    (array([1, 0]), array([1., 1.]))
    """
    proposed = proposer(queries, references, distance)
    index = np.empty(len(queries), np.int64)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        rows = slice(start, min(start + QUERIES_AT_ONCE, len(queries)))
        closeness = proposed.closeness(rows)
        best = closeness.argmax(axis=1)
        floor = closeness[np.arange(len(best)), best].astype(np.float64) - proposed.slack(rows)
        kind = closeness.dtype.type
        tied = closeness >= np.nextafter(floor.astype(kind), kind(-np.inf))[:, None]
        open_rows = np.flatnonzero(tied.sum(axis=1) > 1)
        for row in open_rows.tolist():
            candidates = np.flatnonzero(tied[row])
            best[row] = candidates[_distances(queries[start + row], references, candidates, distance).argmin()]
        index[rows] = best
    return index, row_distances(queries, references[index], distance)


def _distances(
    query: NDArray[Any], references: NDArray[Any], candidates: NDArray[np.int64], distance: str
) -> NDArray[np.float64]:
    parts = [
        row_distances(query[None], references[candidates[start : start + ROWS_AT_ONCE]], distance)
        for start in range(0, len(candidates), ROWS_AT_ONCE)
    ]
    return np.concatenate(parts)
