"""A ranking whose items count as often as the units that they belong to were drawn: the ranks of its positives.

An item that counts twice stands twice in the ranking, one copy behind the other. Only positives, and how many others
stand ahead of each, decide a figure; so others are summed, never written out. The sums are integers, so a draw's ranks
are those of the list that it stands for, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]  # (units,) how often each was drawn
COUNTED = 2**16  # others at once; what is held of them fits into a core's cache


@dataclass(frozen=True)
class DrawnRanks:
    """One draw: how many copies of each positive there are, the rank of each copy (from 1), and how many others."""

    copies: NDArray[np.int64]  # (positives,)
    ranks: NDArray[np.int64]  # (copies,) rising
    others: int

    @property
    def precision(self) -> NDArray[np.float64]:
        """At each copy of a positive."""
        return np.arange(1, len(self.ranks) + 1) / self.ranks


@dataclass(frozen=True)
class DrawnRanking:
    """Items by kind: in rank order the weight's place of each positive and of each other that stands ahead of one.

    A weight belongs to a pair of units (`first`, `second`), or to a single one, which is twice the same.
    """

    first: NDArray[np.int64]  # (weights,)
    second: NDArray[np.int64] | None  # none: every item lies in one unit
    positives: NDArray[np.int32]
    others: NDArray[np.int32]
    ahead: NDArray[np.int64]  # (positives,) how many others stand ahead, copies not counted
    behind: NDArray[np.int64]  # (weights,) how many others stand behind the last positive

    @classmethod
    def of(cls, positive: NDArray[np.bool_], first: NDArray[Any], second: NDArray[Any], units: int) -> DrawnRanking:
        """From flags in rank order, and the units of each item; an item of no unit is a ValueError."""
        if any(len(one) and not 0 <= int(one.min()) <= int(one.max()) < units for one in (first, second)):
            raise ValueError("an item is of a unit that is not there")
        pairs, place = _distinct_pairs(first, second, units)
        found = np.flatnonzero(positive)
        ahead = found - np.arange(len(found))
        others, counted = place[~positive], int(ahead[-1]) if len(found) else 0
        behind = np.bincount(others[counted:], minlength=len(pairs[0]))
        return cls(*pairs, place[found], others[:counted], ahead, behind)

    @classmethod
    def within(
        cls, positives: NDArray[np.int32], others: NDArray[np.int32], ahead: NDArray[np.int64], units: int
    ) -> DrawnRanking:
        """From the unit of each positive and of each other ahead of one."""
        return cls(np.arange(units), None, positives, others, ahead, np.zeros(units, np.int64))

    def ranks(self, times: Times) -> DrawnRanks:
        weights = times if self.second is None else self._weights(times)
        copies = _taken(weights, self.positives)
        ahead, counted = self._ahead(weights)
        ranks = np.repeat(ahead, np.diff(np.cumsum(copies)[self._lasts], prepend=0))
        ranks += np.arange(1, len(ranks) + 1)
        return DrawnRanks(copies, ranks, counted + int((weights * self.behind).sum()))

    @cached_property
    def _lasts(self) -> NDArray[np.int64]:
        """The places of positives that are the last of a run without others between them."""
        return np.flatnonzero(np.diff(self.ahead, append=-1))

    @cached_property
    def _ahead_of_runs(self) -> NDArray[np.int64]:
        return self.ahead[self._lasts]

    def _weights(self, times: Times) -> NDArray[np.int64]:
        own = times[self.first]
        return np.where(self.first == self.second, own, own * times[self.second])

    def _ahead(self, weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """How many copies of others stand ahead of each run of positives, and of the last."""
        ahead = self._ahead_of_runs
        found = np.zeros(len(ahead), np.int64)
        total, first = 0, int(np.searchsorted(ahead, 0, side="right"))
        for start in range(0, len(self.others), COUNTED):
            sums = np.cumsum(weights.take(self.others[start : start + COUNTED]))
            last = int(np.searchsorted(ahead, start + len(sums), side="right"))
            found[first:last] = total + sums[ahead[first:last] - start - 1]
            total, first = total + int(sums[-1]), last
        return found, total


def _taken(weights: NDArray[np.int64], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """The weights at these places, a few at once, since the memory of large results is asked for anew each time."""
    found = np.empty(len(places), np.int64)
    for start in range(0, len(places), COUNTED):
        some = slice(start, start + COUNTED)
        np.take(weights, places[some], out=found[some], mode="clip")  # which is quicker than to look for wrong places
    return found


def _distinct_pairs(
    first: NDArray[Any], second: NDArray[Any], units: int
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64] | None], NDArray[np.int32]]:
    """Distinct pairs of units, in whatever order a pair names them, and which of them each item has."""
    if first is second or np.array_equal(first, second):
        return (np.arange(units), None), first.astype(np.int32)
    keys = np.minimum(first, second).astype(np.int64) * units + np.maximum(first, second)
    known, place = np.unique(keys, return_inverse=True)
    return np.divmod(known, units), place.astype(np.int32)
