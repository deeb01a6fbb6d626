"""Files of copy detection beside the tables: predictions in the ISC format, written and read; points of curves."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from raybench import storage
from raybench.benchmarks.copy_scores import Scored, Variant, candidates_in
from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.run import Run
from raybench.engine.stage import FILE_BYTES, Mapped
from raybench.formats import disc
from raybench.formats.names import Names
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import Predictions

POINTS = ("rank", "recall", "precision", "score")


def variant_slug(variant: Variant) -> str:
    """A variant's name for a file, another for each variant.

    >>> variant_slug(Variant("PCAW24,L2norm,Flat", "-1.00[0,2]", "knn"))
    'PCAW24-L2norm-Flat_minus1.00-0-2_knn'
    """
    parts = (variant.codec, variant.score_norm.replace("-", "minus"), variant.candidates)
    return "_".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)


@dataclass(frozen=True)
class PredictionFiles:
    """The stage that writes candidates as predictions.csv, by query, then falling score; a file a shard."""

    pairs: tuple[Mapped, ...]
    queries: Names
    references: Names

    name = "predictions"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        pairs = [mapped.digest for mapped in self.pairs]
        return digest_of(self.name, self.version, pairs, self.queries.digest, self.references.digest)

    def load(self, shard: Shard) -> Predictions:
        return candidates_in(self.pairs[shard.index])

    def compute(self, payload: Predictions) -> Arrays:
        order = np.lexsort((payload.reference, -payload.score, payload.query))
        queries, references = self.queries.take(payload.query[order]), self.references.take(payload.reference[order])
        text = disc.write_predictions(queries, references, payload.score[order])
        return {FILE_BYTES: np.frombuffer(text, np.uint8)}

    def keys(self, shard: Shard) -> str:
        return f"predictions of variant {shard.index + 1}"


@dataclass(frozen=True)
class Curves:
    """The stage that writes precision-recall points, a Parquet file a variant."""

    scores: Mapped
    variants: tuple[Variant, ...]

    name = "curves"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.scores.digest)

    def load(self, shard: Shard) -> Arrays:
        arrays = self.scores.read(shard.index)
        return {name: arrays[name] for name in POINTS}

    def compute(self, payload: Arrays) -> Arrays:
        return {FILE_BYTES: np.frombuffer(write_parquet(payload), np.uint8)}

    def keys(self, shard: Shard) -> str:
        return f"curve of {variant_slug(self.variants[shard.index])}"


def export_curves(run: Run, scored: Scored) -> list[str]:
    """A file of points for each variant that has figures."""
    if scored.mapped is None:
        return []
    variants = tuple(scored.figures)
    names = [f"curves/{variant_slug(variant)}.parquet" for variant in variants]
    run.export(Curves(scored.mapped, variants), names)
    return names


@dataclass(frozen=True)
class ReadPredictions:
    """The stage, of one shard, that reads a predictions file into candidates, by the places of these names."""

    uri: str
    content: str
    most: int
    queries: Names
    references: Names

    name = "read-predictions"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.content, self.queries.digest, self.references.digest)

    def load(self, shard: Shard) -> disc.PredictionTable:
        return disc.read_predictions(storage.read(self.uri), self.uri, self.most)

    def compute(self, payload: disc.PredictionTable) -> Arrays:
        query, reference = self.queries.places(payload.query), self.references.places(payload.reference)
        return {"query": query, "reference": reference, "score": payload.score}

    def keys(self, shard: Shard) -> str:
        return self.uri
