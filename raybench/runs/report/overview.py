"""The top of the page: what was run, and the headline figure of every run in every benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.runs.report.badges import page_badges
from raybench.runs.report.leaderboard import LESS_WORDS, Board, Headline, board_table, copy_buttons, percent_words
from raybench.runs.report.markup import Html, element
from raybench.runs.report.measured import Measured
from raybench.runs.report.shown import Section
from raybench.runs.report.tables import comparable_count, published_rows

WIDE = 4  # columns; a table with more has a line of the page for itself


def title_of(sections: Sequence[Section]) -> str:
    """What the page is, in a line."""
    names = list(dict.fromkeys(run.name for section in sections for run in section.runs))
    benchmarks = sections[0].benchmark if len(sections) == 1 else f"{len(sections)} benchmarks"
    return f"raybench: {benchmarks}, {names[0] if len(names) == 1 else f'{len(names)} descriptors'}"


def page_header(title: str, sections: Sequence[Section], made: datetime) -> Html:
    """First heading, what was run and when, and warnings as badges."""
    runs = sum(len(section.runs) for section in sections)
    manifests = [run.shown.manifest for section in sections for run in section.runs]
    versions = ", ".join(dict.fromkeys(str(manifest.versions.get("raybench", "")) for manifest in manifests))
    facts = [f"{runs} run{'s' * (runs != 1)}", f"raybench {versions}", f"page made {made:%Y-%m-%d %H:%M} UTC"]
    return element(
        "header",
        element("h1", title),
        element("p", [element("span", fact) for fact in facts], class_="facts-line"),
        page_badges(sections),
    )


def overview(boards: Sequence[Board]) -> Html:
    """Headline figures: a table for each group of benchmarks that had the same runs, and one chart."""
    chart = element("div", element("div", class_="chart", data_chart=0), class_="profile")
    return element(
        "section",
        element("h2", "Headline figures"),
        element("div", [_table(group) for group in _groups(boards)], chart, class_="overview"),
        _published(boards),
        id="overview",
    )


def _published(boards: Sequence[Board]) -> Html | None:
    """How many published figures stand beside, and where; None without any."""
    tables = [(board.section, table) for board in boards if (table := published_rows(board.section)) is not None]
    if not tables:
        return None
    counts = [
        element(
            "span",
            element("a", section.benchmark, href=f"#{section.id}"),
            f" {comparable_count(table)} of {len(table.rows)}",
        )
        for section, table in tables
    ]
    return element("p", element("span", "Published figures that are comparable:"), counts, class_="facts-line small")


def overview_chart(boards: Sequence[Board]) -> dict[str, Any]:
    """The same figures as a profile of each run over benchmarks."""
    colours = {run.name: run.colour for board in boards for run in board.section.runs}
    return {
        "kind": "profile",
        "categories": [board.section.benchmark for board in boards],
        "lower": [board.layout.headline in LOWER_IS_BETTER for board in boards],
        "runs": list(colours.values()),
        "values": [[_value(board, name) for board in boards] for name in colours],
    }


def _groups(boards: Sequence[Board]) -> list[list[Board]]:
    """Neighbours whose runs have the same names."""
    groups: list[list[Board]] = []
    for board in boards:
        if groups and list(groups[-1][0].rows) == list(board.rows):
            groups[-1].append(board)
        else:
            groups.append([board])
    return groups


def _table(group: Sequence[Board]) -> Html:
    runs = group[0].section.runs
    grid = [[_measured(board.headline(run.name)) for board in group] for run in runs]
    titles = [(_column(board), f"{board.layout.title}: {board.layout.headline}, {_words(board)}") for board in group]
    tools = element("div", percent_words(), copy_buttons(), class_="tools")
    kind = "views board wide" if len(group) >= WIDE else "views board" if len(group) > 1 else "views board narrow"
    lower = [board.layout.headline in LOWER_IS_BETTER for board in group]
    return element("div", tools, board_table(runs, titles, grid, "", lower), class_=kind)


def _column(board: Board) -> Html:
    return element(
        "span",
        element("span", board.section.benchmark, class_="over"),
        element("span", board.layout.headline, class_="under"),
        element("span", f"({LESS_WORDS})", class_="under") if board.layout.headline in LOWER_IS_BETTER else None,
    )


def _words(board: Board) -> str:
    found = {headline.words for run in board.section.runs if (headline := board.headline(run.name))}
    return found.pop() if len(found) == 1 else "of the row that is best for each run"


def _measured(found: Headline | None) -> Measured:
    return found.measured if found else Measured(None)


def _value(board: Board, run: str) -> float | None:
    value = _measured(board.headline(run) if run in board.rows else None).value
    return None if value is None else float(f"{value:.5g}")
