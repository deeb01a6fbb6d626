"""Figures of each query's own ranking of all references, as trec_eval has them, from ranks of relevant ones alone.

Where a ranking is cut, figures are still divided by all relevant references of the query (trec_eval's map_cut, recall)
or by the cut (P). A query without relevant references has no figure: nan.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.query_ranks import QueryRanks

Values = NDArray[np.float64]


def query_trec_ap(ranks: QueryRanks, queries: int, cut: int | None = None) -> Values:
    """The precision at each relevant reference before the cut, summed, divided by all that are relevant.

    >>> ranks = QueryRanks.of(np.zeros(2, np.int64), np.array([0, 2]), np.ones(2, np.bool_), np.zeros(2, np.bool_))
    >>> query_trec_ap(ranks, 1).tolist(), query_trec_ap(ranks, 1, cut=2).tolist()  # (1/1 + 2/3) / 2, then (1/1) / 2
    ([0.8333333333333333], [0.5])
    """
    precision = (ranks.order + 1) / (ranks.rank + 1)
    return _shares(ranks, ranks.sums(np.where(_before(ranks, cut), precision, 0.0), queries), queries)


def query_precision(ranks: QueryRanks, queries: int, cut: int) -> Values:
    """The share of the first `cut` references that is relevant; places that no reference takes count as wrong."""
    hits = ranks.sums(_before(ranks, cut), queries)
    shares: Values = np.where(ranks.positives(queries) > 0, hits / cut, np.nan)
    return shares


def query_recall(ranks: QueryRanks, queries: int, cut: int) -> Values:
    """The share of the relevant references that is among the first `cut`."""
    return _shares(ranks, ranks.sums(_before(ranks, cut), queries), queries)


def query_ndcg(ranks: QueryRanks, gain: Values, queries: int, cut: int | None = None) -> Values:
    """The gains of relevant references, each divided by log2(rank + 2), over the same sum in the best order.

    `gain` is that of each labelled pair, above 0 where it is relevant.

    >>> ranks = QueryRanks.of(np.zeros(2, np.int64), np.array([0, 1]), np.ones(2, np.bool_), np.zeros(2, np.bool_))
    >>> query_ndcg(ranks, np.array([1.0, 3.0]), 1).round(6).tolist()  # (1 + 3 / log2(3)) / (3 + 1 / log2(3))
    [0.796708]
    """
    own = gain[ranks.pair]
    best = own[np.lexsort((-own, ranks.query))]  # by query, as ranks are: `order` is the rank of each in the best order
    found = ranks.sums(np.where(_before(ranks, cut), own / np.log2(ranks.rank + 2), 0.0), queries)
    most = ranks.sums(
        np.where(ranks.order < (np.inf if cut is None else cut), best / np.log2(ranks.order + 2), 0.0), queries
    )
    shares: Values = np.where(most > 0, found / np.where(most > 0, most, 1.0), np.nan)
    return shares


def _before(ranks: QueryRanks, cut: int | None) -> NDArray[np.bool_]:
    """Which relevant references stand before the cut."""
    before: NDArray[np.bool_] = ranks.rank < (np.inf if cut is None else cut)
    return before


def _shares(ranks: QueryRanks, sums: Values, queries: int) -> Values:
    positives = ranks.positives(queries)
    shares: Values = np.where(positives > 0, sums / np.maximum(positives, 1), np.nan)
    return shares
