"""What a run does with the samples of its outcome: keep them and, with `--bootstrap N`, draw intervals of figures."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Job, Outcome
from raybench.benchmarks.samples import INDEX, RunSamples, SamplesIndex
from raybench.engine.run import Run
from raybench.formats.shardfile import Arrays
from raybench.metrics.bootstrap import CONFIDENCE, Interval, interval
from raybench.metrics.draws import FigureDraws, sample_draws
from raybench.metrics.samples import FigureOf, sample_of
from raybench.table import Table, figure_cells

COLUMNS = ("row", "figure", "value", "low", "high")
FRACTIONS = frozenset(COLUMNS[2:])


def with_samples(run: Run, job: Job[Any], outcome: Outcome) -> Outcome:
    """The outcome, with intervals and a table of them where the job asks for some; what samples are is written down."""
    if outcome.samples is None:
        return outcome
    index = SamplesIndex.of(outcome.samples)
    run.patiently("the samples", lambda: storage.publish(storage.join(job.out, INDEX), index.to_json()))
    run.files.append(INDEX)
    if job.bootstrap is None:
        return outcome
    draws = _drawn(run, outcome.samples, job.bootstrap, job.seed)
    found = {(figure.row, figure.figure): interval(values) for figure, values in draws.items()}
    table = _table(job, outcome, found, outcome.samples.kind)
    return dataclasses.replace(outcome, further=(*outcome.further, table), intervals=found)


def _drawn(run: Run, samples: RunSamples, draws: int, seed: int) -> FigureDraws:
    """The figures of every draw, each sample's on a worker."""
    found: FigureDraws = {}
    for stage in samples.stages:
        items = range(len(stage.shards))
        for arrays in run.read_each(run.each(draw_sample, items, stage, draws, seed, version=1)):
            names = map(FigureOf, arrays["row"].tolist(), arrays["figure"].tolist())
            found.update(zip(names, arrays["draws"], strict=True))
    return found | {mean.figure: mean.draws(found) for mean in samples.means}


def draw_sample(_: int, arrays: Arrays, draws: int, seed: int) -> Arrays:
    """The figures of one sample in every draw: (figures, draws)."""
    drawn = sample_draws(sample_of(arrays), draws, seed)
    return {"row": arrays["row"], "figure": arrays["figure"], "draws": np.stack(list(drawn.values()))}


def _table(job: Job[Any], outcome: Outcome, found: dict[tuple[str, str], Interval], kind: str) -> Table:
    benchmark = BENCHMARKS[job.benchmark].open()
    cells = figure_cells(outcome.main, benchmark.keys, benchmark.figures)
    known = [(cell, found[cell.row, cell.figure]) for cell in cells if (cell.row, cell.figure) in found]
    rows = tuple((cell.row, cell.figure, cell.value, ends.low, ends.high) for cell, ends in known)
    note = f"low, high: the middle {CONFIDENCE:.0%} of {job.bootstrap:,} draws of {kind} with replacement."
    return Table("intervals", COLUMNS, rows, FRACTIONS, (note,))
