"""What figures of copy detection are drawn from: all queries are units, with or without true pairs and predictions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.images.figures import (
    COPYDAYS_FIGURES,
    HEADLINE,
    Candidates,
    CodecResults,
    asked_results,
)
from raybench.benchmarks.images.labelled_sets import LabelledSets
from raybench.benchmarks.images.retrieval_figures import IN_MAIN_PLACES, MAIN_MEANS, Ranking
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.engine.items import PerItem, name_of
from raybench.engine.run import Run
from raybench.formats.names import Names
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import Predictions, TruePairs, count_blocks
from raybench.metrics.partials import NO_REFERENCE
from raybench.metrics.pooled_items import pooled_items
from raybench.metrics.samples import FigureOf, MeanSample, RankedSample, Units
from raybench.table import columns_of

Found = TypeVar("Found", Candidates, CodecResults, Ranking)
UAP, ACCURACY, RECALL = columns_of(HEADLINE)
STRONG_MAP, OVERALL_UAP = columns_of(COPYDAYS_FIGURES)


@dataclass(frozen=True)
class SampleOf(Generic[Found]):
    """What was found for one row of the main table, to be sampled; `part` tells its samples apart."""

    found: Found
    part: str

    @property
    def name(self) -> str:
        """Of its file."""
        stem = re.sub(r"[^\w.]+", "-", name_of(self.found)).strip("-")
        return f"{stem}_{self.part}"


def disc_samples(
    run: Run, rows: Sequence[Candidates], truth: TruePairs, queries: Names, references: Names | None
) -> RunSamples:
    """Samples of the main table's rows, written; `references` are none where only predictions are known."""
    pooled, tops = ([SampleOf(one, part) for one in rows] for part in ("pooled", "accuracy"))
    stages = (
        run.each(sample_pool, pooled, truth, queries, version=1),
        run.each(sample_accuracy, tops, truth, queries, version=1),
    )
    for items, stage in zip((pooled, tops), stages, strict=True):
        write_samples(run, items, stage)
    return RunSamples("queries", stages, data={} if references is None else {"references": references.digest})


def sample_pool(row: SampleOf[Candidates], truth: TruePairs, queries: Names) -> Arrays:
    """What µAP and recall at precision 0.9 are drawn from."""
    return _pooled_sample(row.found, truth, queries, {UAP: "step_ap", RECALL: "recall_at_p90"})


def _pooled_sample(row: Candidates, truth: TruePairs, queries: Names, flavours: Mapping[str, str]) -> Arrays:
    """What figures of one pool are drawn from; `flavours` has those that are wanted."""
    items = pooled_items(truth, row.blocks)
    positive, query = items.ranked()
    missed = _counts(truth.query, queries) - _counts(items.query, queries)
    figures = tuple(FigureOf(row.variant.row, name) for name in flavours)
    sample = RankedSample(figures, tuple(flavours.values()), _units(queries), positive, query, query, missed)
    return sample.to_arrays()


def sample_accuracy(row: SampleOf[Candidates], truth: TruePairs, queries: Names) -> Arrays:
    """What accuracy at 1 is drawn from: every true pair, alone at the top of its query or not."""
    found, counts = count_blocks(truth, row.found.blocks)
    top = np.zeros((len(truth), 1))
    top[found.index[counts.own == 1]] = 1.0
    figure = FigureOf(row.found.variant.row, ACCURACY)
    return MeanSample((figure,), _units(queries), truth.query.astype(np.int32), top).to_arrays()


def retrieval_samples(
    run: Run,
    rows: Sequence[Candidates],
    truth: TruePairs,
    rankings: Sequence[Ranking],
    measured: PerItem,
    sets: LabelledSets,
) -> RunSamples:
    """Samples of the main table's rows, written: `measured` has the figures of every query by each ranking."""
    queries = sets.queries.names
    pooled = [SampleOf(one, "pooled") for one in rows]
    means = [SampleOf(one, "means") for one in rankings]
    stages = (
        run.each(sample_uap, pooled, truth, queries, version=1),
        run.each(sample_means, means, measured, queries, version=1),
    )
    write_samples(run, pooled, stages[0])
    write_samples(run, means, stages[1])
    return RunSamples("queries", stages, data={"references": sets.references.names.digest})


def sample_uap(row: SampleOf[Candidates], truth: TruePairs, queries: Names) -> Arrays:
    """What µAP alone is drawn from."""
    return _pooled_sample(row.found, truth, queries, {UAP: "step_ap"})


def sample_means(row: SampleOf[Ranking], measured: Arrays, queries: Names) -> Arrays:
    """What means over queries are drawn from: the figures of each that counts."""
    counted = np.flatnonzero(measured["positives"] > 0)
    figures = tuple(FigureOf(row.found.variant.row, name) for name in columns_of(MAIN_MEANS))
    values = measured["values"][counted][:, IN_MAIN_PLACES]
    return MeanSample(figures, _units(queries), counted.astype(np.int32), values).to_arrays()


def copydays_samples(
    run: Run,
    rows: Sequence[CodecResults],
    truth: TruePairs,
    strong: NDArray[np.int64],
    queries: Names,
    distractors: Names | None,
) -> RunSamples:
    """Samples of the main table's rows, written; `strong` are the queries of that block."""
    blocks, pools = ([SampleOf(one, part) for one in rows] for part in ("strong", "overall"))
    stages = (
        run.each(sample_strong, blocks, truth, strong, queries, version=1),
        run.each(sample_overall, pools, truth, queries, version=1),
    )
    for items, stage in zip((blocks, pools), stages, strict=True):
        write_samples(run, items, stage)
    return RunSamples("queries", stages, data={"distractors": "none" if distractors is None else distractors.digest})


def sample_strong(row: SampleOf[CodecResults], truth: TruePairs, strong: NDArray[np.int64], queries: Names) -> Arrays:
    """What the mAP of block strong is drawn from: the AP of each of its queries."""
    found = asked_results(row.found.read(), truth)
    values = found.average_precision[np.searchsorted(found.query, strong)][:, np.newaxis]
    figure = FigureOf(row.found.name, STRONG_MAP)
    return MeanSample((figure,), _units(queries), strong.astype(np.int32), values).to_arrays()


def sample_overall(row: SampleOf[CodecResults], truth: TruePairs, queries: Names) -> Arrays:
    """What the overall µAP is drawn from. It is divided by the number of queries, so each has one positive.

    A query that has several true originals and finds them has less than none missed.
    """
    found = asked_results(row.found.read(), truth)
    there = found.reference != NO_REFERENCE
    query = np.broadcast_to(found.query[:, np.newaxis], there.shape)[there]
    pool = Predictions(query, found.reference[there], -found.distance[there].astype(np.float64))
    items = pooled_items(truth, lambda: [pool])
    positive, unit = items.ranked()
    missed = _counts(found.query, queries) - _counts(items.query, queries)
    figure = FigureOf(row.found.name, OVERALL_UAP)
    return RankedSample((figure,), ("trapezoid_ap",), _units(queries), positive, unit, unit, missed).to_arrays()


def _units(queries: Names) -> Units:
    return Units.plain(queries.array.to_pylist())


def _counts(query: NDArray[Any], queries: Names) -> NDArray[np.int64]:
    return np.bincount(query, minlength=len(queries))
