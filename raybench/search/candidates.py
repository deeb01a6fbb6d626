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
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.extract.vector_set import Piece
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, Rows, TopK
from raybench.metrics.top_pairs import TopPairs, worst_of_best
from raybench.search.by_torch import multiplier
from raybench.search.nearest import within
from raybench.search.proposers import Proposer
from raybench.search.set_search import FoundNeighbours
from raybench.search.tiles import Tiles

SPARSE_QUERIES_PER_TILE = range(16_384, 16_384 + 1)  # of which few are searched again
SUM_ROUNDING = (
    2.0**-48
)  # relative, of the sum of a score, a bias and a threshold; what it lets through is looked at again

ScoredPairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # query, reference, score


@dataclass(frozen=True)
class PairsAbove:
    """The stage over tiles: all pairs of saturated queries that reach the threshold."""

    found: FoundNeighbours
    threshold: Mapped
    bias: Mapped | None
    tiles: Tiles
    on_device: bool  # no part of the digest: the bytes are the same

    name = "pairs-above"
    version = 2

    @property
    def digest(self) -> str:
        sets = (self.found.queries, self.found.references, self.found.distance)
        cut = (self.tiles.queries_per_tile, self.tiles.references_per_slice)
        return digest_of(self.name, self.version, *sets, self.threshold, self.bias, cut)

    @cached_property
    def _proposer(self) -> Proposer:
        return multiplier(gpu=self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_proposer"}

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
        bias = _biases(None if self.bias is None else self.bias.read(0), query)
        limits = bias - threshold + SUM_ROUNDING * (np.abs(bias) + np.abs(threshold))
        for (row, column), distance in within(queries, references, limits, self.found.distance, self._proposer):
            score = 0.0 - distance + bias[row]
            kept = score >= threshold
            more = TopPairs.of(query[row[kept]], place[column[kept]], score[kept], most)
            best = TopPairs.merged([best, more])
        return best.to_arrays()

    def keys(self, shard: Shard) -> str:
        return self.tiles.words(shard.index, self.found.queries.role, self.found.references.role)

    def settled(self, arrays: Arrays, shard: Shard) -> Arrays:
        """Pairs that were found in another tile, as if found in this one: each pair once."""
        queries, references = self.tiles.at(shard.index)
        count = min(len(arrays["query"]), len(references))
        return arrays | {
            "query": queries.start + arrays["query"][:count] % max(len(queries), 1),
            "reference": references.start + np.arange(count),
            "score": arrays["score"][:count],
        }


def nearest_pairs(run: Run, found: FoundNeighbours, bias: PerItem | None = None) -> PerItem:
    """One shard with the k nearest references of every query, by (query, falling score, reference)."""
    return run.each(_nearest_pairs, ["the nearest of all queries"], found.nearest, found.k, bias, version=1)


def global_pairs(run: Run, found: FoundNeighbours, bias: PerItem | None = None) -> PerItem:
    """One shard with the best k times the queries pairs over all queries, by (falling score, reference, query).

    Memory is bounded by that number of pairs, whatever the number of references.
    """
    threshold = global_threshold(run, found, bias)
    again = None
    if len(run.read(threshold, 0)["saturated"]):
        sizes = len(found.queries), len(found.references)
        tiles = Tiles.over(*sizes, found.shard_size, SPARSE_QUERIES_PER_TILE)
        stage = PairsAbove(found, threshold, bias, tiles, found.on_device)
        again = run.fold(run.map(stage, len(tiles), 1), TopPairs)
    return run.each(_global_pairs, ["the best pairs of all queries"], found.nearest, threshold, bias, again, version=1)


def global_threshold(run: Run, found: FoundNeighbours, bias: PerItem | None = None) -> PerItem:
    """One shard with the `threshold`, how many pairs are wanted at `most`, and the queries that are `saturated`."""
    return run.each(_global_threshold, ["the nearest of all queries"], found.nearest, found.k, bias, version=1)


def _nearest_pairs(_: str, nearest: Mapped, k: int, bias: Arrays | None) -> Arrays:
    top = TopK.from_arrays(nearest.read(0))
    query, reference, score = _listed(TopK(top.query, top.distance[:, :k], top.reference[:, :k]), bias)
    return {"query": query, "reference": reference, "score": score}


def _global_threshold(_: str, nearest: Mapped, k: int, bias: Arrays | None) -> Arrays:
    top = TopK.from_arrays(nearest.read(0))
    most = k * len(top.query)
    threshold = worst_of_best(_listed(top, bias)[2], most)
    last = 0.0 - top.distance[:, -1] + _biases(bias, top.query)  # -inf where there is no such neighbour
    return {
        "threshold": np.array([threshold]),
        "most": np.array([most]),
        "saturated": top.query[(last >= threshold) & (top.reference[:, -1] != NO_REFERENCE)],
    }


def _global_pairs(_: str, nearest: Mapped, fixed: Arrays, bias: Arrays | None, again: Mapped | None) -> Arrays:
    """Listed pairs joined with those found again."""
    query, reference, score = _listed(TopK.from_arrays(nearest.read(0)), bias)
    kept = (score >= fixed["threshold"][0]) & ~np.isin(query, fixed["saturated"])
    parts = [TopPairs.of(query[kept], reference[kept], score[kept], int(fixed["most"][0]))]
    if again is not None:
        parts.append(TopPairs.from_arrays(again.read(0)))
    best = TopPairs.merged(parts)
    return {"query": best.query, "reference": best.reference, "score": best.score}


def _listed(nearest: TopK, bias: Arrays | None) -> ScoredPairs:
    """All neighbours there are, query by query."""
    there = nearest.reference != NO_REFERENCE
    query = np.repeat(nearest.query, there.sum(axis=1))
    return query, nearest.reference[there], 0.0 - nearest.distance[there] + _biases(bias, query)


def _biases(bias: Arrays | None, query: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is added to the scores of these queries."""
    if bias is None:
        return np.zeros(len(query))
    rows = Rows.from_arrays(bias)
    values: NDArray[np.float64] = rows.values[np.searchsorted(rows.index, query)]
    return values
