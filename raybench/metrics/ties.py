"""What figures would be if equal distances were ordered otherwise: the worst and the best case of the same distances.

Published tools break ties by chance of their input: the order of a file, the lower index. So a descriptor that can't
tell patches apart may look perfect. Here wrong items stand first among equal ones (worst), or right ones (best). Where
the nearest of several targets is a decision, a target as near as the true one makes it open (`maybe`): right in the
best case, wrong in the worst. Both cases can be reached, unless a function says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags, tied_places, trapezoid_ap_of_ranks


@dataclass(frozen=True)
class TiedRanking:
    """The flags of one ranking in the worst and the best case, and how many items stand in ties of right and wrong."""

    worst: Flags
    best: Flags
    tied: int


def tied_ranking(ranked: NDArray[np.float64], relevant: Flags) -> TiedRanking:
    """Both cases of items in rank order, by their rising distances; the flags themselves where no tie matters.

    >>> both = tied_ranking(np.array([1.0, 1.0, 2.0]), np.array([True, False, True]))
    >>> both.worst.tolist(), both.best.tolist(), both.tied
    ([False, True, True], [True, False, True], 2)
    """
    places, group = tied_places(ranked)
    size, right = (np.bincount(group, weights) for weights in (None, relevant[places]))
    mixed = (right > 0) & (right < size)
    if not mixed.any():
        return TiedRanking(relevant, relevant, 0)
    turn = np.arange(len(group)) - (np.cumsum(size) - size)[group]
    best, worst = relevant.copy(), relevant.copy()
    best[places] = turn < right[group]
    worst[places] = turn >= (size - right)[group]
    return TiedRanking(worst, best, int(size[mixed].sum()))


@dataclass(frozen=True)
class OpenDecisions:
    """One decision per item, ranked by a key (equal keys are tied): surely right, or right if a tie goes that way."""

    key: NDArray[np.int64]
    surely: Flags
    maybe: Flags  # none of the sure ones

    @property
    def tied(self) -> int:
        """Items that are open, or stand in a tie of right and wrong."""
        size, right = (np.bincount(self.key, weights) for weights in (None, self.surely | self.maybe))
        mixed = (right > 0) & (right < size)
        return int(np.count_nonzero(self.maybe | mixed[self.key]))

    def best(self) -> tuple[Flags, Flags]:
        """`surely` and `maybe` in rank order, in each tie the right ones first, then the open ones."""
        return self._ordered(np.where(self.surely, 0, np.where(self.maybe, 1, 2)))

    def worst(self) -> tuple[Flags, Flags]:
        """The same with the right ones last, the open ones before them."""
        return self._ordered(np.where(self.surely, 2, np.where(self.maybe, 1, 0)))

    def _ordered(self, kind: NDArray[np.int64]) -> tuple[Flags, Flags]:
        order = np.argsort(self.key * 3 + kind, kind="stable")
        return self.surely[order], self.maybe[order]


@dataclass(frozen=True)
class Range:
    """The least and the most that a figure can be."""

    worst: float
    best: float


def success_range(decisions: OpenDecisions) -> Range:
    """Of the share that is right."""
    return Range(float(decisions.surely.mean()), float((decisions.surely | decisions.maybe).mean()))


def trapezoid_range(decisions: OpenDecisions) -> Range:
    """Of the trapezoid AP whose recall is divided by all items: each right one, and each place gained, raises it.

    >>> trapezoid_range(OpenDecisions(np.array([0, 0]), np.array([True, False]), np.array([False, False])))
    Range(worst=0.125, best=0.5)
    """
    count = len(decisions.key)
    surely, (right, maybe) = decisions.worst()[0], decisions.best()
    worst, best = (trapezoid_ap_of_ranks(np.flatnonzero(flags) + 1, count) for flags in (surely, right | maybe))
    return Range(float(worst), float(best))


def found_ap_ranges(decisions: OpenDecisions) -> tuple[Range, Range]:
    """Of the TREC AP over the right ones that are found (see `ranking.found_ap`), and of the same over all items.

    The first may fall when one more is right. But of all choices of so many open items, the first in rank have the
    highest AP and the last the lowest; hence the extremes over their number are exact.

    >>> decisions = OpenDecisions(np.array([0, 1]), np.array([True, False]), np.array([False, True]))
    >>> found_ap_ranges(decisions)
    (Range(worst=1.0, best=1.0), Range(worst=0.5, best=1.0))
    """
    count = len(decisions.key)
    best = _precision_sums(*decisions.best(), from_first=True)
    worst = _precision_sums(*decisions.worst(), from_first=False)
    right = int(decisions.surely.sum()) + np.arange(len(best))
    of_best, of_worst = (sums / np.maximum(right, 1) for sums in (best, worst))
    return (
        Range(float(of_worst.min()), float(of_best.max())),
        Range(float(worst[0] / count), float(best[-1] / count)),
    )


def _precision_sums(surely: Flags, maybe: Flags, from_first: bool) -> NDArray[np.float64]:
    """Sums of the precision at right items when 0, 1, … open ones are right, too: the first in rank, or the last."""
    rank = np.arange(1, len(surely) + 1)
    found = np.cumsum(surely)
    share = np.where(surely, 1.0 / rank, 0.0)
    behind = share.sum() - np.cumsum(share)  # what one more before them adds to the sure ones
    places = np.flatnonzero(maybe)
    turn = np.arange(len(places))
    if from_first:
        gains = (found[places] + turn + 1) / rank[places] + behind[places]
    else:
        places = places[::-1]
        others = 1.0 / rank[places]
        gains = (found[places] + 1) / rank[places] + behind[places] + np.cumsum(others) - others
    return np.append(0.0, np.cumsum(gains)) + float((found / rank)[surely].sum())
