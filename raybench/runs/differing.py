"""Pictures of the units on which runs of a benchmark differ most, drawn for the page from the runs' own data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from raybench.benchmarks import BENCHMARKS
from raybench.errors import InputError
from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.runs.report.differences import compared_figures, values_by_run
from raybench.runs.report.shown import Section, Shown, sections_of

MOST_UNITS = 6  # of a benchmark, by the figure that comes first


def with_differing_cases(runs: Sequence[Shown], said: Callable[[str], None]) -> list[Shown]:
    """The runs, each with pictures of units by which it is behind another most, before its own pictures.

    Where the data is gone there are none, and why is said.
    """
    wanted: dict[int, list[str]] = {}
    for section in sections_of(runs):
        for shown, unit in _behind(section):
            wanted.setdefault(id(shown), []).append(unit)
    return [_with_cases(shown, wanted.get(id(shown), []), said) for shown in runs]


def _behind(section: Section) -> list[tuple[Shown, str]]:
    """Units by falling distance between the best and the worst run, each with the run that is worst."""
    runs = [run for run in section.runs if run.shown.units]
    figures = compared_figures(section.benchmark, runs)
    if len(runs) < 2 or not figures:
        return []
    names, values = values_by_run(runs, figures[0])
    known = np.flatnonzero((~np.isnan(values)).sum(axis=0) > 1)
    spread = np.nanmax(values[:, known], axis=0) - np.nanmin(values[:, known], axis=0)
    most = known[np.argsort(-spread, kind="stable")[:MOST_UNITS]]
    worth = -values[:, most] if figures[0].figure in LOWER_IS_BETTER else values[:, most]
    worst = np.nanargmin(worth, axis=0) if len(most) else most
    differ = np.sort(spread)[::-1][: len(most)] > 0
    found = zip(most.tolist(), worst.tolist(), differ.tolist(), strict=True)
    return [(runs[run].shown, names[unit]) for unit, run, differs in found if differs]


def _with_cases(shown: Shown, units: Sequence[str], said: Callable[[str], None]) -> Shown:
    there = {picture.unit for picture in shown.pictures}
    units = [unit for unit in units if unit not in there]
    draw = BENCHMARKS[shown.manifest.benchmark].open().cases if units else None
    if draw is None or not shown.out:
        return shown
    try:
        drawn = draw(shown.out, shown.manifest.arguments, shown.tables, units)
    except InputError as error:
        said(f"{shown.out}: no pictures of where runs differ ({error})")
        return shown
    return dataclasses.replace(shown, pictures=(*drawn, *shown.pictures))
