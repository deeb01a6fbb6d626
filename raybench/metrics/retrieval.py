"""Lists of what was retrieved: the query at their head, what in them is relevant. Patches are codes, -1 pads a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags


def query_first(lists: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lists with each query in the first place: it is swapped, not moved, with what is there.

    A query that its own list does not hold (more equals come before it than the list is long) takes that place alike.

    >>> query_first(np.array([[4, 5, 6], [1, 2, 3]]), np.array([6, 9])).tolist()
    [[6, 5, 4], [9, 2, 3]]
    """
    swapped = lists.copy()
    rows, places = np.nonzero(lists == queries[:, None])
    swapped[rows, places] = lists[rows, 0]
    swapped[:, 0] = queries
    return swapped


def among(found: NDArray[np.int64], wanted: NDArray[np.int64]) -> Flags:
    """Which of the found (queries, n) are among the query's wanted ones (queries, m); padding is not.

    >>> among(np.array([[1, 2, -1]]), np.array([[2, -1]])).tolist()
    [[False, True, False]]
    """
    hit: Flags = (found[:, :, None] == wanted[:, None, :]).any(axis=2) & (found >= 0)
    return hit
