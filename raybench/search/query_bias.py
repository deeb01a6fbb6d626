"""Score normalisation as a step: one search of training vectors gives the biases of every norm that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.vector_set import VectorSet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, Rows, TopK
from raybench.search.score_norm import ScoreNorm
from raybench.search.tiles import search_sets


@dataclass(frozen=True)
class QueryBias:
    """The stage, of one shard, that turns training neighbours (by inner product) into Rows of biases."""

    nearest: Mapped
    norm: ScoreNorm

    name = "query-bias"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        norm = (self.norm.weight, self.norm.first, self.norm.last)
        return digest_of(self.name, self.version, self.nearest.digest, norm)

    def load(self, shard: Shard) -> TopK:
        return TopK.from_arrays(self.nearest.read(0))

    def compute(self, payload: TopK) -> Arrays:
        there = (payload.reference != NO_REFERENCE).sum(axis=1).min(initial=self.norm.last + 1)
        problem = self.norm.problem(int(there))
        if problem is not None:
            raise DataError(problem)
        return Rows(payload.query, self.norm.bias(0.0 - payload.distance)).to_arrays()

    def keys(self, shard: Shard) -> str:
        return f"score norm {self.norm}"


def query_biases(
    run: Run,
    queries: VectorSet | Sequence[VectorSet],
    training: VectorSet,
    norms: Sequence[ScoreNorm],
    *,
    device: str,
    shard_size: int | None = None,
) -> tuple[Mapped, ...]:
    """For each norm one shard of Rows: what is added to each query's scores. One search serves all norms."""
    if not norms:
        return ()
    k = max(norm.last for norm in norms) + 1
    found = search_sets(run, queries, training, k, "ip", device=device, shard_size=shard_size)
    return tuple(run.map(QueryBias(found.nearest, norm), 1, 1) for norm in norms)
