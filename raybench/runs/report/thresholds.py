"""The threshold card of copy detection: which score to take for a precision, what recall that gives, how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

from raybench.runs.report.leaderboard import UNDEFINED, copy_buttons, dot, percent
from raybench.runs.report.markup import Html, element
from raybench.runs.report.measured import number
from raybench.runs.report.shown import NamedRun, Section
from raybench.table import Cell

TABLES = ("disc_thresholds", "retrieval_thresholds")
CHOSEN = ("codec", "score_norm", "candidates")
WANTED = (*CHOSEN, "precision", "recall", "recall_low", "recall_high", "threshold", "threshold_low", "threshold_high")

Row = dict[str, Cell]


def threshold_card(section: Section) -> Html | None:
    """A table of runs × precisions for each codec, norm and kind of candidates; None without thresholds."""
    by_run = [(run, _rows(run)) for run in section.runs]
    variants = list(dict.fromkeys(_variant(row) for _, rows in by_run for row in rows))
    if not variants:
        return None
    values = [list(dict.fromkeys(variant[place] for variant in variants)) for place in range(len(CHOSEN))]
    several = [place for place, cells in enumerate(values) if len(cells) > 1]
    tools = [
        element(
            "label",
            CHOSEN[place].replace("_", " ").capitalize(),
            element("select", [element("option", cell) for cell in values[place]], data_choose=True),
        )
        for place in several
    ]
    views = [
        element(
            "div",
            _table(by_run, variant),
            class_="view",
            data_view=" / ".join(variant[place] for place in several),
            hidden=count > 0,
        )
        for count, variant in enumerate(variants)
    ]
    words = "Take what scores at least that much, on data like this. In grey: the middle 95 % of draws."
    return element(
        "div",
        element("p", words, class_="quiet small"),
        element("div", tools, copy_buttons(), class_="tools"),
        views,
        class_="views",
    )


def _table(by_run: Sequence[tuple[NamedRun, list[Row]]], variant: tuple[str, ...]) -> Html:
    own = [(run, [row for row in rows if _variant(row) == variant]) for run, rows in by_run]
    precisions = list(dict.fromkeys(row["precision"] for _, rows in own for row in rows))
    head = element(
        "tr",
        element("th", "run", scope="col"),
        [element("th", f"for precision {_percent(precision)} %", scope="col") for precision in precisions],
    )
    body = [
        element(
            "tr",
            element("th", dot(run), run.name, scope="row"),
            [_cell(next((row for row in rows if row["precision"] == precision), None)) for precision in precisions],
        )
        for run, rows in own
    ]
    table = element("table", element("thead", head), element("tbody", body), class_="thresholds")
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label="thresholds")


def _cell(row: Row | None) -> Html:
    if row is None or number(row["threshold"]) is None:
        return element("td", UNDEFINED)
    between = f"{_score(row['threshold_low'])} to {_score(row['threshold_high'])}"
    recall = f"{_percent(row['recall_low'])}–{_percent(row['recall_high'])}"
    return element(
        "td",
        element("b", f"score ≥ {_score(row['threshold'])}"),
        element("span", between, class_="interval"),
        element("span", f"finds {_percent(row['recall'])} %", class_="finds"),
        element("span", recall, class_="interval"),
    )


def _rows(run: NamedRun) -> list[Row]:
    table = next((found for name in TABLES if (found := run.shown.further(name)) is not None), None)
    if table is None or not set(WANTED) <= set(table.columns):
        return []
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _variant(row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in CHOSEN)


def _score(cell: Cell) -> str:
    value = number(cell)
    return UNDEFINED if value is None else f"{value:.4g}"


def _percent(cell: Cell) -> str:
    value = number(cell)
    return UNDEFINED if value is None else percent(value).removesuffix(".00")
