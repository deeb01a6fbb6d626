"""Lists of what was retrieved: the query at their head, what in them is relevant. Patches are codes, -1 pads a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags, found_ap


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


@dataclass(frozen=True)
class ListTies:
    """The AP (see `found_ap`) of each query in the worst and the best case."""

    worst: NDArray[np.float64]
    best: NDArray[np.float64]


def list_ties(relevant: Flags, distance: NDArray[np.float64], open_end: Flags, more: NDArray[np.int64]) -> ListTies:
    """What ties make of lists (queries, n): neighbours at one distance may stand in any order.

    With an open end what is beyond the list is as near as its last place. Then any number of the places of that last
    tie may be relevant, as far as `more` relevant ones may be beyond; how many these really are nobody looked up, so
    that such a case need not be reached.

    >>> list_ties(np.array([[False, True]]), np.array([[1.0, 1.0]]), np.array([False]), np.array([0]))
    ListTies(worst=array([0.5]), best=array([1.]))
    """
    worst, best = extreme_lists(relevant, distance)
    found = ListTies(found_ap(worst), found_ap(best))
    rows = np.flatnonzero(open_end)
    if len(rows):
        last = distance[rows] == distance[rows, -1:]
        found.best[rows] = _open_ap(best[rows] & ~last, last, relevant[rows], more[rows], at_front=True).max(axis=0)
        found.worst[rows] = _open_ap(worst[rows] & ~last, last, relevant[rows], more[rows], at_front=False).min(axis=0)
    return found


def extreme_lists(relevant: Flags, distance: NDArray[np.floating[Any]]) -> tuple[Flags, Flags]:
    """Lists (queries, n) with wrong ones first among neighbours at one distance, and with relevant ones first.

    >>> [flags.tolist() for flags in extreme_lists(np.array([[True, False, True]]), np.array([[1.0, 1.0, 2.0]]))]
    [[[False, True, True]], [[True, False, True]]]
    """
    tie = np.zeros(relevant.shape, np.int64)
    np.cumsum(distance[:, 1:] != distance[:, :-1], axis=1, out=tie[:, 1:])
    worst: Flags = np.sort(tie * 2 + relevant, axis=1) % 2 == 1
    best: Flags = np.sort(tie * 2 + ~relevant, axis=1) % 2 == 0
    return worst, best


def _open_ap(
    before: Flags, last: Flags, relevant: Flags, more: NDArray[np.int64], at_front: bool
) -> NDArray[np.float64]:
    """(cases, queries): AP if 0, 1, … places of the last tie are relevant, its first or its last ones.

    Cases that can't be repeat the last one that can.
    """
    size = last.sum(axis=1)
    most = np.minimum(size, (relevant & last).sum(axis=1) + more)
    place = np.arange(last.shape[1])
    start = last.shape[1] - size
    cases = []
    for case in range(int(most.max(initial=0)) + 1):
        count = np.minimum(case, most)
        first = start if at_front else last.shape[1] - count
        chosen = (place >= first[:, None]) & (place < (first + count)[:, None])
        cases.append(found_ap(before | chosen))
    return np.stack(cases)
