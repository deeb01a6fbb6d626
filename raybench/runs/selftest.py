"""The self-test: one small case per benchmark that comes with the package, run here and held against published tools.

`golden_cases.zip` has inputs, and in cases.json the figures that the published tools gave for them, each with the
tolerance stated for it. tests/golden/pack.py packs it from tests/golden, whose READMEs say how they were made.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Job
from raybench.runs.evaluate import evaluate
from raybench.runs.jobs import Settings, make_job, options_for
from raybench.runs.result_file import MeasuredFigure
from raybench.runs.sessions import coming_session
from raybench.table import Table

CASES = "golden_cases.zip"
COLUMNS = ("case", "ray", "figures", "largest_deviation", "tolerance")


@dataclass(frozen=True)
class Expected:
    """A figure that a published tool gave, and by how much ours may differ."""

    row: str
    figure: str
    value: float
    tolerance: float


@dataclass(frozen=True)
class Case:
    """A benchmark with inputs that are in the package, and what the published tool says of them."""

    name: str
    benchmark: str
    reference: str
    options: dict[str, Any]
    figures: tuple[Expected, ...]


@dataclass(frozen=True)
class Deviation:
    """By how much a figure differs from the published tool's; None where it is missing."""

    expected: Expected
    found: float | None

    @property
    def size(self) -> float:
        return float("inf") if self.found is None else abs(self.found - self.expected.value)

    @property
    def is_beyond(self) -> bool:
        return not self.size <= self.expected.tolerance


@dataclass(frozen=True)
class Verdict:
    """What came of a case in this process (`ray` is off) or on a local Ray."""

    case: Case
    ray: str
    deviations: tuple[Deviation, ...]

    @property
    def worst(self) -> Deviation:
        return max(self.deviations, key=lambda one: one.size / one.expected.tolerance)

    @property
    def differences(self) -> list[str]:
        """What is beyond its tolerance, in words."""
        return [
            f"{self.case.name}, ray {self.ray}: {one.expected.figure} of {one.expected.row} is {one.found}, the "
            f"published tool gives {one.expected.value} (tolerance {one.expected.tolerance:g})"
            for one in self.deviations
            if one.is_beyond
        ]


def unpack_cases(folder: Path) -> list[Case]:
    """The cases of the package, once their inputs are in a folder."""
    with zipfile.ZipFile(io.BytesIO(resources.files("raybench.runs").joinpath(CASES).read_bytes())) as packed:
        packed.extractall(folder)
    return [
        Case(**{**case, "figures": tuple(Expected(**figure) for figure in case["figures"])})
        for case in json.loads((folder / "cases.json").read_text())
    ]


def tried_cases(cases: Sequence[Case], folder: Path, ray: str) -> Iterator[Verdict]:
    """A verdict for each case, as it is run; inputs are below the folder, and so is what the runs leave."""
    settings = Settings(ray=ray, progress="none")
    jobs = [_job(case, folder, ray) for case in cases]
    with coming_session(jobs[0], settings) as session:
        for case, job in zip(cases, jobs, strict=True):
            yield Verdict(case, ray, deviations(case, evaluate(job, settings, session).figures))


def deviations(case: Case, figures: Sequence[MeasuredFigure]) -> tuple[Deviation, ...]:
    """How the figures of a run differ from those expected; figures that no published tool gave are passed over."""
    found = {(one["row"], one["figure"]): one["value"] for one in figures}
    return tuple(Deviation(one, found.get((one.row, one.figure))) for one in case.figures)


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """One row per case; deviation and tolerance are of the figure that comes nearest to its tolerance."""
    rows = [
        (
            one.case.name,
            one.ray,
            len(one.deviations),
            one.worst.size,
            one.worst.expected.tolerance,
        )
        for one in verdicts
    ]
    return Table("selftest", COLUMNS, tuple(rows))


def _job(case: Case, folder: Path, ray: str) -> Job[Any]:
    benchmark = BENCHMARKS[case.benchmark].open()
    places = {one.key for one in options_for(benchmark) if one.is_uri}
    given = {key: str(folder / value) if key in places else value for key, value in case.options.items()}
    return make_job(benchmark, {**given, "out": str(folder / "runs" / ray / case.name)})[0]
