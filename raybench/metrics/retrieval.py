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


def list_ties(relevant: Flags, distance: NDArray[np.float64], length: int, more: NDArray[np.int64]) -> ListTies:
    """What ties make of lists that end at `length`, of neighbours (queries, n) known beyond: equal ones in any order.

    If a tie reaches beyond even these, `more` relevant ones and any number of others may be in it: nobody looked them
    up, so that such a case need not be reached. Padding has the distance inf.

    >>> list_ties(np.array([[False, True]]), np.array([[1.0, 1.0]]), 2, np.array([0]))
    ListTies(worst=array([0.5]), best=array([1.]))
    >>> list_ties(np.array([[False, True, False]]), np.array([[1.0, 1.0, 2.0]]), 1, np.array([0]))
    ListTies(worst=array([0.]), best=array([1.]))
    """
    inside = slice(length)
    worst, best = extreme_lists(relevant[:, inside], distance[:, inside])
    found = ListTies(found_ap(worst), found_ap(best))
    last = distance[:, inside][:, -1:]
    tied = (distance == last) & np.isfinite(last)
    rows = np.flatnonzero(tied[:, length:].any(axis=1))
    if len(rows):
        places, (fewest, most) = tied[rows, inside], _open_places(relevant[rows], tied[rows], length, more[rows])
        found.best[rows] = _open_ap(best[rows] & ~places, places, fewest, most, at_front=True).max(axis=0)
        found.worst[rows] = _open_ap(worst[rows] & ~places, places, fewest, most, at_front=False).min(axis=0)
    return found


def _open_places(
    relevant: Flags, tied: Flags, length: int, more: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many of a list's places in the tie at its end may be relevant: at least, and at most."""
    places = tied[:, :length].sum(axis=1)
    beyond = tied[:, -1]
    right = (relevant & tied).sum(axis=1) + np.where(beyond, more, 0)
    wrong = (~relevant & tied).sum(axis=1) + np.where(beyond, places, 0)
    return np.maximum(places - wrong, 0), np.minimum(places, right)


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
    before: Flags, places: Flags, fewest: NDArray[np.int64], most: NDArray[np.int64], at_front: bool
) -> NDArray[np.float64]:
    """(cases, queries): AP by how many of the last places are relevant, its first or its last ones.

    Cases that can't be repeat the nearest one that can.
    """
    place, length = np.arange(places.shape[1]), places.shape[1]
    start = length - places.sum(axis=1)
    cases = []
    for case in range(int(most.max(initial=0)) + 1):
        count = np.clip(case, fewest, most)
        first = start if at_front else length - count
        chosen = (place >= first[:, None]) & (place < (first + count)[:, None])
        cases.append(found_ap(before | chosen))
    return np.stack(cases)
