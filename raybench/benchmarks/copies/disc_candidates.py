"""From vectors to candidate pairs, as DISC2021 has it: codecs, score normalisation, search.

One search for each codec serves both kinds of candidates (k a query, and the best over all), and one by inner product
serves every normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raybench.benchmarks.copies.scores import Variant
from raybench.benchmarks.job import Job
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.vector_set import VectorSet
from raybench.search.candidates import global_pairs, nearest_pairs
from raybench.search.codecs import FailedCodec, default_codecs, project_sets, trains
from raybench.search.query_bias import query_biases
from raybench.search.score_norm import ScoreNorm
from raybench.search.tiles import search_sets
from raybench.search.vector_facts import are_normalised, leakage_notes, vector_facts

KINDS = ("knn", "global")


@dataclass(frozen=True)
class Candidates:
    """Pairs of every variant; those of failed codecs are in `order` only."""

    order: tuple[Variant, ...]
    pairs: dict[Variant, Mapped]
    failed: dict[str, str]
    notes: tuple[str, ...]


def find_candidates(
    run: Run,
    job: Job[Any],
    vectors: dict[str, VectorSet],
    k: int,
    codecs: tuple[str, ...],
    norms: tuple[ScoreNorm, ...],
) -> Candidates:
    """Candidates by every codec and normalisation, without normalisation first; no codecs: the published list."""
    facts = {role: vector_facts(run, one) for role, one in vectors.items()}
    if not codecs:
        known = default_codecs(facts["queries"].dimension, are_normalised(list(facts.values())))
        codecs = tuple(codec for codec in known if "training" in vectors or not trains(codec))
    found: dict[tuple[str, str], tuple[Mapped, Mapped]] = {}
    failed = {}
    for codec in codecs:
        projected = project_sets(run, codec, vectors.get("training"), list(vectors.values()), job.seed)
        if isinstance(projected, FailedCodec):
            run.say(f"warning: {projected.reason}; the other codecs go on")
            failed[codec] = projected.reason
        else:
            sets = dict(zip(vectors, projected, strict=True))
            found |= {(codec, norm): pairs for norm, pairs in _by_norm(run, job, sets, k, norms).items()}
    keys = [(codec, norm) for norm in ("None", *map(str, norms)) for codec in codecs]
    order = tuple(Variant(*key, kind) for key in keys for kind in KINDS)
    pairs = {
        Variant(*key, kind): mapped
        for key in keys
        if key in found
        for kind, mapped in zip(KINDS, found[key], strict=True)
    }
    return Candidates(order, pairs, failed, tuple(leakage_notes(run, facts)))


def _by_norm(
    run: Run, job: Job[Any], sets: dict[str, VectorSet], k: int, norms: tuple[ScoreNorm, ...]
) -> dict[str, tuple[Mapped, Mapped]]:
    device = "gpu" if run.gpus else "cpu"

    def searched(metric: str, biases: dict[str, Mapped | None]) -> dict[str, tuple[Mapped, Mapped]]:
        found = search_sets(
            run,
            sets["queries"],
            sets["references"],
            k,
            metric,
            device=device,
            shard_size=job.shard_size,
            global_candidates=True,
        )
        return {
            norm: (nearest_pairs(run, found, bias), global_pairs(run, found, bias)) for norm, bias in biases.items()
        }

    pairs = searched("L2", {"None": None})
    if norms:
        biases = query_biases(run, sets["queries"], sets["training"], norms, device=device, shard_size=job.shard_size)
        pairs |= searched("ip", {str(norm): bias for norm, bias in zip(norms, biases, strict=True)})
    return pairs
