"""Tables as runs left them, those of one name together: published figures, and every table of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from raybench.runs.report.leaderboard import copy_buttons
from raybench.runs.report.markup import Html, element, folded
from raybench.runs.report.measured import DRAWN_ALWAYS
from raybench.runs.report.shown import NamedRun, Section
from raybench.runs.report.thresholds import TABLES as THRESHOLDS
from raybench.table import Table, joined

PUBLISHED = "published"
SHOWN_BETTER = {PUBLISHED, "intervals", "ties", *DRAWN_ALWAYS, *THRESHOLDS}  # elsewhere on the page
MOST_ROWS = 40  # of one table; the CSV files have all


def published_rows(section: Section) -> Table | None:
    """The published rows of a benchmark's runs, each once, comparable ones first; None without any."""
    tables = [table for run in section.runs if (table := run.shown.further(PUBLISHED)) is not None]
    tables = [table for table in tables if "comparable" in table.columns]
    if not tables:
        return None
    place = tables[0].columns.index("comparable")
    every = dict.fromkeys(row for table in tables if table.columns == tables[0].columns for row in table.rows)
    rows = sorted(every, key=lambda row: not str(row[place]).startswith("yes"))
    return Table(PUBLISHED, tables[0].columns, tuple(rows), tables[0].fractions, tables[0].notes)


def comparable_count(table: Table) -> int:
    """How many published rows may be set beside the runs' own."""
    place = table.columns.index("comparable")
    return sum(str(row[place]).startswith("yes") for row in table.rows)


def published_beside(section: Section) -> Html | None:
    """Published figures, comparable ones first, each with the reason; None without any."""
    table = published_rows(section)
    if table is None:
        return None
    comparable = comparable_count(table)
    words = f"Published figures beside: {comparable} of {len(table.rows)} comparable"
    notes = [element("p", note, class_="quiet small") for note in table.notes]
    return folded(words, notes, data_table(table, "published"), class_="published" if comparable else "published none")


def every_table(section: Section) -> Html | None:
    """The main table and further ones, runs below each other, folded."""
    names = dict.fromkeys(table.name for run in section.runs for table in run.shown.tables)
    folds = [_fold(section.runs, name) for name in names if name not in SHOWN_BETTER]
    return element("div", folds) if folds else None


def _fold(runs: Sequence[NamedRun], name: str) -> Html:
    own = [(run.name, table) for run in runs for table in run.shown.tables if table.name == name]
    own = [(run, table) for run, table in own if table.columns == own[0][1].columns]
    table = joined(name, "run", own) if len(runs) > 1 else own[0][1]
    kept = Table(name, table.columns, table.rows[:MOST_ROWS], table.fractions)
    cut = f", the first {MOST_ROWS} of which are here" if len(table.rows) > MOST_ROWS else ""
    title = f"{name.replace('_', ' ')} ({len(table.rows):,} rows{cut})"
    return folded(
        title, element("div", element("div", copy_buttons(), class_="tools"), data_table(kept), class_="views")
    )


def data_table(table: Table, kind: str = "") -> Html:
    """A table that sorts; fractions in percent."""
    numeric = [
        all(isinstance(row[place], int | float | None) for row in table.rows) for place in range(len(table.columns))
    ]
    head = element("tr", [element("th", column, scope="col") for column in table.columns])
    body = [
        element("tr", [element("td", cell, class_="n" if numeric[place] else None) for place, cell in enumerate(row)])
        for row in table.shown()
    ]
    made = element("table", element("thead", head), element("tbody", body), class_=f"sortable plain {kind}".rstrip())
    return element("div", made, class_="scroll", tabindex=0, role="region", aria_label=table.name.replace("_", " "))
