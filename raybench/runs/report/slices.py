"""Breakdowns of figures: heat maps (noise × kind of sequence, blocks, groups) and lines over pools or ladders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from raybench.runs.report.layouts import NOISE_WORDS, Slice, layout_of
from raybench.runs.report.leaderboard import UNDEFINED, copy_buttons, percent
from raybench.runs.report.markup import Html, element, folded
from raybench.runs.report.measured import number
from raybench.runs.report.shown import NamedRun, Section

MOST_CELLS = 3_000  # of all choices of one breakdown; beyond, only the first choice is on the page
SHADES = 10
MOST_BESIDE = 5  # columns; a heat map with more has a line of the page for itself


@dataclass(frozen=True)
class Point:
    """One figure of one run under the keys of its table; `run` and `figure` are keys, too."""

    keys: dict[str, str]
    value: float | None


@dataclass(frozen=True)
class Drawn:
    """A breakdown for the page, and its charts' data: `chart` of a placeholder counts from the first given."""

    html: Html
    charts: list[dict[str, Any]]


def breakdowns(section: Section, first_chart: int) -> Drawn:
    """Every breakdown that the runs' tables have figures for."""
    parts: list[Html] = []
    charts: list[dict[str, Any]] = []
    for one in layout_of(section.benchmark).slices:
        points = _points(section.runs, one)
        if any(point.value is not None for point in points):
            drawn = _drawn(section.runs, one, points, first_chart + len(charts))
            parts.append(drawn.html)
            charts += drawn.charts
    return Drawn(element("div", parts, class_="slices") if parts else Html(""), charts)


def _drawn(runs: Sequence[NamedRun], one: Slice, points: Sequence[Point], first_chart: int) -> Drawn:
    choices = _choices(one, points)
    views, charts = [], []
    for number_, chosen in enumerate(choices):
        own = [point for point in points if chosen.items() <= point.keys.items()]
        if one.across:
            charts.append(_lines(runs, one, own))
            body = element("div", class_="chart", data_chart=first_chart + len(charts) - 1)
            inner: list[Html] = [body, folded("Figures", heat_map(runs, _as_heat(one), own))]
        else:
            inner = [heat_map(runs, one, own)]
        views.append(
            element("div", inner, class_="view", data_view=" / ".join(_shown(chosen, choices)), hidden=number_ > 0)
        )
    tools = [*_selectors(choices), copy_buttons()]
    figure = f"{one.figures[0]}, percent" if len(one.figures) == 1 else "percent"
    title = element("h4", one.title, element("span", f" · {figure}", class_="quiet"))
    content = element("div", element("div", tools, class_="tools"), views, class_="views slice")
    columns = {_cells(one.columns, point) for point in points}
    kind = "breakdown wide" if not one.across and len(columns) > MOST_BESIDE else "breakdown"
    return Drawn(element("div", title, content, class_=kind), charts)


def _points(runs: Sequence[NamedRun], one: Slice) -> list[Point]:
    found = []
    for run in runs:
        table = run.shown.further(one.table) if one.table else run.shown.main
        figures = [figure for figure in one.figures if table is not None and figure in table.columns]
        wanted = {*one.rows, *one.columns, *one.where, *one.choose, one.across} - {"run", "figure", ""}
        if table is None or not wanted <= set(table.columns):
            continue
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            keys = {key: str(cells[key]) for key in wanted} | {"run": run.name}
            if one.where.items() <= keys.items() and keys.get(one.across, "").startswith(one.starts):
                found += [Point({**keys, "figure": figure}, number(cells[figure])) for figure in figures]
    return found


def _choices(one: Slice, points: Sequence[Point]) -> list[dict[str, str]]:
    """Combinations of what the reader chooses; only the first where all would be too many cells."""
    values = [_ordered(key, [point.keys[key] for point in points]) for key in one.choose]
    found = [dict(zip(one.choose, cells, strict=True)) for cells in itertools.product(*values)]
    return found if len(points) <= MOST_CELLS else found[:1]


def _ordered(key: str, cells: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(cells))
    if key == "pool":
        return found[::-1]
    first = {"split": "full", "noise": "mean", "group": "mean"}.get(key)
    return sorted(found, key=lambda cell: cell != first)


def _shown(chosen: dict[str, str], choices: Sequence[dict[str, str]]) -> list[str]:
    """The cells of keys between which there is a choice."""
    return [cell for key, cell in chosen.items() if len({other[key] for other in choices}) > 1]


def _selectors(choices: Sequence[dict[str, str]]) -> list[Html]:
    found = []
    for key in choices[0]:
        cells = list(dict.fromkeys(chosen[key] for chosen in choices))
        if len(cells) > 1:
            options = [element("option", cell) for cell in cells]
            found.append(element("label", key.capitalize(), element("select", options, data_choose=True)))
    return found


def _as_heat(one: Slice) -> Slice:
    """The same figures as a table: runs × places on the x axis."""
    return Slice(one.title, one.table, one.figures, columns=(one.across,))


def heat_map(runs: Sequence[NamedRun], one: Slice, points: Sequence[Point]) -> Html:
    """A table whose cells are shaded from the least to the most of its figures."""
    values = {(_cells(one.rows, point), _cells(one.columns, point)): point.value for point in points}
    rows = list(dict.fromkeys(row for row, _ in values))
    columns = list(dict.fromkeys(column for (_, column), value in values.items() if value is not None))
    defined = [value for value in values.values() if value is not None]
    least, most = (min(defined), max(defined)) if defined else (0.0, 1.0)
    head = element(
        "tr", element("th", one.rows[0], scope="col"), [element("th", column, scope="col") for column in columns]
    )
    body = [
        element(
            "tr",
            element("th", row, scope="row"),
            [_shaded(values.get((row, column)), least, most) for column in columns],
        )
        for row in rows
    ]
    table = element("table", element("thead", head), element("tbody", body), class_="heat sortable")
    region = element("div", table, class_="scroll", tabindex=0, role="region", aria_label=one.title)
    legend = element("p", f"Shades from {percent(least)} to {percent(most)}.", class_="quiet small")
    return element("div", region, legend)


def _cells(keys: Sequence[str], point: Point) -> str:
    words = [NOISE_WORDS.get(point.keys[key], point.keys[key]) if key == "noise" else point.keys[key] for key in keys]
    return " · ".join(words)


def _shaded(value: float | None, least: float, most: float) -> Html:
    if value is None:
        return element("td", UNDEFINED, class_="n")
    shade = round(SHADES * (value - least) / (most - least)) if most > least else SHADES // 2
    return element("td", element("span", percent(value), class_="v"), class_=f"n h{shade}", data_v=f"{value:.6g}")


def _lines(runs: Sequence[NamedRun], one: Slice, points: Sequence[Point]) -> dict[str, Any]:
    """A chart: the x axis, and a line for each run."""
    places = {cell: _place(one, cell) for cell in dict.fromkeys(point.keys[one.across] for point in points)}
    ordered = sorted((place, cell) for cell, place in places.items() if place is not None)
    values = {(point.keys["run"], point.keys[one.across]): point.value for point in points}
    return {
        "kind": "lines",
        "x": [place for place, _ in ordered],
        "axis": one.axis,
        "y": one.figures[0] if len(one.figures) == 1 else "percent",
        "runs": [run.colour for run in runs],
        "values": [[rounded(values.get((run.name, cell))) for _, cell in ordered] for run in runs],
    }


def _place(one: Slice, cell: str) -> float | None:
    if one.numbers:
        return one.numbers.get(cell)
    text = cell.removeprefix(one.starts)
    return float(text) if text.isdecimal() else None


def rounded(value: float | None) -> float | None:
    """A number for the page's data."""
    return None if value is None else float(f"{value:.5g}")
