"""Copydays as the SSCD tools evaluate it: AP by trapezoids over the k nearest, by query and pooled.

The n-th (from 0) true result at rank r (from 0) adds the mean of n / r (1 if r is 0) and (n + 1) / (r + 1), divided by
the number of positives. Positives beyond the k nearest add nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import NO_REFERENCE
from raybench.metrics.ranking import negatives_first, trapezoid_ap


def relevant_results(truth: TruePairs, query: NDArray[np.int64], reference: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which results are true: query (n,), reference (n, k)."""
    flat = truth.places(np.repeat(query, reference.shape[1]), reference.reshape(-1))
    relevant: NDArray[np.bool_] = (flat >= 0).reshape(reference.shape)
    return relevant


def query_ap(relevant: NDArray[np.bool_], positives: NDArray[np.int64]) -> NDArray[np.float64]:
    """AP of each query, from the truth of its results in order (n, k) and the number of its positives (n,), at least 1.

    >>> query_ap(np.array([[True, False, True], [False, True, False]]), np.array([2, 1])).tolist()
    [0.7916666666666666, 0.25]
    """
    found = np.cumsum(relevant, axis=1, dtype=np.int64)
    rank = np.arange(relevant.shape[1])
    before = np.where(rank > 0, (found - 1) / np.maximum(rank, 1), 1.0)
    here = found / (rank + 1)
    areas: NDArray[np.float64] = np.where(relevant, (before + here) / 2, 0.0).sum(axis=1) / positives
    return areas


def overall_micro_ap(
    relevant: NDArray[np.bool_], distance: NDArray[Any], reference: NDArray[np.int64], queries: int
) -> float:
    """All results in one pool by rising distance, divided by the number of queries; the tools call it "macro AP".

    At equal distance wrong ones stand first; the published sort leaves that to chance.

    >>> relevant, reference = np.array([[True, False], [True, False]]), np.array([[0, 1], [1, 0]])
    >>> overall_micro_ap(relevant, np.array([[0.0, 0.2], [0.1, 0.3]]), reference, 2)
    1.0
    """
    there = reference != NO_REFERENCE
    ranked = negatives_first(distance[relevant & there], distance[~relevant & there])
    return trapezoid_ap(ranked, queries)
