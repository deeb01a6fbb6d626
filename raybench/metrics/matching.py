"""How good the matches of one image pair are: one decision per reference patch, its nearest target, right or wrong.

Follows the HBench toolbox (branch av), which divides AP by the right matches in the list. `ap_all` divides by the
number of reference patches, as the 2017 protocol does, and can't be gamed by a method that finds little. `ap_ranked` is
what the 2016 text describes: the mean of 1 / rank of the true target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags, by_distance, found_ap
from raybench.metrics.ties import OpenDecisions, Range, found_ap_ranges, success_range

NOT_FOUND = -1  # in place of the number of closer targets, where a list of K ends before the true one


@dataclass(frozen=True)
class MatchFigures:
    """Figures of one image pair; `ap_2nnr` is nan where second neighbours are not known."""

    ap: float
    ap_2nnr: float
    ap_all: float
    ap_ranked: float
    success_rate: float


def match_figures(
    distance: NDArray[np.float64], index: NDArray[np.int64], truth: NDArray[np.int64], closer: NDArray[np.int64]
) -> MatchFigures:
    """Figures from the nearest targets (patches, K), the true ones, and how many targets are closer than these."""
    right = index[:, 0] == truth
    ap = _ap(by_distance(distance[:, 0], right))
    by_second = _ap(by_ratio(distance, right)) if distance.shape[1] > 1 else float("nan")
    success = float(right.mean())
    return MatchFigures(ap, by_second, ap * success, mean_reciprocal_rank(closer), success)


@dataclass(frozen=True)
class TiedMatches:
    """By figure, in the order of MatchFigures: the worst and best case, and how many patches a tie can move."""

    worst: NDArray[np.float64]
    best: NDArray[np.float64]
    tied: NDArray[np.int64]


def match_ties(distance: NDArray[np.float64], fewest: NDArray[np.int64], most: NDArray[np.int64]) -> TiedMatches:
    """What ties make of the figures of nearest targets (patches, K).

    `fewest` and `most` targets come before the true one, as ties go: a match is right if none does.
    """
    surely, maybe = most == 0, (fewest == 0) & (most != 0)
    near = OpenDecisions(np.unique(distance[:, 0], return_inverse=True)[1], surely, maybe)
    ap, ap_all = found_ap_ranges(near)
    by_second, moved = Range(np.nan, np.nan), 0
    if distance.shape[1] > 1:
        ratio = OpenDecisions(_ratio_key(distance), surely, maybe)
        by_second, moved = found_ap_ranges(ratio)[0], ratio.tied
    ranked = Range(mean_reciprocal_rank(most), mean_reciprocal_rank(fewest))
    ranges = (ap, by_second, ap_all, ranked, success_range(near))
    open_ranks, open_matches = np.count_nonzero(fewest != most), np.count_nonzero(maybe)
    return TiedMatches(
        np.array([one.worst for one in ranges]),
        np.array([one.best for one in ranges]),
        np.array([near.tied, moved, near.tied, open_ranks, open_matches]),
    )


def by_ratio(distance: NDArray[np.float64], right: Flags) -> Flags:
    """Rightness in order of falling d2 / d1: 0/0 first of all, then x/0, then the rest. Ties keep the order of patches.

    >>> by_ratio(np.array([[1.0, 3.0], [0.0, 2.0], [0.0, 0.0]]), np.array([False, False, True])).tolist()
    [True, False, False]
    """
    first, second = distance[:, 0], distance[:, 1]
    if first.all():
        return right[np.argsort(-(second / first), kind="stable")]
    return right[np.argsort(_ratio_key(distance), kind="stable")]


def _ratio_key(distance: NDArray[np.float64]) -> NDArray[np.int64]:
    """What rises as d2 / d1 falls: 0 for 0/0, 1 for x/0, then one number for each ratio."""
    first, second = distance[:, 0], distance[:, 1]
    ratio = np.divide(second, first, out=np.zeros(len(first)), where=first != 0)
    place = np.unique(-ratio, return_inverse=True)[1] + 2
    return np.where(first != 0, place, np.where(second != 0, 1, 0))


def mean_reciprocal_rank(closer: NDArray[np.int64]) -> float:
    """The mean of 1 / rank, 0 for what was not found; with one true target that is the AP of its full ranking.

    >>> mean_reciprocal_rank(np.array([0, 1, NOT_FOUND]))
    0.5
    """
    return float(np.mean(np.where(closer == NOT_FOUND, 0.0, 1.0 / (np.maximum(closer, 0) + 1))))


def closer_in_list(index: NDArray[np.int64], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Targets before the true one in lists of K (patches, K); NOT_FOUND where it is not among them."""
    hits = index == truth[:, None]
    return np.where(hits.any(axis=1), hits.argmax(axis=1), NOT_FOUND).astype(np.int64)


def _ap(ranked: Flags) -> float:
    return float(found_ap(ranked[None, :])[0])
