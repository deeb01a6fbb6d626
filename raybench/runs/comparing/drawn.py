"""The figures of several runs in the same draws of the units that they share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybench.metrics.draws import FigureDraws, sample_draws
from raybench.metrics.samples import FigureOf, MeanOf
from raybench.runs.comparing.checks import FinishedRun
from raybench.runs.comparing.units import Shared, shared_units


@dataclass(frozen=True)
class SharedSamples:
    """Samples that several runs have, over the same units; `runs` are their places."""

    runs: tuple[int, ...]
    shared: Shared

    @property
    def problem(self) -> str:
        return self.shared.problem


@dataclass(frozen=True)
class DrawnRuns:
    """The figures of all draws by run; by run values of figures over fewer units than its table has; how many units
    have something to be found, by figure.
    """

    draws: tuple[FigureDraws, ...]
    values: tuple[dict[FigureOf, float], ...]
    units: dict[FigureOf, int]


def shared_samples(runs: Sequence[FinishedRun]) -> list[SharedSamples]:
    """For each sample of a figure that is compared: those that runs have of it, over the units that they share.

    A run whose codec failed has a row, but no sample for it.
    """
    known = [run.stored.by_figure for run in runs]
    shown = [{FigureOf(cell.row, cell.figure) for cell in run.cells} for run in runs]
    found: list[SharedSamples] = []
    done: set[FigureOf] = set()
    for figure in dict.fromkeys(figure for figures in known for figure in figures):
        members = tuple(number for number, figures in enumerate(known) if figure in figures)
        if figure not in done and (len(members) > 1 or all(figure in figures for figures in shown)):
            samples = [known[number][figure] for number in members]
            done.update(samples[0].figures)
            names = [runs[number].name for number in members]
            found.append(SharedSamples(members, shared_units(names, runs[0].stored.kind, samples)))
    return found


def draw_shared(runs: Sequence[FinishedRun], found: Sequence[SharedSamples], draws: int, seed: int) -> DrawnRuns:
    """Draw every sample, and the means of figures."""
    drawn: list[FigureDraws] = [{} for _ in runs]
    values: list[dict[FigureOf, float]] = [{} for _ in runs]
    for one in found:
        for number, sample in zip(one.runs, one.shared.samples, strict=True):
            drawn[number].update(sample_draws(sample, draws, seed, _threads()))
            if one.shared.dropped:
                plain = sample.draw(np.ones(len(sample.units), np.int64))
                values[number].update(zip(sample.figures, plain.tolist(), strict=True))
    for number, run in enumerate(runs):
        for mean in run.stored.means:
            if all(part in drawn[number] for part in mean.parts):
                drawn[number][mean.figure] = mean.draws(drawn[number])
                values[number].update(_mean_value(run, mean, values[number]))
    return DrawnRuns(tuple(drawn), tuple(values), _units(runs, found))


def _units(runs: Sequence[FinishedRun], found: Sequence[SharedSamples]) -> dict[FigureOf, int]:
    names = {figure: own for one in found for figure, own in one.shared.units_with_items.items()}
    for mean in (mean for run in runs for mean in run.stored.means):
        if all(part in names for part in mean.parts):
            names[mean.figure] = np.unique(np.concatenate([names[part] for part in mean.parts]))
    return {figure: len(known) for figure, known in names.items()}


def _mean_value(run: FinishedRun, mean: MeanOf, values: dict[FigureOf, float]) -> dict[FigureOf, float]:
    """The mean over fewer units, where parts of it are."""
    if not any(part in values for part in mean.parts):
        return {}
    table = {FigureOf(cell.row, cell.figure): np.nan if cell.value is None else cell.value for cell in run.cells}
    parts = {part: np.array([values.get(part, table.get(part, np.nan))]) for part in mean.parts}
    return {mean.figure: float(mean.draws(parts)[0])}


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
