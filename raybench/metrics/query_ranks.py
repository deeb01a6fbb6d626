"""Ranks of each query's relevant references in its own ranking of all, junk left out: what retrieval is measured by.

A labelled reference is relevant, junk or neither. Junk is taken out of the ranking first, neither right nor wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags


@dataclass(frozen=True)
class QueryRanks:
    """Relevant references by query, then rank; `rank` counts from 0, `order` from 0 within its query.

    `pair` is the number of each among the labelled pairs.
    """

    query: NDArray[np.int64]
    rank: NDArray[np.int64]
    order: NDArray[np.int64]
    pair: NDArray[np.int64]

    @classmethod
    def of(cls, query: NDArray[np.int64], before: NDArray[np.int64], relevant: Flags, junk: Flags) -> Self:
        """From labelled pairs: the query of each, and how many of all references come before it.

        >>> relevant, junk = np.array([True, True, False]), np.array([False, False, True])
        >>> ranks = QueryRanks.of(np.array([7, 7, 7]), np.array([5, 2, 0]), relevant, junk)
        >>> ranks.rank.tolist(), ranks.order.tolist(), ranks.pair.tolist()
        ([1, 4], [0, 1], [1, 0])
        """
        by_rank = np.lexsort((before, query))
        passed = np.cumsum(junk[by_rank])  # junk up to here, of this query and those before it
        starts = np.searchsorted(query[by_rank], query[by_rank])
        earlier = np.concatenate([[0], passed])[starts]
        rank = before[by_rank] - (passed - earlier)
        kept = np.flatnonzero(relevant[by_rank])
        own = query[by_rank][kept]
        order = np.arange(len(own)) - np.searchsorted(own, own)
        return cls(own, rank[kept], order, by_rank[kept])

    def __len__(self) -> int:
        return len(self.query)

    def sums(self, values: NDArray[np.float64] | Flags, queries: int) -> NDArray[np.float64]:
        """The sum of a value of each relevant reference, by query."""
        return np.bincount(self.query, values.astype(np.float64), minlength=queries).astype(np.float64)

    def positives(self, queries: int) -> NDArray[np.int64]:
        """How many relevant references each query has."""
        return np.bincount(self.query, minlength=queries)


def extreme_ranks(
    query: NDArray[np.int64], fewest: NDArray[np.int64], most: NDArray[np.int64], relevant: Flags, junk: Flags
) -> tuple[QueryRanks, QueryRanks]:
    """Ranks with others first at equal distance, and with relevant ones first; of pairs that are relevant or junk.

    `fewest` are the references strictly closer than a pair's own, `most` those that are closer or as near.

    >>> tied = np.zeros(2, np.int64), np.array([1, 1]), np.array([5, 5])  # one is closer, five are equal
    >>> [one.rank.tolist() for one in extreme_ranks(*tied, np.array([True, False]), np.array([False, True]))]
    [[4], [1]]
    """
    own = np.flatnonzero(relevant)
    own = own[np.lexsort((fewest[own], query[own]))]
    is_first = np.ones(len(own), np.bool_)  # of those at one distance
    is_first[1:] = (query[own][1:] != query[own][:-1]) | (fewest[own][1:] != fewest[own][:-1])
    group = np.cumsum(is_first) - 1
    turn = np.arange(len(own)) - np.flatnonzero(is_first)[group]
    size = np.bincount(group)[group]
    # Junk is taken out, so it stands where it is in nobody's way: before others in the worst case, behind in the best.
    worst, best = np.where(junk, fewest, most), np.where(junk, most, fewest)
    worst[own] -= size - 1 - turn
    best[own] += turn
    return QueryRanks.of(query, worst, relevant, junk), QueryRanks.of(query, best, relevant, junk)
