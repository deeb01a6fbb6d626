"""Candidate pairs of several variants -> their pooled figures and precision-recall points, a shard a variant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.formats.shardfile import Arrays
from raybench.metrics.bootstrap import Interval, interval, pooled_draws
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
    queries: int
    seed: int

    name = "score"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        truth = (self.truth.query, self.truth.reference, self.queries, self.seed)
        return digest_of(self.name, self.version, [mapped.digest for mapped in self.pairs], *truth)

    def load(self, shard: Shard) -> Predictions:
        return candidates_in(self.pairs[shard.index])

    def compute(self, payload: Predictions) -> Arrays:
        draws = pooled_draws(self.truth, payload, self.queries, seed=self.seed)
        figures = [draws.micro_ap, *draws.recall.T, *draws.threshold.T]
        return {**scored(self.truth, payload), "intervals": np.array([_ends(interval(each)) for each in figures])}

    def keys(self, shard: Shard) -> str:
        return f"candidates of variant {shard.index + 1}"


@dataclass(frozen=True)
class Scored:
    """Figures and intervals of each variant that has candidates, and the shards that hold its curve."""

    mapped: Mapped | None
    figures: dict[Variant, PooledFigures]
    intervals: dict[Variant, list[Interval]]


def score(run: Run, pairs: dict[Variant, Mapped], truth: TruePairs, queries: int, seed: int) -> Scored:
    """Measure the candidates of every variant."""
    if not pairs:
        return Scored(None, {}, {})
    mapped = run.map(ScoreCandidates(tuple(pairs.values()), truth, queries, seed), len(pairs), 1)
    arrays = {variant: run.read(mapped, number) for number, variant in enumerate(pairs)}
    return Scored(
        mapped,
        {variant: figures_in(found) for variant, found in arrays.items()},
        {variant: intervals_in(found) for variant, found in arrays.items()},
    )


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


def _ends(found: Interval) -> tuple[float, float]:
    return np.nan if found.low is None else found.low, np.nan if found.high is None else found.high


def intervals_in(arrays: dict[str, NDArray[Any]]) -> list[Interval]:
    """Of µAP, of recall at each precision, of the threshold at each precision."""
    ends = [tuple(None if np.isnan(end) else float(end) for end in pair) for pair in arrays["intervals"]]
    return [Interval(low, high) for low, high in ends]


def figures_in(arrays: dict[str, NDArray[Any]]) -> PooledFigures:
    """What `scored` left."""
    points = [
        OperatingPoint(precision, float(recall), None if np.isnan(threshold) else float(threshold))
        for precision, (recall, threshold) in zip(PRECISIONS, arrays["points"], strict=True)
    ]
    micro_ap, accuracy_at_1, recall_at_10 = arrays["figures"].tolist()
    return PooledFigures(micro_ap, accuracy_at_1, recall_at_10, tuple(points))
