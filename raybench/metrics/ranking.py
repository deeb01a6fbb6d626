"""Rankings: average precision, ROC and precision-recall points of items in a given order.

`trec_ap` follows the TREC definition as VLFeat's `vl_pr` and the HBench toolbox compute it, `trapezoid_ap` the 2017
HPatches toolbox. Callers bring items in rank order (see `by_distance`, `negatives_first`), so the tie rule is theirs
and is named there. Counts are integers to the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def stable_order(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions in order of rising distance, of equal ones the first in the file first. None may be nan.

    What a stable sort gives, at a sixth of its time where few are equal: numpy's own sort is vectorised, and only what
    is equal is brought into the order of the file.

    >>> stable_order(np.array([2.0, 1.0, 1.0])).tolist()
    [1, 2, 0]
    """
    order: NDArray[np.int64] = np.argsort(distances)
    places, group = tied_places(distances[order])
    if len(places):
        first = group * len(order)
        order[places] = np.sort(first + order[places]) - first
    return order


def tied_places(ranked: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where equal values stand in sorted ones, and which tie each belongs to, counted from 1.

    >>> [found.tolist() for found in tied_places(np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0]))]
    [[1, 2, 4, 5], [1, 1, 2, 2]]
    """
    same = np.zeros(len(ranked) + 1, np.bool_)  # as the one before; one further at the end
    np.equal(ranked[1:], ranked[:-1], out=same[1:-1])
    places = np.flatnonzero(same[:-1] | same[1:])
    return places, np.cumsum(~same[places])


def by_distance(distances: NDArray[np.float64], relevant: Flags) -> Flags:
    """Relevance in order of rising distance. Ties keep the order of the file (a stable sort).

    >>> by_distance(np.array([2.0, 1.0, 1.0]), np.array([True, False, True])).tolist()
    [False, True, True]
    """
    return relevant[stable_order(distances)]


def negatives_first(positives: NDArray[np.float64], negatives: NDArray[np.float64]) -> Flags:
    """Relevance in order of rising distance of negatives followed by positives: at equal distance negatives lead.

    >>> negatives_first(np.array([1.0, 0.0]), np.array([1.0, 2.0])).tolist()
    [True, False, True, False]
    """
    found = np.sort(positives)
    before = np.searchsorted(np.sort(negatives), found, side="right")
    ranked = np.zeros(len(positives) + len(negatives), np.bool_)
    ranked[np.arange(len(found)) + before] = True
    return ranked


def trec_ap(ranked: Flags) -> float:
    """The mean over relevant items of the precision at their rank; nan if none is relevant.

    >>> trec_ap(np.array([True, False, True]))  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    ranks = np.flatnonzero(ranked) + 1
    if not len(ranks):
        return float("nan")
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks))


def found_ap(ranked: Flags) -> NDArray[np.float64]:
    """For each row the mean of the precision at its relevant items, over those that were found; 0 where there are none.

    This is TREC AP as the HBench toolbox takes it of matching and retrieval: what was not found does not count.

    >>> found_ap(np.array([[True, False, True], [False, False, False]])).tolist()
    [0.8333333333333333, 0.0]
    """
    found = np.cumsum(ranked, axis=1, dtype=np.int64)
    precision = found / np.arange(1, ranked.shape[1] + 1)
    relevant = found[:, -1] if ranked.shape[1] else np.zeros(len(ranked), np.int64)
    average: NDArray[np.float64] = np.where(ranked, precision, 0.0).sum(axis=1) / np.maximum(relevant, 1)
    return average


def trapezoid_ap(ranked: Flags, positives: int | None = None) -> float:
    """The area under the precision-recall points by trapezoids, from recall 0 and precision 1; nan without positives.

    A point after each item, up to the last. `positives` divides recall (default: the relevant items that are there).

    >>> trapezoid_ap(np.array([True, False, True]))  # ((1 + 1) / 2 + (1/2 + 2/3) / 2) / 2
    0.7916666666666666
    """
    ranks = np.flatnonzero(ranked) + 1
    count = len(ranks) if positives is None else positives
    return float(trapezoid_ap_of_ranks(ranks, count)) if count else float("nan")


def trapezoid_ap_of_ranks(ranks: NDArray[np.int64], positives: int) -> NDArray[np.float64]:
    """`trapezoid_ap` from the ranks (from 1, rising along the last axis) of the relevant items alone.

    Recall rises at relevant items only, so only their trapezoids have an area. The toolbox takes 1e-10 for a precision
    of 0, which raises its figures by at most 5e-11 / positives.
    """
    found = np.arange(1, ranks.shape[-1] + 1)
    here = found / ranks
    before = np.where(ranks > 1, (found - 1) / np.maximum(ranks - 1, 1), 1.0)
    areas: NDArray[np.float64] = ((here + before) / 2.0).sum(axis=-1) / positives
    return areas


def roc_auc(ranked: Flags) -> float:
    """The area under the ROC by trapezoids, with one point per item; nan without both kinds of items.

    One point per item makes it the share of (relevant, other) pairs in the right order.

    >>> roc_auc(np.array([True, False, True]))
    0.5
    """
    places = np.flatnonzero(ranked)
    others = len(ranked) - len(places)
    if not len(places) or not others:
        return float("nan")
    wrong = int((places - np.arange(len(places))).sum())  # others ranked before each relevant item
    return 1.0 - wrong / (len(places) * others)


def balanced(relevant: Flags) -> NDArray[np.int64]:
    """Positions of all relevant items, then of the first as many others, in the order of the file."""
    positives = np.flatnonzero(relevant)
    return np.concatenate([positives, np.flatnonzero(~relevant)[: len(positives)]])


@dataclass(frozen=True)
class Curve:
    """Points of a ranking after each item, the point before the first item included; thinned evenly by rank."""

    rank: NDArray[np.int64]
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    false_positive_rate: NDArray[np.float64]


def curve(ranked: Flags, most: int = 5_000) -> Curve:
    """PR and ROC points of a ranking, at most about `most`; the first and last are always among them.

    Recall is the ROC's true-positive rate. At rank 0 precision is 1, as VLFeat has it.
    """
    rank = np.unique(np.linspace(0, len(ranked), min(len(ranked), most) + 1).astype(np.int64))
    found = np.concatenate([[0], np.cumsum(ranked, dtype=np.int64)])[rank]
    wrong = rank - found
    precision = np.where(rank > 0, found / np.maximum(rank, 1), 1.0)
    positives, others = max(int(ranked.sum()), 1), max(int((~ranked).sum()), 1)
    return Curve(rank, found / positives, precision, wrong / others)
