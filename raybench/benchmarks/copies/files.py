"""Files of copy detection beside the tables: predictions in the ISC format, written and read; points of curves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import numpy as np

from raybench import storage
from raybench.benchmarks.copies.scores import Scored, Variant, candidates_in
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.formats import disc
from raybench.formats.names import Names
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays

POINTS = ("rank", "recall", "precision", "score")


def variant_slug(variant: Variant) -> str:
    """A variant's name for a file, another for each variant.

    >>> variant_slug(Variant("PCAW24,L2norm,Flat", "-1.00[0,2]", "knn"))
    'PCAW24-L2norm-Flat_minus1.00-0-2_knn'
    """
    parts = (variant.codec, variant.score_norm.replace("-", "minus"), variant.candidates)
    return "_".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)


def export_predictions(run: Run, files: dict[str, Mapped], queries: Names, references: Names) -> list[str]:
    """Candidates as predictions.csv, by query, then falling score, each under its name."""
    pairs = tuple(files.values())
    source = digest_of([mapped.digest for mapped in pairs], queries.digest, references.digest)
    write = partial(_prediction_file, pairs, queries, references)
    run.export(Export("predictions", source, write, tuple(files)), list(files))
    return list(files)


def _prediction_file(pairs: tuple[Mapped, ...], queries: Names, references: Names, number: int) -> bytes:
    found = candidates_in(pairs[number])
    order = np.lexsort((found.reference, -found.score, found.query))
    names = queries.take(found.query[order]), references.take(found.reference[order])
    return disc.write_predictions(*names, found.score[order])


def export_curves(run: Run, scored: Scored) -> list[str]:
    """A file of precision-recall points for each variant that has figures."""
    if scored.mapped is None:
        return []
    names = [f"curves/{variant_slug(variant)}.parquet" for variant in scored.figures]
    run.export(Export("curves", scored.mapped.digest, partial(_curve_file, scored.mapped), tuple(names)), names)
    return names


def _curve_file(scores: Mapped, number: int) -> bytes:
    arrays = scores.read(number)
    return write_parquet({name: arrays[name] for name in POINTS})


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
        query, reference = self.queries.indices(payload.query), self.references.indices(payload.reference)
        return {"query": query, "reference": reference, "score": payload.score}

    def keys(self, shard: Shard) -> str:
        return self.uri
