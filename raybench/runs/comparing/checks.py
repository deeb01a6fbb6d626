"""Whether finished runs measure the same: benchmark, protocol, truth, data, rows and units. What differs is a reason.

What belongs to the method does not count: descriptor, codec, distance, how images are prepared, or whether a run began
with images, vectors or results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Benchmark
from raybench.benchmarks.options import options_of
from raybench.runs.manifest import Manifest
from raybench.runs.samples import StoredSamples
from raybench.table import FigureCell

TRUTH = ("ground truth", "benchmarks", "tasks", "pairs", "truth")  # inputs that say what is right
METHOD = ("descriptor", "results", "predictions")  # inputs that are measured
# Options of the protocol's group that belong to the method, that rows are named by, or that change no figure.
FREE = (
    *("codecs", "score_norm", "distance", "post_processing", "task", "split", "set"),
    *("metadata", "max_predictions", "export_descriptors", "visualize"),
)
ROWS_OF_METHOD = ("codec", "score_norm")  # keys by which one method may have other rows than another
HAS_DIGEST = " has the digest"
SHOWN = 3  # names in a reason
SHORT = 12  # letters of a digest


@dataclass(frozen=True)
class FinishedRun:
    """A run that is compared: how it is called, what it was asked, its figures, and what they are made of."""

    name: str
    out: str
    manifest: Manifest
    cells: tuple[FigureCell, ...]
    stored: StoredSamples

    @property
    def benchmark(self) -> Benchmark:
        return BENCHMARKS[self.manifest.benchmark].open()

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))


def differences(first: FinishedRun, other: FinishedRun) -> Iterator[str]:
    """Why two runs of one benchmark do not measure the same, a line each that names both values."""
    for what, values in (
        *_protocol(first, other),
        *_inputs(first, other),
        *_data(first.stored.data, other.stored.data),
        *_rows(first, other),
    ):
        yield reason(other, first, what, *values) + _way_out(first, other, what)


def reason(other: FinishedRun, first: FinishedRun, what: str, theirs: object, ours: object) -> str:
    """One line against comparing two runs."""
    return f"{other.out}: {what} {theirs}, but {ours} in {first.out}"


def other_benchmark(first: Manifest, first_out: str, other: Manifest, out: str) -> str:
    """The reason against runs of two benchmarks, which have nothing in common."""
    return f"{out}: is a run of {other.benchmark}, but {first_out} is one of {first.benchmark}; compare runs of one"


Difference = tuple[str, tuple[object, ...]]  # what, and the other's and the first's value


def _protocol(first: FinishedRun, other: FinishedRun) -> Iterator[Difference]:
    known = [one.key for one in options_of(first.benchmark.options) if one.group == "protocol" and one.key not in FREE]
    for key in (*known, "limit"):
        ours, theirs = first.manifest.arguments.get(key), other.manifest.arguments.get(key)
        if ours != theirs:
            yield f"--{key.replace('_', '-')} is", (_shown(theirs), _shown(ours))


def _inputs(first: FinishedRun, other: FinishedRun) -> Iterator[Difference]:
    """Digests of the truth; and of the data, if both runs read the data itself and not vectors of it."""
    ours, theirs = first.manifest.inputs, other.manifest.inputs
    stored = any(one.manifest.arguments.get("features") for one in (first, other))
    for key in sorted(ours.keys() & theirs.keys() - set(METHOD)):
        if ours[key] != theirs[key] and (key.rpartition("/")[2] in TRUTH or not stored):
            yield f"{key}{HAS_DIGEST}", (theirs[key][:SHORT], ours[key][:SHORT])


def _way_out(first: FinishedRun, other: FinishedRun, what: str) -> str:
    """Digests of images are by name, size and time unless contents were asked for, so a copy has another."""
    by_stamp = [one.out for one in (first, other) if not one.manifest.execution.get("verify_inputs")]
    if not by_stamp or not what.endswith(HAS_DIGEST) or what.removesuffix(HAS_DIGEST) in TRUTH[:4]:
        return ""
    again = "both" if len(by_stamp) > 1 else by_stamp[0]
    return (
        "; that is a digest of names, sizes and times, which differ for a copy of the same files; run "
        f"{again} again with --verify-inputs true"
    )


def _data(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[Difference]:
    for key in sorted(ours.keys() & theirs.keys()):
        if ours[key] != theirs[key]:
            yield f"names of {key} have the digest", (theirs[key][:SHORT], ours[key][:SHORT])


def _rows(first: FinishedRun, other: FinishedRun) -> Iterator[Difference]:
    """Other tasks, splits or groups; rows by codec may differ, as a codec suits a descriptor."""
    ours, theirs = first.rows, other.rows
    common = set(ours) & set(theirs)
    if set(ours) != set(theirs) and not set(first.benchmark.keys) <= set(ROWS_OF_METHOD):
        own = ([row for row in rows if row not in common] for rows in (theirs, ours))
        yield "has rows of its own:", tuple(map(few, own))


def few(names: Sequence[str]) -> str:
    """The first names of a list, and how many there are."""
    shown = ", ".join(map(repr, names[:SHOWN])) or "none"
    return f"{shown} … ({len(names):,})" if len(names) > SHOWN else shown


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
