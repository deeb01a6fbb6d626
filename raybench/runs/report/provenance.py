"""What each run was asked, read and did: arguments, digests, versions and stages, runs beside each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from raybench.runs.manifest import Manifest
from raybench.runs.report.markup import Html, element, folded
from raybench.runs.report.shown import NamedRun, Section

SUMS = ("shards", "found", "computed", "seconds", "repaired", "lost", "size_bytes")


def provenance(section: Section) -> Html:
    """Folded tables over the runs of a benchmark."""
    parts: list[tuple[str, Callable[[Manifest], dict[str, Any]]]] = [
        ("Arguments", lambda manifest: manifest.arguments),
        ("Inputs: digests", lambda manifest: manifest.inputs),
        ("Versions and machine", lambda manifest: {**manifest.versions, **manifest.cluster}),
        ("Where and how", lambda manifest: manifest.execution),
    ]
    folds = [folded(title, _beside(section.runs, part)) for title, part in parts]
    return element("div", folds, folded("Stages: seconds, shards, lost", _stages(section.runs)), _skipped(section.runs))


def _beside(runs: Sequence[NamedRun], part: Callable[[Manifest], dict[str, Any]]) -> Html:
    """Keys × runs; a value that all runs share is written once."""
    values = [part(run.shown.manifest) for run in runs]
    head = element("tr", element("th", ""), [element("th", run.name, scope="col") for run in runs])
    body = []
    for key in dict.fromkeys(key for own in values for key in own):
        words = [_words(own.get(key)) for own in values]
        same = len(set(words)) == 1
        cells = [element("td", words[0], colspan=len(runs))] if same else [element("td", word) for word in words]
        body.append(element("tr", element("th", key.replace("_", " "), scope="row"), cells))
    table = element("table", element("thead", head), element("tbody", body), class_="facts")
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label="facts of runs")


def _words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _stages(runs: Sequence[NamedRun]) -> Html:
    """The stages of each run, those of one name together, and what they took."""
    head = element("tr", [element("th", title, scope="col") for title in ("run", "stage", *SUMS)])
    body = []
    for run in runs:
        sums: dict[str, list[float]] = {}
        for stage in run.shown.manifest.stages:
            own = sums.setdefault(str(stage.get("name", "")), [0.0] * len(SUMS))
            for place, key in enumerate(SUMS):
                value = stage.get(key)
                own[place] += value if isinstance(value, int | float) else 0
        body += [
            element(
                "tr",
                element("td", run.name),
                element("td", name),
                [
                    element("td", f"{value:,.1f}" if key == "seconds" else f"{value:,.0f}", class_="n")
                    for key, value in zip(SUMS, own, strict=True)
                ],
            )
            for name, own in sums.items()
        ]
    table = element("table", element("thead", head), element("tbody", body), class_="sortable facts")
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label="stages")


def _skipped(runs: Sequence[NamedRun]) -> Html | None:
    lines = [element("li", f"{run.name}: {line}") for run in runs for line in run.shown.manifest.skipped]
    return folded(f"Skipped inputs ({len(lines)})", element("ul", lines)) if lines else None
