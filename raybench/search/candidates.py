"""Found neighbours -> candidate pairs with scores: k for each query, or the best k times the queries over all of them.

A shard has `query`, `reference` and `score` (float64, higher is closer). A bias is a number for each query, added to
its scores: it leaves the order of a query's own neighbours, but not that of pairs of different queries.

The best pairs over all: the wanted number of best pairs among all listed neighbours gives a threshold that no pair of
the answer can lie below. A query whose list ends below it has all its pairs listed; only the others ("saturated") are
searched again, for every pair at or above the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.extract.vector_set import Piece
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, Rows, TopK
from raybench.metrics.top_pairs import TopPairs, worst_of_best
from raybench.search.exact_search import pairs_within
from raybench.search.proposers import Threshold
from raybench.search.tiles import Found, Tiles

SPARSE_QUERIES_PER_TILE = range(16_384, 16_384 + 1)  # of which few are searched again
ROUNDING = 2.0**-48  # relative, of the sum of a score, a bias and a threshold; what it lets through is looked at again

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # query, reference, score


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
        query, reference, score = _listed(first, self.bias)
        return {"query": query, "reference": reference, "score": score}

    def keys(self, shard: Shard) -> str:
        return "the nearest of all queries"


@dataclass(frozen=True)
class GlobalThreshold:
    """The stage, of one shard, that fixes the threshold, and which queries are to be searched again."""

    nearest: Mapped
    k: int
    bias: Mapped | None

    name = "global-threshold"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.nearest.digest, self.k, _digest(self.bias))

    def load(self, shard: Shard) -> TopK:
        return TopK.from_arrays(self.nearest.read(shard.index))

    def compute(self, payload: TopK) -> Arrays:
        most = self.k * len(payload.query)
        threshold = worst_of_best(_listed(payload, self.bias)[2], most)
        last = (
            0.0 - payload.distance[:, -1] + _biases(self.bias, payload.query)
        )  # -inf where there is no such neighbour
        return {
            "threshold": np.array([threshold]),
            "most": np.array([most]),
            "saturated": payload.query[(last >= threshold) & (payload.reference[:, -1] != NO_REFERENCE)],
        }

    def keys(self, shard: Shard) -> str:
        return "the nearest of all queries"


@dataclass(frozen=True)
class PairsAbove:
    """The stage over tiles: all pairs of saturated queries that reach the threshold."""

    found: Found
    threshold: Mapped
    bias: Mapped | None
    tiles: Tiles
    on_device: bool  # no part of the digest: the bytes are the same

    name = "pairs-above"
    version = 2

    @property
    def digest(self) -> str:
        sets = (self.found.queries.digest, self.found.references.digest, self.found.metric)
        cut = (self.tiles.queries_per_tile, self.tiles.references_per_slice)
        return digest_of(self.name, self.version, *sets, self.threshold.digest, _digest(self.bias), cut)

    @cached_property
    def _products(self) -> Threshold:
        return Threshold(gpu=self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_products"}

    def load(self, shard: Shard) -> tuple[Piece, Piece]:
        queries, references = self.tiles.at(shard.index)
        saturated = self.threshold.read(0)["saturated"]
        return (
            self.found.queries.read(queries.start, queries.stop, saturated),
            self.found.references.read(references.start, references.stop),
        )

    def compute(self, payload: tuple[Piece, Piece]) -> Arrays:
        (query, queries), (place, references) = payload
        fixed = self.threshold.read(0)
        threshold, most = float(fixed["threshold"][0]), int(fixed["most"][0])
        best = TopPairs.of(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), most)
        if not len(query) or not len(place):
            return best.to_arrays()
        bias = _biases(self.bias, query)
        limits = bias - threshold + ROUNDING * (np.abs(bias) + np.abs(threshold))
        products = self._products
        for (row, column), distance in pairs_within(
            queries, references, limits, self.found.metric, products.below, products.cells
        ):
            score = 0.0 - distance + bias[row]
            kept = score >= threshold
            more = TopPairs.of(query[row[kept]], place[column[kept]], score[kept], most)
            best = TopPairs.merged([best, more])
        return best.to_arrays()

    def keys(self, shard: Shard) -> str:
        queries, references = self.tiles.at(shard.index)
        return (
            f"{self.found.queries.what} {queries.start:,}..{queries.stop - 1:,} x "
            f"{self.found.references.what} {references.start:,}..{references.stop - 1:,}"
        )


@dataclass(frozen=True)
class GlobalPairs:
    """The stage, of one shard, that joins listed pairs with those found again, by (falling score, reference, query)."""

    nearest: Mapped
    threshold: Mapped
    bias: Mapped | None
    again: Mapped | None

    name = "global-pairs"
    version = 2
    on_device = False

    @property
    def digest(self) -> str:
        parts = (self.nearest.digest, self.threshold.digest, _digest(self.bias), _digest(self.again))
        return digest_of(self.name, self.version, *parts)

    def load(self, shard: Shard) -> TopK:
        return TopK.from_arrays(self.nearest.read(0))

    def compute(self, payload: TopK) -> Arrays:
        fixed = self.threshold.read(0)
        query, reference, score = _listed(payload, self.bias)
        kept = (score >= fixed["threshold"][0]) & ~np.isin(query, fixed["saturated"])
        parts = [TopPairs.of(query[kept], reference[kept], score[kept], int(fixed["most"][0]))]
        if self.again is not None:
            parts.append(TopPairs.from_arrays(self.again.read(0)))
        best = TopPairs.merged(parts)
        return {"query": best.query, "reference": best.reference, "score": best.score}

    def keys(self, shard: Shard) -> str:
        return "the best pairs of all queries"


def nearest_pairs(run: Run, found: Found, bias: Mapped | None = None) -> Mapped:
    """One shard with the k nearest references of every query, by (query, falling score, reference)."""
    return run.map(NearestPairs(found.nearest, found.k, bias), 1, 1)


def global_pairs(run: Run, found: Found, bias: Mapped | None = None) -> Mapped:
    """One shard with the best k times the queries pairs over all queries, by (falling score, reference, query).

    Memory is bounded by that number of pairs, whatever the number of references.
    """
    threshold = run.map(GlobalThreshold(found.nearest, found.k, bias), 1, 1)
    again = None
    if len(run.read(threshold, 0)["saturated"]):
        sizes = len(found.queries), len(found.references)
        tiles = Tiles.over(*sizes, found.shard_size, SPARSE_QUERIES_PER_TILE)
        stage = PairsAbove(found, threshold, bias, tiles, found.on_device)
        again = run.fold(run.map(stage, len(tiles), 1), TopPairs)
    return run.map(GlobalPairs(found.nearest, threshold, bias, again), 1, 1)


def _listed(nearest: TopK, bias: Mapped | None) -> Pairs:
    """All neighbours there are, query by query."""
    there = nearest.reference != NO_REFERENCE
    query = np.repeat(nearest.query, there.sum(axis=1))
    return query, nearest.reference[there], 0.0 - nearest.distance[there] + _biases(bias, query)


def _biases(bias: Mapped | None, query: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is added to the scores of these queries."""
    if bias is None:
        return np.zeros(len(query))
    rows = Rows.from_arrays(bias.read(0))
    values: NDArray[np.float64] = rows.values[np.searchsorted(rows.index, query)]
    return values


def _digest(mapped: Mapped | None) -> str | None:
    return None if mapped is None else mapped.digest
