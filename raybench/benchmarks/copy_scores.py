"""Candidate pairs of several variants -> their pooled figures and precision-recall points, a shard a variant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.stage import Mapped
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import (
    PRECISIONS,
    OperatingPoint,
    PooledFigures,
    Predictions,
    TruePairs,
    count_blocks,
    measure,
    pooled_curve,
)


@dataclass(frozen=True)
class Variant:
    """One row of figures: by which codec and normalisation, among which candidates."""

    codec: str
    score_norm: str
    candidates: str


@dataclass(frozen=True)
class ScoreCandidates:
    """The stage over variants: figures and precision-recall points of each one's candidates."""

    pairs: tuple[Mapped, ...]
    truth: TruePairs

    name = "score"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        truth = (self.truth.query, self.truth.reference)
        return digest_of(self.name, self.version, [mapped.digest for mapped in self.pairs], *truth)

    def load(self, shard: Shard) -> Predictions:
        return candidates_in(self.pairs[shard.index])

    def compute(self, payload: Predictions) -> Arrays:
        return scored(self.truth, payload)

    def keys(self, shard: Shard) -> str:
        return f"candidates of variant {shard.index + 1}"


def candidates_in(mapped: Mapped) -> Predictions:
    arrays = mapped.read(0)
    return Predictions(arrays["query"], arrays["reference"], arrays["score"])


def scored(truth: TruePairs, predictions: Predictions) -> Arrays:
    """Figures and curve of predictions, as one shard."""
    found, counts = count_blocks(truth, lambda: [predictions])
    figures, curve = measure(truth, found, counts), pooled_curve(truth, found, counts).thinned()
    points = [(point.recall, np.nan if point.threshold is None else point.threshold) for point in figures.at_precision]
    return {
        "figures": np.array([figures.micro_ap, figures.accuracy_at_1, figures.recall_at_10]),
        "points": np.array(points),
        "rank": curve.rank,
        "recall": curve.recall,
        "precision": curve.precision,
        "score": curve.score,
    }


def figures_in(arrays: dict[str, NDArray[Any]]) -> PooledFigures:
    """What `scored` left."""
    points = [
        OperatingPoint(precision, float(recall), None if np.isnan(threshold) else float(threshold))
        for precision, (recall, threshold) in zip(PRECISIONS, arrays["points"], strict=True)
    ]
    micro_ap, accuracy_at_1, recall_at_10 = arrays["figures"].tolist()
    return PooledFigures(micro_ap, accuracy_at_1, recall_at_10, tuple(points))
