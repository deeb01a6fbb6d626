"""What the page knows of runs: tables, pictures, curves and values by unit, read from their folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from raybench.benchmarks.job import ReportPicture
from raybench.runs.manifest import Manifest
from raybench.runs.report.curves import ReadCurve
from raybench.table import Table

if TYPE_CHECKING:  # it reads finished runs, which are shown
    from raybench.runs.unit_values import UnitValues


@dataclass(frozen=True)
class Shown:
    """What the page shows of one run: its tables are the main one and further ones."""

    manifest: Manifest
    tables: Sequence[Table]
    pictures: Sequence[ReportPicture] = ()
    curves: Sequence[ReadCurve] = ()
    units: Sequence[UnitValues] = ()
    out: str = ""  # its folder

    @property
    def main(self) -> Table | None:
        return self.tables[0] if self.tables else None

    def further(self, name: str) -> Table | None:
        """A further table by name."""
        return next((table for table in self.tables[1:] if table.name == name), None)


@dataclass(frozen=True)
class NamedRun:
    """A run under the name that the page gives it; `colour` is the place of that name among all of the page."""

    name: str
    colour: int
    shown: Shown


@dataclass(frozen=True)
class Section:
    """The runs of one benchmark, in the order in which they were given."""

    number: int
    benchmark: str
    runs: tuple[NamedRun, ...]

    @property
    def id(self) -> str:
        return f"b{self.number}"

    @cached_property
    def notes(self) -> dict[str, list[str]]:
        """Every note below a table of a run, with the names of the runs that carry it."""
        found: dict[str, list[str]] = {}
        for run in self.runs:
            for note in dict.fromkeys(note for table in run.shown.tables for note in table.notes):
                found.setdefault(note, []).append(run.name)
        return found


def sections_of(runs: Sequence[Shown]) -> list[Section]:
    """Runs by benchmark, named so that no two of a benchmark share a name."""
    by_benchmark: dict[str, list[Shown]] = {}
    for shown in runs:
        by_benchmark.setdefault(shown.manifest.benchmark, []).append(shown)
    names = {benchmark: run_names([shown.manifest for shown in own]) for benchmark, own in by_benchmark.items()}
    colours = {name: place for place, name in enumerate(dict.fromkeys(name for own in names.values() for name in own))}
    return [
        Section(
            number,
            benchmark,
            tuple(NamedRun(name, colours[name], shown) for name, shown in zip(names[benchmark], own, strict=True)),
        )
        for number, (benchmark, own) in enumerate(by_benchmark.items())
    ]


def run_names(manifests: Sequence[Manifest]) -> list[str]:
    """A name for each run of a benchmark: what was evaluated; where two share it, the folder's name, then its path."""
    for kind in (_subject, _folder, lambda manifest: str(manifest.execution.get("out", ""))):
        names = [kind(manifest) for manifest in manifests]
        if len(set(names)) == len(names) and all(names):
            return names
    return [f"{_subject(manifest)} ({number})" for number, manifest in enumerate(manifests, 1)]


def _subject(manifest: Manifest) -> str:
    """The descriptor's name, or the last part of the path of a model, of features or of results."""
    arguments = manifest.arguments
    given = arguments.get("descriptor") or arguments.get("features") or arguments.get("results")
    return str(given).rstrip("/").rpartition("/")[2] if given else _folder(manifest)


def _folder(manifest: Manifest) -> str:
    return str(manifest.execution.get("out") or manifest.benchmark).rstrip("/").rpartition("/")[2]
