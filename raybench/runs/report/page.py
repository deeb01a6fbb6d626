"""The page: runs by benchmark in one HTML file, which asks for nothing from outside. All text from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from raybench.runs.report import assets
from raybench.runs.report.benchmark_part import BenchmarkPart, benchmark_part
from raybench.runs.report.citations import citations
from raybench.runs.report.differences import unit_data
from raybench.runs.report.gallery import PageImages, gallery
from raybench.runs.report.leaderboard import Board
from raybench.runs.report.markup import Child, Html, element
from raybench.runs.report.overview import overview, overview_chart, page_header, title_of
from raybench.runs.report.pictures import chosen_pictures
from raybench.runs.report.shown import Section, Shown, sections_of

__all__ = ["Shown", "write_report"]


def write_report(runs: Sequence[Shown], title: str = "", made: datetime | None = None) -> str:
    """The page for these runs, by benchmark in this order; `made` is when, in UTC."""
    sections = sections_of(runs)
    boards = [Board.of(section) for section in sections]
    charts: list[dict[str, Any]] = [overview_chart(boards)] if len(boards) > 1 else []
    pictures, left_out = chosen_pictures(sections)
    images, parts = PageImages(), []
    for number, board in enumerate(boards):
        units = unit_data(board.section)
        shown = gallery(board.section, pictures[number], left_out.get(number, 0), images, compared=units is not None)
        parts.append(benchmark_part(board, shown, units, len(charts)))
        charts += parts[-1].charts
    heading = title or title_of(sections)
    names = {run.colour: run.name for section in sections for run in section.runs}
    content = [
        page_header(heading, sections, made or datetime.now(UTC)),
        overview(boards) if len(boards) > 1 else None,
        [part.html for part in parts],
        _citing(sections),
    ]
    data = [part.data for part in parts]
    known = {"runs": [names[colour] for colour in sorted(names)], "charts": charts, "sections": data}
    return _document(heading, _navigation(parts), content, known)


def _document(title: str, navigation: Html, content: Child, known: dict[str, Any]) -> str:
    style, script = assets.style(), assets.script()
    head = element(
        "head",
        element("meta", charset="utf-8"),
        assets.policy(style, script),
        element("meta", name="viewport", content="width=device-width,initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(style)),
    )
    body = element(
        "body",
        element("a", "Skip to the figures", href="#main", class_="skip"),
        navigation,
        element("main", content, id="main", tabindex=-1),
        _viewer(),
        assets.data_block(known),
        element("script", Html(script)),
    )
    return f"<!doctype html>{element('html', head, body, lang='en')}\n"


def _navigation(parts: Sequence[BenchmarkPart]) -> Html:
    """Links to benchmarks, and below the one that is being read to its parts; of a single one its parts are there."""
    links = [element("li", element("a", "Overview", href="#overview"))] if len(parts) > 1 else []
    for part in parts:
        inner = [element("li", element("a", title, href=f"#{own}")) for own, title in part.parts]
        kind = None if len(parts) > 1 else "alone"
        top = element("a", part.section.benchmark, href=f"#{part.section.id}")
        links.append(element("li", top, element("ul", inner), class_=kind))
    links.append(element("li", element("a", "How to cite", href="#cite")))
    toggle = element("button", "Dark", type="button", id="theme", aria_pressed="false")
    menu = element("ul", links, class_="menu")
    return element("nav", element("p", "raybench", class_="brand"), menu, toggle, aria_label="Parts of this page")


def _citing(sections: Sequence[Section]) -> Html:
    return element(
        "section", element("h2", "How to cite"), citations([section.benchmark for section in sections]), id="cite"
    )


def _viewer() -> Html:
    """Where a case is shown large."""
    buttons = [
        element("button", word, type="button", data_step=step, aria_label=label)
        for word, step, label in (("←", -1, "previous case"), ("→", 1, "next case"), ("Close", 0, "close"))
    ]
    return element(
        "dialog",
        element("div", class_="stage"),
        element("p", class_="words", aria_live="polite"),
        element("div", buttons, class_="steps"),
        id="viewer",
        aria_label="A case, large",
    )
