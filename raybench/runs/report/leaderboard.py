"""Runs beside each other: one table per figure, the best in bold, the second underlined, with intervals and bars."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.runs.report.layouts import BEST, MEAN, NOISE_WORDS, Layout, layout_of
from raybench.runs.report.markup import Html, element, joined_html
from raybench.runs.report.measured import Measured, MeasuredRow, mean_of, measured_rows
from raybench.runs.report.shown import NamedRun, Section

MOST_VIEWS = 60  # of one benchmark; beyond, only its first figure has every choice
UNDEFINED = "–"
LESS_WORDS = "less is better"
TIES_WORDS = "Bold (best) and underlined (second) go by what each figure is in the worst order of tied scores."


@dataclass(frozen=True)
class Headline:
    """The figure that stands for a run, and in words what it is of."""

    measured: Measured
    words: str


@dataclass(frozen=True)
class Board:
    """The figures of a benchmark's runs, and how they are laid out."""

    section: Section
    layout: Layout
    rows: dict[str, list[MeasuredRow]]  # by name of run

    @classmethod
    def of(cls, section: Section) -> Board:
        rows = {run.name: measured_rows(run.shown) for run in section.runs}
        return cls(section, layout_of(section.benchmark), rows)

    @property
    def figures(self) -> list[str]:
        """The headline first."""
        found = dict.fromkeys(figure for rows in self.rows.values() for row in rows for figure in row.figures)
        return sorted(found, key=lambda figure: figure != self.layout.headline)

    def values_of(self, key: str) -> list[str]:
        """The cells of a key over all runs, as tables have them; of split and pool the one to begin with first."""
        found = list(dict.fromkeys(row.keys.get(key, "") for rows in self.rows.values() for row in rows))
        if key == "pool":
            return found[::-1]
        return sorted(found, key=lambda value: value != "full") if key == "split" else found

    def choices(self) -> list[dict[str, str]]:
        """Every combination of cells of the keys that the reader chooses."""
        keys = self.layout.choose
        return [
            dict(zip(keys, cells, strict=True)) for cells in itertools.product(*(self.values_of(key) for key in keys))
        ]

    def headline(self, run: str) -> Headline | None:
        """What stands for a run: a row, or the mean or the best of several."""
        chosen = self.choices()[0]
        wanted = {**chosen, **self.layout.stands_for}
        rows = [row for row in self.rows[run] if wanted.items() <= row.keys.items()] or self.rows[run]
        found = [(row, row.figures[self.layout.headline]) for row in rows if self.layout.headline in row.figures]
        found = [(row, one) for row, one in found if one.value is not None]
        if not found:
            return None
        if len(found) == 1 or self.layout.overall == BEST:
            chosen_of = min if self.layout.headline in LOWER_IS_BETTER else max
            row, best = chosen_of(found, key=lambda pair: pair[1].sure or 0.0)
            words = row.name if len(found) == 1 else f"{row.name}, the best of {len(found)}"
            return Headline(best, words)
        return Headline(mean_of([one for _, one in found]), f"mean of {len(found)} rows")


def leaderboard(board: Board) -> Html:
    """Runs beside each other; of a single run every row with every figure."""
    return _of_one_run(board) if len(board.section.runs) == 1 else _of_runs(board)


def _of_one_run(board: Board) -> Html:
    (rows,) = board.rows.values()
    figures = board.figures
    head = element("tr", element("th", "row", scope="col"), [_figure_head(figure) for figure in figures])
    body = [
        element(
            "tr",
            element("th", " · ".join(_key_words(key, cell) for key, cell in row.keys.items()), scope="row"),
            [figure_cell(row.figures[figure], "") for figure in figures],
        )
        for row in rows
    ]
    tools = element("div", percent_words(), copy_buttons(), class_="tools")
    return element(
        "div", tools, _framed(element("thead", head), element("tbody", body), "figures"), class_="board views"
    )


def _of_runs(board: Board) -> Html:
    """Every view of the figures, one of which is shown, with its tools."""
    choices, figures = board.choices(), board.figures
    views = [(figure, chosen) for figure in figures for chosen in choices]
    if len(views) > MOST_VIEWS:
        views = [(figure, chosen) for figure, chosen in views if figure == figures[0] or chosen == choices[0]]
    keys = board.layout.choose
    named = [with_direction(figure) for figure in figures]
    tools = [_selector("Figure", figures, named)] if len(figures) > 1 else [element("span", one) for one in named]
    tools += [_selector(key.capitalize(), own, own) for key in keys if len(own := board.values_of(key)) > 1]
    chosen_keys = [key for key in keys if len(board.values_of(key)) > 1]
    tables = [
        element(
            "div",
            view(board, figure, chosen),
            class_="view",
            data_view=" / ".join([*([figure] if len(figures) > 1 else []), *(chosen[key] for key in chosen_keys)]),
            hidden=number > 0,
        )
        for number, (figure, chosen) in enumerate(views)
    ]
    return element(
        "div",
        element("div", tools, _baseline(board.section.runs), percent_words(), copy_buttons(), class_="tools"),
        tables,
        class_="board views",
    )


def copy_buttons() -> Html:
    """Buttons that copy the table that is shown, as it is sorted."""
    kinds = ("Markdown", "LaTeX", "CSV")
    buttons = [element("button", kind, type="button", data_copy=kind.lower()) for kind in kinds]
    return element("span", element("span", "Copy as"), buttons, class_="copy")


def percent_words() -> Html:
    return element("span", "percent", class_="unit")


def view(board: Board, figure: str, chosen: dict[str, str]) -> Html:
    """One figure: runs × the cells of the keys that make columns."""
    by_run = {
        name: {
            _column(row, board.layout): row.figures.get(figure) for row in rows if chosen.items() <= row.keys.items()
        }
        for name, rows in board.rows.items()
    }
    columns = list(dict.fromkeys(column for own in by_run.values() for column in own))
    grid = [[by_run[run.name].get(column) or Measured(None) for column in columns] for run in board.section.runs]
    titles = [_title(column, columns) for column in columns]
    if board.layout.overall == MEAN and not board.layout.stands_for and len(columns) > 1:
        titles.append(("mean", "mean of the columns"))
        grid = [[*row, mean_of(row)] for row in grid]
    return board_table(board.section.runs, titles, grid, figure, [figure in LOWER_IS_BETTER] * len(titles))


def board_table(
    runs: Sequence[NamedRun],
    titles: Sequence[tuple[str, str]],
    grid: Sequence[Sequence[Measured]],
    figure: str,
    lower: Sequence[bool],
) -> Html:
    """A table of runs × columns (short and long title of each), sortable, with marks for best and second.

    `lower` says of each column whether less is better.
    """
    marks = [_marks([row[place] for row in grid], lower[place]) for place in range(len(titles))]
    head = element(
        "tr",
        element("th", "run", scope="col"),
        [
            element("th", short, scope="col", title=long, data_lower=less)
            for (short, long), less in zip(titles, lower, strict=True)
        ],
    )
    body = [
        element(
            "tr",
            element("th", dot(run), run.name, scope="row"),
            [figure_cell(cell, marks[place][number]) for place, cell in enumerate(row)],
            data_run=run.colour,
        )
        for number, (run, row) in enumerate(zip(runs, grid, strict=True))
    ]
    caption = element("caption", f"{with_direction(figure)}, percent" if figure else "percent", class_="unseen")
    framed = _framed(joined_html([caption, element("thead", head)]), element("tbody", body), f"figures {figure}")
    moved = len(runs) > 1 and any(cell.moved_by_ties for row in grid for cell in row)
    return joined_html([framed, element("p", TIES_WORDS, class_="quiet small") if moved else None])


def _framed(head: Html, body: Html, label: str) -> Html:
    """A table that may be wider than the page."""
    table = element("table", head, body, class_="sortable figures")
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)


def figure_cell(cell: Measured, mark: str) -> Html:
    """A figure in percent with its mark, interval, bounds of ties and bar."""
    if cell.value is None:
        return element("td", UNDEFINED, class_="n")
    parts = [element({"best": "b", "second": "u"}.get(mark, "span"), percent(cell.value), class_="v")]
    if cell.low is not None and cell.high is not None:
        parts.append(element("span", f"{percent(cell.low)}–{percent(cell.high)}", class_="interval"))
    if cell.moved_by_ties:
        bounds = "–".join(percent(bound) for bound in sorted(one for one in (cell.worst, cell.best) if one is not None))
        words = f"Tied scores: {bounds} over all orders of ties"
        parts.append(element("span", f"ties {bounds}", class_="ties", title=words, tabindex=0))
    parts.append(bar(cell.value))
    return element(
        "td", parts, class_="n", data_v=f"{cell.value:.6g}", data_low=_exact(cell.low), data_high=_exact(cell.high)
    )


def bar(value: float) -> Html:
    """A small bar from 0 to 100 %."""
    width = f"{100 * min(max(value, 0.0), 1.0):.1f}"
    rect = element("rect", width=width, height=4)
    return element("svg", rect, class_="bar", viewBox="0 0 100 4", preserveAspectRatio="none", aria_hidden="true")


def dot(run: NamedRun) -> Html:
    """The colour of a run."""
    return element("span", class_=f"dot c{run.colour % 12}", aria_hidden="true")


def percent(value: float | None) -> str:
    return UNDEFINED if value is None else f"{100 * value:.2f}"


def with_direction(figure: str) -> str:
    """A figure's name, with words where less of it is better."""
    return f"{figure} ({LESS_WORDS})" if figure in LOWER_IS_BETTER else figure


def _figure_head(figure: str) -> Html:
    words = element("span", f"({LESS_WORDS})", class_="under") if figure in LOWER_IS_BETTER else None
    return element("th", figure if words is None else [element("span", figure, class_="over"), words], scope="col")


def _selector(label: str, values: Sequence[str], words: Sequence[str]) -> Html:
    options = [
        element("option", said, value=None if said == value else value)
        for value, said in zip(values, words, strict=True)
    ]
    return element("label", label, element("select", options, data_choose=True))


def _baseline(runs: Sequence[NamedRun]) -> Html | None:
    """The run to which differences are shown."""
    if len(runs) < 2:
        return None
    options = [element("option", "none", value=""), *(element("option", run.name, value=run.colour) for run in runs)]
    return element("label", "Difference to", element("select", options, data_baseline=True))


def _column(row: MeasuredRow, layout: Layout) -> tuple[str, ...]:
    return tuple(_key_words(key, row.keys[key]) for key in layout.across if key in row.keys)


def _key_words(key: str, cell: str) -> str:
    return NOISE_WORDS.get(cell, cell) if key == "noise" else cell


def _title(column: tuple[str, ...], columns: Sequence[tuple[str, ...]]) -> tuple[str, str]:
    """A column's title without the words that all share at its start, and the whole one."""
    whole = " · ".join(column)
    if len(column) > 1 or len(columns) < 2:
        return whole, whole
    shared = columns[0][0].split("_")[:-1]
    while shared and not all(other[0].startswith("_".join(shared) + "_") for other in columns):
        shared.pop()
    return whole.removeprefix("_".join(shared) + "_") if shared else whole, whole


def _marks(cells: Sequence[Measured], lower: bool) -> list[str]:
    """Which of a column's cells is best and which second, in the worst order of ties; nothing where only one run is."""
    shown = [None if cell.sure is None else round(cell.sure, 4) for cell in cells]
    ranked = sorted({value for value in shown if value is not None}, reverse=not lower)
    if len(cells) < 2 or len(ranked) < 2:
        return ["" for _ in shown]
    return ["best" if value == ranked[0] else "second" if value == ranked[1] else "" for value in shown]


def _exact(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
