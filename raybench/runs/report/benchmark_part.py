"""The part of the page that a benchmark has: figures first, then curves, differences, cases, breakdowns, the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raybench.benchmarks import BENCHMARKS
from raybench.runs.report.badges import note_list, section_badges
from raybench.runs.report.differences import UnitData
from raybench.runs.report.layouts import layout_of
from raybench.runs.report.leaderboard import Board, leaderboard
from raybench.runs.report.markup import Child, Html, element, folded
from raybench.runs.report.provenance import provenance
from raybench.runs.report.shown import Section
from raybench.runs.report.slices import breakdowns
from raybench.runs.report.tables import every_table, published_beside
from raybench.runs.report.thresholds import threshold_card


@dataclass(frozen=True)
class BenchmarkPart:
    """HTML and data of a benchmark; `parts` are ids and titles for the navigation, `charts` those of its breakdowns."""

    section: Section
    html: Html
    data: dict[str, Any]
    parts: list[tuple[str, str]]
    charts: list[dict[str, Any]]


def benchmark_part(board: Board, gallery: Html | None, units: UnitData | None, first_chart: int) -> BenchmarkPart:
    """The part of a benchmark; its charts are counted from `first_chart` on."""
    section = board.section
    slices = breakdowns(section, first_chart)
    curves = _curves(section)
    contents: list[tuple[str, str, Child]] = [
        ("curves", "Curves", _scripted("curves") if curves else None),
        ("thresholds", "Which threshold to use", threshold_card(section)),
        ("differences", "Where two runs differ", _scripted("differences") if units else None),
        ("gallery", "Gallery", gallery),
        ("breakdowns", "Breakdowns", slices.html or None),
        ("more", "Everything else", [every_table(section), provenance(section)]),
    ]
    there = [(f"{section.id}-{name}", title, content) for name, title, content in contents if content is not None]
    html = element(
        "section",
        _heading(section),
        leaderboard(board),
        published_beside(section),
        _notes(section),
        [element("div", element("h3", title), content, id=own, class_="part") for own, title, content in there],
        id=section.id,
        class_="benchmark",
    )
    data = {"id": section.id, "curves": curves, "units": units}
    return BenchmarkPart(section, html, data, [(own, title) for own, title, _ in there], slices.charts)


def _scripted(kind: str) -> Html:
    """The place of something that scripts make."""
    return element("div", element("noscript", "Charts need JavaScript; figures are in the tables."), class_=kind)


def _heading(section: Section) -> Html:
    listed = BENCHMARKS.get(section.benchmark)
    manifests = [run.shown.manifest for run in section.runs]
    unfinished = [run.name for run in section.runs if run.shown.manifest.status != "done"]
    sizes = [summary for summary in dict.fromkeys(manifest.summary for manifest in manifests) if summary]
    places = dict.fromkeys(str(manifest.arguments["data"]) for manifest in manifests if "data" in manifest.arguments)
    return element(
        "div",
        element("h2", layout_of(section.benchmark).title),
        element("p", element("code", section.benchmark), f" {listed.summary}" if listed else "", class_="quiet"),
        element(
            "p",
            [element("span", size) for size in sizes],
            [element("span", place, class_="quiet place") for place in places],
            class_="sizes",
        ),
        section_badges(section),
        element("p", f"not finished: {', '.join(unfinished)}", class_="loud") if unfinished else None,
        class_="heading",
    )


def _notes(section: Section) -> Html | None:
    notes = note_list(section)
    return None if notes is None else folded(f"What the figures mean: {len(section.notes)} notes", notes)


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
