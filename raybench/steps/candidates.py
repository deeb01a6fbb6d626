"""Found neighbours -> candidate pairs with scores: k for each query, or the best k times the queries over all of them.

A shard has `query`, `reference` and `score` (float64, higher is closer). A bias is a number for each query, added to
its scores: it leaves the order of a query's own neighbours, but not that of pairs of different queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.run import Run
from raybench.engine.stage import Mapped
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, Rows, TopK
from raybench.steps.search import Found


@dataclass(frozen=True)
class NearestPairs:
    """The stage, of one shard, that lists the k nearest of each query, by (query, falling score, reference)."""

    nearest: Mapped
    k: int
    bias: Mapped | None

    name = "nearest-pairs"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.nearest.digest, self.k, _digest(self.bias))

    def load(self, shard: Shard) -> TopK:
        return TopK.from_arrays(self.nearest.read(shard.index))

    def compute(self, payload: TopK) -> Arrays:
        first = TopK(payload.query, payload.distance[:, : self.k], payload.reference[:, : self.k])
        query, reference, score = listed_pairs(first, self.bias)
        return {"query": query, "reference": reference, "score": score}

    def keys(self, shard: Shard) -> str:
        return "the nearest of all queries"


def nearest_pairs(run: Run, found: Found, bias: Mapped | None = None) -> Mapped:
    """One shard with the k nearest references of every query, each with its score."""
    return run.map(NearestPairs(found.nearest, found.k, bias), 1, 1)


def listed_pairs(
    nearest: TopK, bias: Mapped | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Queries, references and scores of all neighbours there are, query by query."""
    there = nearest.reference != NO_REFERENCE
    query = np.repeat(nearest.query, there.sum(axis=1))
    return query, nearest.reference[there], 0.0 - nearest.distance[there] + biases(bias, query)


def biases(bias: Mapped | None, query: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is added to the scores of these queries."""
    if bias is None:
        return np.zeros(len(query))
    rows = Rows.from_arrays(bias.read(0))
    values: NDArray[np.float64] = rows.values[np.searchsorted(rows.index, query)]
    return values


def _digest(bias: Mapped | None) -> str | None:
    return None if bias is None else bias.digest
