"""A job: what the user asked for, checked and frozen. And what a benchmark is to those who run it: options, a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from raybench import storage
from raybench.benchmarks.options import option
from raybench.benchmarks.samples import RunSamples
from raybench.descriptors.precision import EXACT, Precision
from raybench.descriptors.specs import DescriptorSpec
from raybench.engine.run import Run
from raybench.errors import ConfigError
from raybench.extract.trials import Trial
from raybench.formats.limits import MOST_PIXELS, MOST_UNPACKED_BYTES, Limits
from raybench.metrics.bootstrap import Interval
from raybench.table import Table

BenchmarkOptions = TypeVar("BenchmarkOptions", covariant=True)
EXECUTION = "execution"


@dataclass(frozen=True)
class Job(Generic[BenchmarkOptions]):
    """The arguments of one run. URIs are absolute; `options` are the benchmark's own."""

    benchmark: str
    options: BenchmarkOptions
    out: str = option("", "output folder; the same one resumes", EXECUTION, is_uri=True)
    store: str = option(
        "", "where stages are kept; may be shared by runs", EXECUTION, default_words="<out>/stages", is_uri=True
    )
    device: str = option("auto", "where descriptors and searches run", EXECUTION, choices=("auto", "gpu", "cpu"))
    gpus: int | None = option(
        None, "ask for this many GPUs and wait for them", EXECUTION, default_words="all there are", least=1
    )
    accelerator_type: str | None = option(
        None,
        "kind of GPU by Ray's name, such as A10G; several with commas: any of them",
        EXECUTION,
        default_words="any",
        separator=",",
    )
    shard_size: int | None = option(
        None,
        "images per shard of an extraction, images or image pairs per shard of a search of images; other stages choose "
        "their own; never changes a figure",
        EXECUTION,
        default_words="by stage",
        least=1,
    )
    batch_size: int | None = option(
        None, "patches or images that a descriptor sees at once", EXECUTION, default_words="by descriptor", least=1
    )
    seed: int = option(0, "of everything that is drawn at random", EXECUTION, least=0)
    bootstrap: int | None = option(
        None,
        "draw what is independent (queries, sequences, pairs) N times, for intervals in tables/intervals.csv",
        EXECUTION,
        least=1,
    )
    limit: int | None = option(
        None, "a quick try on the first N items; the table says so", EXECUTION, default_words="all", least=1
    )
    verify_inputs: bool = option(False, "digest images by content, not by size and time", EXECUTION)
    on_bad_input: str = option(
        "fail",
        "skip: leave out what can't be read, count it in the table, list it in the manifest",
        EXECUTION,
        choices=("fail", "skip"),
    )

    max_image_pixels: int = option(
        MOST_PIXELS,
        "pixels that an image, mask, patch strip or flow may have; a larger one is bad input",
        EXECUTION,
        least=1,
    )
    max_unpacked_bytes: int = option(
        MOST_UNPACKED_BYTES,
        "memory for what one HDF5, .npz or Parquet file holds and must be read whole",
        EXECUTION,
        least=1,
    )

    def __post_init__(self) -> None:
        if self.out and not self.store:
            object.__setattr__(self, "store", self.own_store)

    @property
    def own_store(self) -> str:
        """Where stages are kept unless the user names another place; nowhere without an output folder."""
        return storage.join(self.out, "stages") if self.out else ""

    @property
    def limits(self) -> Limits:
        """How much one input file may take."""
        return Limits(self.max_image_pixels, self.max_unpacked_bytes)

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The kinds of GPU that will do; none named means any."""
        return tuple(kind.strip() for kind in (self.accelerator_type or "").split(",") if kind.strip())

    @property
    def skip_bad_input(self) -> bool:
        return self.on_bad_input == "skip"


@dataclass(frozen=True)
class DescribedOptions:
    """Options of every benchmark that describes: the data, and what describes it."""

    data: str | None = option(None, "folder (any URI) of the data set in its published layout", "input", is_uri=True)
    descriptor: str | None = option(
        None,
        "built-in name, module:Class of your own, a model file KIND:URI, or of images a model that a library knows, "
        "such as hf:FOLDER_OR_NAME (see `raybench list`); module:Class and torchscript:URI run code from that file: "
        "only use files you trust",
        "method",
    )
    descriptor_args: dict[str, Any] = option(
        dict, "JSON object with arguments for the constructor of your module:Class", "method"
    )

    @property
    def precision(self) -> Precision:
        """The arithmetic of the networks that describe; exact where there is no choice."""
        return EXACT


def check_one_given(job: Job[Any], keys: Sequence[str]) -> None:
    """That exactly one of these options is given, each of which is a place to begin."""
    given = [key for key in keys if getattr(job.options, key)]
    if len(given) != 1:
        expected = ", ".join(f"--{key}" for key in keys)
        found = " and ".join(f"--{key}" for key in given) or "none"
        raise ConfigError(f"{job.benchmark}: give one of {expected}; found {found}")


def limit_notes(job: Job[Any], items: str) -> tuple[str, ...]:
    """The note that a limited table carries."""
    return () if job.limit is None else (f"LIMITED: only the first {job.limit:,} {items} were used.",)


def note_digest(run: Run, descriptor: DescriptorSpec) -> None:
    """Say what a digest does not cover, before it names a stage."""
    for note in descriptor.digest_notes:
        run.note(note)


def trial_device(job: Job[Any], uses_gpu: bool) -> str:
    """Where a descriptor is tried: on a GPU if a run might compute there and this process has one."""
    return "gpu" if job.device != "cpu" and uses_gpu else "cpu"


def device_for(job: Job[Any], run: Run, uses_gpu: bool) -> str:
    """Where a descriptor computes: on the GPUs there are, if it uses one or the user asked for them by name."""
    asked_for_gpu = job.device == "gpu" or job.gpus is not None
    return "gpu" if run.gpus and (uses_gpu or asked_for_gpu) else "cpu"


@dataclass(frozen=True)
class PicturePanel:
    """One image of a case: its part in it, the name in the data, and whether it is right (None: neither).

    No bytes: the image is gone or broken, and the page leaves its frame empty.
    """

    label: str
    name: str
    jpeg: bytes
    right: bool | None = None


@dataclass(frozen=True)
class ReportPicture:
    """What the report shows beside the tables: a JPEG or the panels of a case, under a title, with a line of words."""

    title: str
    caption: str
    jpeg: bytes = b""
    kind: str = ""  # missed, false alarm, worst, best, right, or nothing
    unit: str = ""  # name of the query, image pair or sequence
    row: str = ""  # of the main table: its key cells joined by " | "
    alt: str = ""
    panels: tuple[PicturePanel, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a benchmark leaves: its main table, further ones, and what was skipped.

    `facts` are what a published figure must share to be comparable (see `report.comparable`). `intervals` are those of
    figures of the main table, by row and figure as `table.figure_cells` names them; empty if none were asked for.
    """

    main: Table
    further: tuple[Table, ...] = ()
    skipped: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    pictures: tuple[ReportPicture, ...] = ()  # for the report
    samples: RunSamples | None = None  # what intervals and comparisons are drawn from
    intervals: Mapping[tuple[str, str], Interval] = field(default_factory=dict)


class Plan(Protocol):
    """A job whose inputs were read and found good: their digests, and the walk from here to the table."""

    @property
    def inputs(self) -> dict[str, str]: ...

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        ...

    @property
    def trial(self) -> Trial:
        """What `check` tries of it beyond what was read already."""
        ...

    def execute(self, run: Run) -> Outcome: ...


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: what it takes, and how a job becomes a plan (raising every problem at once)."""

    name: str
    options: type[Any]  # a frozen dataclass of `option` fields
    prepare: Callable[[Job[Any]], Plan]
    keys: tuple[str, ...]  # columns of the main table whose cells name a row
    figures: tuple[str, ...]  # columns of the main table that are measured, as fractions; the others are counts
    fractions: frozenset[str]
    can_skip: bool = False  # whether a figure has a meaning without what can't be read
    main_table: str | None = None  # its name, where it is not the benchmark's
    # Pictures of a finished run for `report`: from its folder, arguments and tables; raises InputError.
    gallery: Callable[[str, dict[str, Any], Sequence[Table]], list[ReportPicture]] | None = None
    # The same of units by name (queries, pairs), drawn from the data where it is still there: what two runs differ in.
    cases: Callable[[str, dict[str, Any], Sequence[Table], Sequence[str]], list[ReportPicture]] | None = None

    @property
    def main_file(self) -> str:
        return f"{self.main_table or self.name.replace('-', '_')}.csv"
