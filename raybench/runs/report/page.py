"""The page: runs by benchmark in one HTML file, which asks for nothing from outside. All text from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from raybench.benchmarks import BENCHMARKS
from raybench.runs.report import assets
from raybench.runs.report.badges import note_list, section_badges
from raybench.runs.report.citations import citations
from raybench.runs.report.differences import unit_data
from raybench.runs.report.gallery import PageImages, gallery
from raybench.runs.report.layouts import layout_of
from raybench.runs.report.leaderboard import Board, leaderboard
from raybench.runs.report.markup import Child, Html, element, folded
from raybench.runs.report.overview import overview, overview_chart, page_header, title_of
from raybench.runs.report.pictures import Chosen, chosen_pictures
from raybench.runs.report.provenance import provenance
from raybench.runs.report.shown import Section, Shown, sections_of
from raybench.runs.report.slices import breakdowns
from raybench.runs.report.tables import every_table, published_beside
from raybench.runs.report.thresholds import threshold_card

__all__ = ["Shown", "write_report"]


@dataclass(frozen=True)
class Pictures:
    """What galleries of the page show, by number of section."""

    chosen: dict[int, list[Chosen]]
    left_out: dict[int, int]
    images: PageImages

    def gallery(self, section: Section) -> Html | None:
        return gallery(section, self.chosen[section.number], self.left_out.get(section.number, 0), self.images)


def write_report(runs: Sequence[Shown], title: str = "", made: datetime | None = None) -> str:
    """The page for these runs, by benchmark in this order; `made` is when, in UTC."""
    sections = sections_of(runs)
    boards = [Board.of(section) for section in sections]
    charts: list[dict[str, Any]] = [overview_chart(boards)] if len(boards) > 1 else []
    pictures = Pictures(*chosen_pictures(sections), PageImages())
    parts, data = [], []
    for board in boards:
        html, own = _section(board, pictures, charts)
        parts.append(html)
        data.append(own)
    heading = title or title_of(sections)
    names = {run.colour: run.name for section in sections for run in section.runs}
    content = [
        page_header(heading, sections, made or datetime.now(UTC)),
        overview(boards) if len(boards) > 1 else None,
        parts,
        _citing(sections),
    ]
    known = {"runs": [names[colour] for colour in sorted(names)], "charts": charts, "sections": data}
    return _document(heading, _navigation(boards), content, known)


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


def _section(board: Board, pictures: Pictures, charts: list[dict[str, Any]]) -> tuple[Html, dict[str, Any]]:
    """A benchmark's part of the page, and the data of its charts; those of breakdowns are added to `charts`."""
    section = board.section
    slices = breakdowns(section, len(charts))
    charts += slices.charts
    curves = _curves(section)
    units = unit_data(section)
    parts = [
        _heading(section),
        leaderboard(board),
        published_beside(section),
        _notes(section),
        _part(section, "curves", "Curves", element("div", class_="curves") if curves else None),
        _part(section, "thresholds", "Which threshold to use", threshold_card(section)),
        _part(section, "differences", "Where two runs differ", element("div", class_="differences") if units else None),
        _part(section, "gallery", "Gallery", pictures.gallery(section)),
        _part(section, "breakdowns", "Breakdowns", slices.html or None),
        _part(section, "more", "Everything else", [every_table(section), provenance(section)]),
    ]
    return element("section", parts, id=section.id, class_="benchmark"), {
        "id": section.id,
        "curves": curves,
        "units": units,
    }


def _heading(section: Section) -> Html:
    listed = BENCHMARKS.get(section.benchmark)
    summaries = dict.fromkeys(run.shown.manifest.summary for run in section.runs)
    unfinished = [run.name for run in section.runs if run.shown.manifest.status != "done"]
    return element(
        "div",
        element("h2", layout_of(section.benchmark).title),
        element("p", element("code", section.benchmark), f" {listed.summary}" if listed else "", class_="quiet"),
        [element("p", summary, class_="sizes") for summary in summaries if summary],
        section_badges(section),
        element("p", f"not finished: {', '.join(unfinished)}", class_="loud") if unfinished else None,
        class_="heading",
    )


def _notes(section: Section) -> Html | None:
    notes = note_list(section)
    return None if notes is None else folded(f"What the figures mean, and {len(section.notes)} notes", notes)


def _part(section: Section, name: str, title: str, content: Child) -> Html | None:
    """A part of a benchmark's section under a heading that the navigation leads to."""
    if content is None:
        return None
    return element("div", element("h3", title), content, id=f"{section.id}-{name}", class_="part")


def _curves(section: Section) -> dict[str, Any] | None:
    """The curves of all runs, by name of the task."""
    names = list(dict.fromkeys(curve.name for run in section.runs for curve in run.shown.curves))
    if not names:
        return None
    runs = [
        {"run": run.colour, "curves": {curve.name: curve.to_json() for curve in run.shown.curves}}
        for run in section.runs
        if run.shown.curves
    ]
    return {"names": names, "runs": runs}


def _navigation(boards: Sequence[Board]) -> Html:
    links = [element("li", element("a", "Overview", href="#overview"))] if len(boards) > 1 else []
    links += [element("li", element("a", board.section.benchmark, href=f"#{board.section.id}")) for board in boards]
    links.append(element("li", element("a", "How to cite", href="#cite")))
    toggle = element("button", "Dark", type="button", id="theme", aria_pressed="false")
    menu = element("ul", links)
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
