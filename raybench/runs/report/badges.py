"""Warnings among the notes of runs: notes that begin with words in capitals, as badges."""

from __future__ import annotations

from collections.abc import Sequence

from raybench.runs.report.markup import Html, element
from raybench.runs.report.shown import Section
from raybench.table import warning_of


def section_badges(section: Section) -> Html | None:
    """A badge per warning of a benchmark's runs, with the whole note on hover and focus."""
    found = [(warning_of(note), note, runs) for note, runs in section.notes.items()]
    badges = [
        element("span", word, of_runs(runs, section), class_="badge", title=note, tabindex=0)
        for word, note, runs in found
        if word
    ]
    return element("p", badges, class_="badges") if badges else None


def page_badges(sections: Sequence[Section]) -> Html | None:
    """One badge per kind of warning on the page, which leads to the first benchmark that has it."""
    kinds: dict[str, list[tuple[Section, str]]] = {}
    for section in sections:
        for note in section.notes:
            if word := warning_of(note):
                kinds.setdefault(word, []).append((section, note))
    badges = [
        element("a", word, f" · {len(found)}", class_="badge", href=f"#{found[0][0].id}", title=found[0][1])
        for word, found in kinds.items()
    ]
    return element("p", badges, class_="badges") if badges else None


def note_list(section: Section) -> Html | None:
    """Every note, warnings first, with the runs that carry it where not all do."""
    ordered = sorted(section.notes.items(), key=lambda pair: not warning_of(pair[0]))
    lines = [
        element(
            "li",
            note,
            element("span", of_runs(runs, section), class_="quiet"),
            class_="loud" if warning_of(note) else None,
        )
        for note, runs in ordered
    ]
    return element("ul", lines, class_="notes") if lines else None


def of_runs(runs: Sequence[str], section: Section) -> str:
    """Which runs, unless all."""
    return "" if len(runs) == len(section.runs) else f" · {', '.join(runs)}"
