"""Pieces of a file that lie near each other, read together: few large requests where there would be many small ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 2**22  # read at once, unless one piece takes more


def near_ranges(
    which: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], gap_bytes: int
) -> list[NDArray[np.int64]]:
    """Pieces `start..end` of files `which`, in groups of one file with gaps of at most so many bytes between them.

    >>> start = np.array([0, 500, 20, 10])
    >>> [group.tolist() for group in near_ranges(np.array([0, 0, 0, 1]), start, start + 10, 100)]
    [[0, 2], [1], [3]]
    """
    order = np.lexsort((start, which))
    groups: list[list[int]] = []
    first, last, at = 0, 0, -1
    for piece, own, begins, ends in zip(
        order.tolist(), which[order].tolist(), start[order].tolist(), end[order].tolist(), strict=True
    ):
        if own == at and begins - last <= gap_bytes and ends - first <= MOST_BYTES:
            groups[-1].append(piece)
            last = max(last, ends)
        else:
            groups.append([piece])
            first, last, at = begins, ends, own
    return [np.array(group, np.int64) for group in groups]
