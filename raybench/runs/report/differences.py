"""Runs on the same units (queries, sequences, pairs): what each unit is worth by each run, for a chart of two of them.

The page has at most `MOST_UNITS` of a benchmark: those on which runs differ most, and some of the rest, evenly taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.runs.report.layouts import layout_of
from raybench.runs.report.measured import BETWEEN
from raybench.runs.report.shown import NamedRun, Section

if TYPE_CHECKING:
    from raybench.metrics.samples import FigureOf

MOST_UNITS, MOST_DIFFERENT = 400, 300
MOST_NUMBERS = 24_000  # units × runs × figures of one benchmark
DIGITS = 4

UnitData = dict[str, Any]  # for the page's scripts


def unit_data(section: Section) -> UnitData | None:
    """The values of units by figure and run; None unless two runs have the same figures of the same units."""
    runs = [run for run in section.runs if run.shown.units]
    figures = compared_figures(section.benchmark, runs)
    if len(runs) < 2 or not figures:
        return None
    by_figure: list[dict[str, Any]] = []
    numbers = 0
    for figure in figures:
        one = _figure_data(runs, figure)
        numbers += len(one["names"]) * len(runs)
        if by_figure and numbers > MOST_NUMBERS:
            break
        by_figure += [one] if one["names"] else []
    if not by_figure:
        return None
    return {"kind": runs[0].shown.units[0].kind, "runs": [run.colour for run in runs], "figures": by_figure}


def _figure_data(runs: Sequence[NamedRun], figure: FigureOf) -> dict[str, Any]:
    names, values = values_by_run(runs, figure)
    kept = chosen_units(values)
    return {
        "row": figure.row,
        "figure": figure.figure,
        "lower": figure.figure in LOWER_IS_BETTER,
        "names": [names[place] for place in kept.tolist()],
        "values": [[_rounded(value) for value in row] for row in values[:, kept].tolist()],
        "total": len(_comparable(values)),
    }


def chosen_units(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The units to show of values (runs, units): all, or the most different and an even share of the others."""
    defined = _comparable(values)
    if len(defined) <= MOST_UNITS:
        return defined
    spread = np.nanmax(values[:, defined], axis=0) - np.nanmin(values[:, defined], axis=0)
    order = np.argsort(-spread, kind="stable")
    others = np.sort(order[MOST_DIFFERENT:])
    evenly = others[np.linspace(0, len(others) - 1, MOST_UNITS - MOST_DIFFERENT).astype(np.int64)]
    kept: NDArray[np.int64] = defined[np.sort(np.concatenate([order[:MOST_DIFFERENT], evenly]))]
    return kept


def _comparable(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Units that at least two runs have a value of."""
    return np.flatnonzero((~np.isnan(values)).sum(axis=0) >= 2)


def compared_figures(benchmark: str, runs: Sequence[NamedRun]) -> list[FigureOf]:
    """Figures that two runs have, those of the headline first, and of these the rows that stand for the whole run."""
    layout = layout_of(benchmark)
    counts: dict[FigureOf, int] = {}
    for run in runs:
        for one in run.shown.units:
            counts[one.figure] = counts.get(one.figure, 0) + 1
    whole = set(layout.stands_for.values())

    def place(figure: FigureOf) -> tuple[bool, bool]:
        return figure.figure != layout.headline, not whole & set(figure.row.split(BETWEEN))

    return sorted((figure for figure, count in counts.items() if count > 1), key=place)


def values_by_run(runs: Sequence[NamedRun], figure: FigureOf) -> tuple[list[str], NDArray[np.float64]]:
    """Names of all units that a run has, and their values (runs, units); nan where a run has none."""
    own = [next((one for one in run.shown.units if one.figure == figure), None) for run in runs]
    known = [one for one in own if one is not None]
    if len(known) == len(own) and all(one.names == known[0].names for one in known):
        return list(known[0].names), np.stack([one.values for one in known])
    names = list(dict.fromkeys(name for one in known for name in one.names))
    place = {name: number for number, name in enumerate(names)}
    values = np.full((len(runs), len(names)), np.nan)
    for number, one in enumerate(own):
        if one is not None:
            values[number, [place[name] for name in one.names]] = one.values
    return names, values


def _rounded(value: float) -> float | None:
    return round(value, DIGITS) if np.isfinite(value) else None
