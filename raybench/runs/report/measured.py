"""The figures of a run's main table, row by row, with what is known of each: interval, and bounds where scores tie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from raybench.benchmarks import BENCHMARKS
from raybench.runs.report.shown import Shown
from raybench.table import Cell, Table, figure_cells

TIES_SHOWN = 0.001  # a figure's bounds are shown where ties move it by more
DRAWN_ALWAYS = ("disc_intervals", "retrieval_intervals")  # tables with the intervals of uAP
BETWEEN = " | "  # key cells in the name of a row


@dataclass(frozen=True)
class Measured:
    """A figure as a fraction: `low` and `high` are its interval, `worst` and `best` its bounds over orders of ties."""

    value: float | None
    low: float | None = None
    high: float | None = None
    worst: float | None = None
    best: float | None = None

    @property
    def moved_by_ties(self) -> bool:
        return self.worst is not None and self.best is not None and abs(self.best - self.worst) > TIES_SHOWN

    @property
    def sure(self) -> float | None:
        """What it is worth in any order of ties: a descriptor that is the same everywhere wins nothing by them."""
        if self.worst is None or self.best is None or self.value is None:
            return self.value
        return max(self.worst, self.value) if self.worst > self.best else min(self.worst, self.value)


def mean_of(cells: Sequence[Measured]) -> Measured:
    """The mean, with the means of its bounds where ties move a part; undefined where a part is."""
    if not cells or any(cell.value is None for cell in cells):
        return Measured(None)

    def mean(part: Callable[[Measured], float | None]) -> float:
        values = [cell.value if (own := part(cell)) is None else own for cell in cells]
        return sum(value for value in values if value is not None) / len(cells)

    if not any(cell.moved_by_ties for cell in cells):
        return Measured(mean(lambda cell: cell.value))
    return Measured(
        mean(lambda cell: cell.value), worst=mean(lambda cell: cell.worst), best=mean(lambda cell: cell.best)
    )


@dataclass(frozen=True)
class MeasuredRow:
    """A row of the main table: its key cells by column, its name, its figures."""

    keys: dict[str, str]
    name: str
    figures: dict[str, Measured]


def keys_and_figures(benchmark: str, table: Table) -> tuple[list[str], list[str]]:
    """The columns that name a row and those that are measured, as far as the table has them."""
    if benchmark not in BENCHMARKS:
        return [], []
    opened = BENCHMARKS[benchmark].open()
    return [key for key in opened.keys if key in table.columns], [
        column for column in table.columns if column in opened.figures
    ]


def measured_rows(shown: Shown) -> list[MeasuredRow]:
    """Every row of the main table with its figures."""
    table = shown.main
    if table is None:
        return []
    keys, figures = keys_and_figures(shown.manifest.benchmark, table)
    if not keys or not figures:
        return []
    cells = figure_cells(table, keys, figures)
    intervals, ties = _intervals(shown), _bounds(shown.further("ties"), "worst", "best")
    rows = []
    for number in range(len(table.rows)):
        own = cells[number * len(figures) : (number + 1) * len(figures)]
        found = {
            cell.figure: Measured(
                cell.value,
                *intervals.get((cell.row, cell.figure), (None, None)),
                *ties.get((cell.row, cell.figure), (None, None)),
            )
            for cell in own
        }
        parts = [_text(table.rows[number][table.columns.index(key)]) for key in keys]
        rows.append(MeasuredRow(dict(zip(keys, parts, strict=True)), own[0].row, found))
    return rows


def number(cell: Cell) -> float | None:
    """A cell's number; None for words and what is undefined."""
    return float(cell) if isinstance(cell, int | float) and math.isfinite(cell) else None


def _intervals(shown: Shown) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    found = _bounds(shown.further("intervals"), "low", "high")
    return found or _uap_intervals(shown)


def _bounds(table: Table | None, low: str, high: str) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Two columns of a table by `row` and `figure`."""
    wanted = ("row", "figure", low, high)
    if table is None or not set(wanted) <= set(table.columns):
        return {}
    places = [table.columns.index(column) for column in wanted]
    rows = [[row[place] for place in places] for row in table.rows]
    return {(_text(row), _text(figure)): (number(least), number(most)) for row, figure, least, most in rows}


def _uap_intervals(shown: Shown) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """The intervals of uAP that are always drawn of candidates, of those that the main table has."""
    table = next((found for name in DRAWN_ALWAYS if (found := shown.further(name)) is not None), None)
    wanted = ("codec", "score_norm", "candidates", "uAP_low", "uAP_high")
    if table is None or not set(wanted) <= set(table.columns):
        return {}
    kind = "global" if shown.manifest.arguments.get("global_candidates") else "knn"
    places = [table.columns.index(column) for column in wanted]
    return {
        (f"{_text(codec)}{BETWEEN}{_text(norm)}", "uAP"): (number(low), number(high))
        for codec, norm, candidates, low, high in _picked(table, places)
        if candidates == kind
    }


def _picked(table: Table, places: Sequence[int]) -> list[list[Cell]]:
    return [[row[place] for place in places] for row in table.rows]


def _text(cell: Cell) -> str:
    return "" if cell is None else str(cell)
