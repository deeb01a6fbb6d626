"""A job: what the user asked for, checked and frozen. And what a benchmark is to the command line: options, a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from raybench.benchmarks.picture import Picture
from raybench.engine.run import Run
from raybench.table import Table


@dataclass(frozen=True)
class Option:
    """An option of one benchmark, as the command line shows it."""

    name: str
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    kind: type = str
    is_list: bool = False  # may be given several times or with commas; the job has the values joined by commas
    is_uri: bool = False  # the job has it absolute

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Job:
    """The arguments of one run. URIs are absolute; `options` are the benchmark's own, by key."""

    benchmark: str
    out: str = ""
    store: str = ""
    data: str | None = None
    benchmarks: str | None = None
    tasks: str | None = None
    descriptor: str | None = None
    descriptor_args: dict[str, Any] = field(default_factory=dict)
    features: str | None = None
    results: str | None = None
    device: str = "auto"
    gpus: int | None = None
    shard_size: int | None = None
    batch_size: int | None = None
    seed: int = 0
    limit: int | None = None
    verify_inputs: bool = False
    skip_bad_input: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def device_for(job: Job, run: Run, uses_gpu: bool) -> str:
    """Where a descriptor computes: on the GPUs there are, if it uses one or the user asked for them by name."""
    asked_for_gpu = job.device == "gpu" or job.gpus is not None
    return "gpu" if run.gpus and (uses_gpu or asked_for_gpu) else "cpu"


@dataclass(frozen=True)
class Outcome:
    """What a benchmark leaves: its main table, further ones, the files it exported, and what was skipped.

    `facts` are what a published figure must share to be comparable (see `report.comparable`).
    """

    main: Table
    further: tuple[Table, ...] = ()
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()  # for the report


class Plan(Protocol):
    """A job whose inputs were read and found good: their digests, and the walk from here to the table."""

    @property
    def inputs(self) -> dict[str, str]: ...

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        ...

    def execute(self, run: Run) -> Outcome: ...


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: what it is, what it takes, and how a job becomes a plan (raising every problem at once)."""

    name: str
    summary: str
    needs: str
    options: tuple[Option, ...]
    prepare: Callable[[Job], Plan]
    fractions: frozenset[str]
    can_skip: bool = False  # whether a figure has a meaning without what can't be read
    inputs: tuple[str, ...] = ("data", "benchmarks", "descriptor", "descriptor-args", "features", "results")
    main_table: str | None = None  # its name, where it is not the benchmark's
    # Pictures of a finished run for `report`: from its folder, arguments and tables; raises InputError.
    gallery: Callable[[str, dict[str, Any], Sequence[Table]], list[Picture]] | None = None

    @property
    def main_file(self) -> str:
        return f"{self.main_table or self.name.replace('-', '_')}.csv"
