"""Facts of vector sets: number, dimension, whether they have length 1, how many stand in another set, too.

A row is known by a digest of 16 bytes, so sets are compared without ever being in one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128_digest

from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.vector_set import VectorSet, as_floats
from raybench.formats.shardfile import Arrays
from raybench.search.distances import row_sums

NORMALISED_WITHIN = 0.01  # mean of | |x| - 1 | over all descriptors, as the published code decides


@dataclass(frozen=True)
class VectorFacts:
    """What is known of one set; `rows` has, by shard, `index`, `digest` and `deviation` (| |x| - 1 |) of each row."""

    role: str
    count: int
    dimension: int
    deviation: float  # summed over the set
    rows: Mapped


def vector_facts(run: Run, vectors: VectorSet) -> VectorFacts:
    """Count, dimension and length of a set's vectors."""
    shards = vectors.mapped.shards
    if not shards:
        raise DataError(f"{vectors.role}: no vectors; expected at least one")
    words = [f"{vectors.role} {shard.start:,}..{shard.stop - 1:,}" for shard in shards]
    rows = run.each(_row_facts, words, vectors.by_shard, version=1).whole
    found = run.read(run.each(_set_facts, [vectors.role], rows, version=1), 0)
    return VectorFacts(
        vectors.role, int(found["count"][0]), int(found["dimension"][0]), float(found["deviation"][0]), rows
    )


def _row_facts(_: str, arrays: Arrays) -> Arrays:
    """What is known of the rows of one shard of a set."""
    rows = as_floats(arrays["vectors"])
    exact = rows.astype(np.float64, order="C")
    digests = b"".join(xxh3_128_digest(row) for row in rows + np.float32(0))  # equal zeros, whatever their sign
    return {
        "index": arrays["index"],
        "digest": np.frombuffer(digests, np.uint64).reshape(-1, 2),
        "deviation": np.abs(np.sqrt(row_sums(exact, exact)) - 1),
        "dimension": np.array([rows.shape[1]] if len(rows) else [], np.int64),
    }


def are_normalised(facts: Sequence[VectorFacts]) -> bool:
    """Whether descriptors come with length 1, over all sets together, as published."""
    count = sum(one.count for one in facts)
    return count > 0 and sum(one.deviation for one in facts) / count < NORMALISED_WITHIN


def shared_count(run: Run, facts: VectorFacts, among: VectorFacts) -> int:
    """How many of the vectors stand, exactly equal, among the others: with training vectors, a leak."""
    found = run.read(run.each(_shared_rows, ["rows of two sets"], facts.rows, among.rows, version=1), 0)
    return int(found["count"][0])


def leakage_notes(run: Run, facts: Mapping[str, VectorFacts]) -> Iterator[str]:
    """A line for each set, by its role, in which descriptors of training images stand, exactly."""
    for role, one in facts.items():
        shared = shared_count(run, one, facts["training"]) if "training" in facts and role != "training" else 0
        if shared:
            yield f"LEAKAGE: {shared:,} {role} have a descriptor that a training image has, too."


def _set_facts(role: str, rows: Mapped) -> Arrays:
    """The rows of one set summed up, in name order."""
    parts = [rows.read(one.index) for one in rows.shards]
    index, deviation = (np.concatenate([part[name] for part in parts]) for name in ("index", "deviation"))
    dimensions = np.unique(np.concatenate([part["dimension"] for part in parts]))
    if len(dimensions) > 1:
        found = " and ".join(map(str, dimensions.tolist()))
        raise DataError(f"{role}: vectors of dimension {found}; all must be the same")
    return {
        "count": np.array([len(index)]),
        "dimension": dimensions if len(dimensions) else np.array([0]),
        "deviation": np.array([deviation[np.argsort(index)].sum()]),
    }


def _shared_rows(_: str, rows: Mapped, among: Mapped) -> Arrays:
    """How many rows of one set have equals in the other."""
    return {"count": np.array([int(np.isin(_digests(rows), _digests(among)).sum())])}


def _digests(rows: Mapped) -> NDArray[np.void]:
    pairs = np.concatenate([rows.read(one.index)["digest"] for one in rows.shards])
    return np.ascontiguousarray(pairs).view(np.dtype((np.void, 16)))[:, 0]
