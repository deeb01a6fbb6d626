"""Finished runs side by side: every figure's interval, its difference to a baseline on the same draws, and what chance
would do. From the runs' own folders: their tables, and the samples that they kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from raybench.errors import ConfigError, Problems
from raybench.metrics.bootstrap import CONFIDENCE, interval
from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.metrics.samples import FigureOf
from raybench.metrics.significance import LEVEL, group_letters, holm, least_of_draws, paired_p
from raybench.runs.comparing.checks import FinishedRun, differences, few
from raybench.runs.comparing.drawn import DrawnRuns, draw_shared, shared_samples
from raybench.runs.comparing.runs import find_runs
from raybench.table import Cell, Table, warning_of

COLUMNS = (
    *("run", "row", "figure", "value", "low", "high"),
    *("difference", "difference_low", "difference_high", "p", "p_holm", "group"),
)
FRACTIONS = frozenset(COLUMNS[3:9])
DRAWS = 1_000
FigureDrawsByRun = Mapping[int, NDArray[np.float64]]  # of one figure
FEW_UNITS = 20  # below this the middle of the draws is clearly narrower than it should be


@dataclass(frozen=True)
class Comparison:
    """What a comparison found; `table` has a line per row and figure of the main table and run, in the order of runs.

    `units` are what was drawn: queries, sequences or pairs. `notes` are what its reader must know, if anything.
    """

    benchmark: str
    runs: tuple[str, ...]
    baseline: str
    units: str
    draws: int
    seed: int
    table: Table = field(repr=False)
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.table.columns

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        return self.table.rows

    def __str__(self) -> str:
        return self.table.to_text()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return self.table.to_html()


def compare(
    runs: Sequence[str], baseline: str | None = None, draws: int = DRAWS, seed: int = 0, force: bool = False
) -> Comparison:
    """Compare finished runs, by their output folders; raises InputError where they do not measure the same.

    The baseline is the first run unless one is named, which is among the runs or comes in front of them. With `force`
    rows and units that all have are compared, and notes of the table say what is not the same.
    """
    if draws < 1 or seed < 0:
        raise ConfigError(f"draws {draws}, seed {seed}: expected at least 1 draw, and a seed of at least 0")
    found, base = find_runs(runs, baseline)
    figures = _common(found, base)
    if not figures:
        rows = "; ".join(f"{one.out} has {few(one.rows)}" for one in found)
        raise ConfigError(f"compare: the runs have no row in common, nothing to compare: {rows}")
    shared = shared_samples(found)
    reasons = [line for one in found if one is not found[base] for line in differences(found[base], one)]
    reasons = list(dict.fromkeys([*reasons, *(one.problem for one in shared if one.problem)]))
    if reasons and not force:
        raise Problems(f"{line}; --force compares what all have" for line in reasons)
    drawn = draw_shared(found, shared, draws, seed)
    lines = [line for figure in figures for line in _lines(figure, found, base, drawn)]
    first, names = found[base], tuple(one.name for one in found)
    kind, notes = first.stored.kind, (*(f"FORCED: {line}." for line in reasons), *_notes(found, drawn, draws))
    words = (
        f"low, high: the middle {CONFIDENCE:.0%} of {draws:,} draws of {kind} with replacement, the same draws for all "
        "runs; p: two-sided, from the paired draws; p_holm: corrected for several runs; runs that share a letter in "
        f"`group` can't be told apart at {LEVEL:.0%}, corrected for all pairs of runs."
    )
    table = Table("comparison", COLUMNS, tuple(lines), FRACTIONS, (words, *notes))
    return Comparison(first.manifest.benchmark, names, first.name, kind, draws, seed, table, notes)


def _common(runs: Sequence[FinishedRun], base: int) -> list[FigureOf]:
    """The figures that every run has a cell of, in the order of the baseline's table."""
    known = [{FigureOf(cell.row, cell.figure) for cell in run.cells} for run in runs]
    return [
        figure
        for cell in runs[base].cells
        if all((figure := FigureOf(cell.row, cell.figure)) in cells for cells in known)
    ]


def _lines(figure: FigureOf, runs: Sequence[FinishedRun], base: int, drawn: DrawnRuns) -> list[tuple[Cell, ...]]:
    """The lines of one figure, a run each. Where a run has no value or no sample, its cells are empty."""
    values = [_value(run, figure, own) for run, own in zip(runs, drawn.values, strict=True)]
    draws = {
        number: own[figure] for number, own in enumerate(drawn.draws) if figure in own and values[number] is not None
    }
    units = drawn.units.get(figure, 0)
    p_values = {
        number: paired_p(draws[number] - draws[base], units) for number in draws if base in draws and number != base
    }
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    letters = _letters(values, draws, units, figure.figure in LOWER_IS_BETTER)
    lines: list[tuple[Cell, ...]] = []
    for number, run in enumerate(runs):
        against: tuple[Cell, ...] = (None,) * 5
        if number in p_values:
            ends = _ends(draws[number] - draws[base])
            p = _number(p_values[number]), _number(corrected[number])
            against = _difference(values[number], values[base]), *ends, *p
        own = values[number], *_ends(draws.get(number))
        lines.append((run.name, figure.row, figure.figure, *own, *against, letters.get(number)))
    return lines


def _value(run: FinishedRun, figure: FigureOf, recomputed: Mapping[FigureOf, float]) -> float | None:
    """The main table's own value; over fewer units than it has, that of those."""
    if figure in recomputed:
        return _number(recomputed[figure])
    return next(cell.value for cell in run.cells if FigureOf(cell.row, cell.figure) == figure)


def _letters(values: Sequence[float | None], draws: FigureDrawsByRun, units: int, lower: bool) -> dict[int, str]:
    """Runs that can't be told apart share a letter; the best, the lowest if `lower`, begins with a."""
    sign = 1 if lower else -1
    order = sorted(draws, key=lambda number: sign * (values[number] or 0.0))
    pairs = list(combinations(order, 2))
    corrected = holm([paired_p(draws[one] - draws[other], units) for one, other in pairs])
    return group_letters(order, [pair for pair, p in zip(pairs, corrected, strict=True) if p < LEVEL])


def _ends(draws: NDArray[np.float64] | None) -> tuple[float | None, float | None]:
    if draws is None:
        return None, None
    found = interval(draws)
    return found.low, found.high


def _difference(value: float | None, base: float | None) -> float | None:
    return None if value is None or base is None else value - base


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _notes(runs: Sequence[FinishedRun], drawn: DrawnRuns, draws: int) -> Iterator[str]:
    fewest = min(drawn.units.values(), default=0)
    if fewest < FEW_UNITS:
        yield (
            f"FEW: some figures rest on {fewest} {runs[0].stored.kind} only; intervals drawn from so few are too "
            "narrow, and p-values too small."
        )
    pairs = len(runs) * (len(runs) - 1) // 2
    if pairs * least_of_draws(draws) >= LEVEL:
        enough = math.ceil(2 * pairs / LEVEL)
        yield f"DRAWS: with {draws:,} draws no two of {len(runs)} runs can be told apart; give --draws {enough}."
    rows = dict.fromkeys(row for run in runs for row in run.rows)
    alone = [row for row in rows if not all(row in run.rows for run in runs)]
    if alone:
        yield f"Rows that not every run has are left out: {few(alone)}."
    yield from _warnings(runs)


def _warnings(runs: Sequence[FinishedRun]) -> Iterator[str]:
    """What the runs' own tables warn of, such as vectors that are all equal: a figure may look good for that alone."""
    notes = dict.fromkeys(note for run in runs for note in run.manifest.notes if warning_of(note))
    for note in notes:
        names = dict.fromkeys(run.name for run in runs if note in run.manifest.notes)
        yield note if len(names) == len({run.name for run in runs}) else f"{note} (in {', '.join(names)})"
