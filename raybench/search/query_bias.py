"""Score normalisation as a step: one search of training vectors gives the biases of every norm that is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.vector_set import VectorSet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, Rows, TopK
from raybench.search.score_norm import ScoreNorm
from raybench.search.set_search import search_sets


def query_biases(
    run: Run,
    queries: VectorSet | Sequence[VectorSet],
    training: VectorSet,
    norms: Sequence[ScoreNorm],
    *,
    device: str,
    shard_size: int | None = None,
) -> tuple[PerItem, ...]:
    """For each norm one shard of Rows: what is added to each query's scores. One search serves all norms."""
    if not norms:
        return ()
    k = max(norm.last for norm in norms) + 1
    found = search_sets(run, queries, training, k, "ip", device=device, shard_size=shard_size)
    return tuple(run.each(_query_bias, [norm], found.nearest, version=1) for norm in norms)


def _query_bias(norm: ScoreNorm, nearest: Mapped) -> Arrays:
    top = TopK.from_arrays(nearest.read(0))
    there = (top.reference != NO_REFERENCE).sum(axis=1).min(initial=norm.last + 1)
    problem = norm.problem(int(there))
    if problem is not None:
        raise DataError(problem)
    return Rows(top.query, norm.bias(0.0 - top.distance)).to_arrays()
