"""HPatches 2016, patch classification: are two patches of the same scene point? Pairs are ranked by distance.

Follows the HBench toolbox (branch av): TREC AP and ROC AUC over all pairs of a task, and `balanced`: all positives,
then the first as many negatives. Among equal distances the order of the file stands. The toolbox stores squared
distances; plain ones, written here, rank the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.curves import curve_arrays, curve_file
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.pair_views import PairLabels, pair_figures, pair_labels, ranked_pairs, view_table
from raybench.benchmarks.hbench.pairs import (
    ResultFiles,
    Segment,
    Task,
    TaskFiles,
    build_tasks,
    read_result_files,
    read_task_files,
)
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.patches import chosen_distance, features_of, open_source
from raybench.descriptors import DescriptorSpec
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.extract.patches import unreadable_images
from raybench.formats import hbench as files
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import Rows
from raybench.search.pairs import Pairs, pair_distances
from raybench.sources.patches import Source, items_of
from raybench.table import Cell, Table

COLUMNS = ("task", "pairs", "positives", "ap", "auc", "ap_balanced", "auc_balanced")
FRACTIONS = frozenset(COLUMNS[3:])
NOTES = (
    "ap: TREC average precision over all pairs; auc: area under the ROC; balanced: positives and as many negatives.",
)


@dataclass(frozen=True)
class Plan:
    """A job whose files were read and agree with each other."""

    job: Job[hbench.HBenchOptions]
    tasks: tuple[Task, ...]
    segments: tuple[Segment, ...]
    labels: tuple[PairLabels | None, ...]
    inputs: dict[str, str]
    results: ResultFiles | None
    source: Source | None
    descriptor: DescriptorSpec | None
    pairs: Pairs | None
    left_out: tuple[str, ...]

    @property
    def summary(self) -> str:
        pairs = self.segments[-1].stop if self.segments else 0
        return f"{len(self.tasks)} tasks over {pairs:,} pairs in {len(self.segments)} lists"

    def execute(self, run: Run) -> Outcome:
        """From features or results to the table, in one line of steps."""
        distances, skipped = self._distances(run)
        scores = run.map(Scores(distances, self.tasks), len(self.tasks), 1)
        rows: list[tuple[Cell, ...]] = [
            (task.name, *_figures(run, scores, index)) for index, task in enumerate(self.tasks)
        ]
        name = hbench.descriptor_name(self.job, self.descriptor)
        curves = [f"curves/{task.name}.parquet" for task in self.tasks]
        task_names = tuple(f"task {task.name}" for task in self.tasks)
        run.export(Export("curves", scores.digest, partial(curve_file, scores), task_names), curves)
        whole = not self.results and self.job.limit is None  # a part of a list is no list in the published format
        written = [] if not whole else [f"results/classification/{name}/{s.name}.results" for s in self.segments]
        if written:
            write = partial(_result_file, distances, self.segments, self.tasks)
            run.export(Export("results", distances.digest, write, tuple(s.name for s in self.segments)), written)
        table = Table("hbench_classification", COLUMNS, tuple(rows), FRACTIONS, self._notes(rows))
        views = view_table(run, distances, self.tasks, self.labels)
        return Outcome(table, views, (*self.left_out, *skipped))

    def _distances(self, run: Run) -> tuple[Mapped, list[str]]:
        """Distances of all pairs, and what could not be read on the way."""
        if self.results is not None:
            stage = ReadResults(self.results.folder, self.results.digest, self.segments)
            return run.fold(run.map(stage, len(self.segments), 1), Rows), []
        assert self.source is not None and self.pairs is not None
        distance = chosen_distance(self.job, self.descriptor)
        images = np.unique(np.concatenate([self.pairs.a_image, self.pairs.b_image]))
        wanted: list[int] = images[images >= 0].tolist()
        skip = self.job.skip_bad_input
        features = features_of(run, self.job, self.source, self.descriptor, distance, wanted)
        unreadable = [f"{key}: can't be read" for key in unreadable_images(run, features, wanted)] if skip else []
        distances = pair_distances(run, features, self.pairs, distance, self.job.shard_size, skip)
        return run.fold(distances, Rows), unreadable

    def _notes(self, rows: list[tuple[Cell, ...]]) -> tuple[str, ...]:
        notes = list(NOTES)
        if self.job.limit is not None:
            notes.append(f"LIMITED: only the first {self.job.limit:,} pairs of each list were used.")
        for task, row in zip(self.tasks, rows, strict=True):
            missing = len(task.positive) - int(row[1] or 0)
            if missing:
                notes.append(f"SKIPPED: {missing:,} of {len(task.positive):,} pairs of {task.name} could not be read.")
        return tuple(notes)


def prepare(job: Job[hbench.HBenchOptions]) -> Plan:
    """Read and check every file that the job rests on; raises all problems together."""
    hbench.check_inputs(job)
    problems, left_out = ProblemList(), ProblemList()
    tasks, results, source, descriptor, pairs = None, None, None, None, None
    if not job.options.results:
        with problems.noting():
            source, descriptor = open_source(job)
            chosen_distance(job, descriptor)
    with problems.noting():
        tasks = read_task_files(job, problems)
        if job.options.results and tasks.lists:
            results = read_result_files(job.options.results, tasks, problems, job.skip_bad_input)
        built, segments = build_tasks(tasks, results, job.limit, problems)
        if source is not None:
            pairs = _located(tasks, segments, source, left_out if job.skip_bad_input else problems)
            if pairs is not None and not np.any((pairs.a_image >= 0) & (pairs.b_image >= 0)):
                problems.lines += left_out.lines or ["no pair can be read"]
    problems.check()
    assert tasks is not None
    inputs = {"benchmarks": tasks.digest}
    inputs |= {"results": results.digest} if results else {}
    inputs |= {"descriptor": descriptor.digest} if descriptor else {}
    inputs |= {"patches": source.digest} if source else {}
    labels = tuple(pair_labels(task, tasks) for task in built)
    return Plan(job, built, segments, labels, inputs, results, source, descriptor, pairs, tuple(left_out.lines))


def _located(tasks: TaskFiles, segments: tuple[Segment, ...], source: Source, problems: ProblemList) -> Pairs | None:
    """All pairs of the run with images as items of the source; what is not there is noted and gets image -1."""
    images = sorted({image for segment in segments for image in tasks.pairs[segment.name].images})
    items = items_of(source, images, problems)
    counts = source.counts(items.values(), problems)
    parts = []
    for segment in segments:
        pairs = tasks.pairs[segment.name]
        known = [item if item in counts else -1 for item in (items.get(image, -1) for image in pairs.images)]
        item = np.array(known, np.int32)
        count = np.array([counts.get(i, np.iinfo(np.int32).max) for i in known], np.int64)
        sides = ((pairs.a_image, pairs.a_patch), (pairs.b_image, pairs.b_patch))
        for image, patch in sides:
            beyond = np.flatnonzero(patch >= count[image])
            if len(beyond):
                line = int(beyond[0])
                key = pairs.images[image[line]]
                problems.add(
                    f"{tasks.folder}/{segment.name}.pairs: line {line + 1}: patch "
                    f"{key.replace('/', '.')}.{patch[line]} is out of range; {key} has {count[image[line]]} patches "
                    f"({len(beyond):,} such lines)"
                )
        kept = segment.positions
        located = [(np.where(patch < count[image], item[image], -1), patch) for image, patch in sides]
        parts.append([values[kept].astype(np.int32) for side in located for values in side])
    return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True))) if parts else None


@dataclass(frozen=True)
class ReadResults:
    """The stage that reads finished `.results` files into Rows, a file a shard."""

    folder: str
    content: str
    segments: tuple[Segment, ...]

    name = "read-results"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        layout = [(segment.name, segment.lengths, segment.limit, segment.start) for segment in self.segments]
        return digest_of(self.name, self.version, self.content, layout)

    def load(self, shard: Shard) -> tuple[Segment, bytes, str]:
        segment = self.segments[shard.start]
        uri = storage.join(self.folder, f"{segment.name}.results")
        return segment, storage.read(uri), uri

    def compute(self, payload: tuple[Segment, bytes, str]) -> Arrays:
        segment, data, uri = payload
        distances = files.read_distances(data, uri, allow_nan=True).distances[segment.positions]  # checked before
        return Rows.of(np.arange(segment.start, segment.stop), distances).to_arrays()

    def keys(self, shard: Shard) -> str:
        return f"{self.segments[shard.start].name}.results"


@dataclass(frozen=True)
class Scores:
    """The stage that measures: figures and curve points, a task a shard."""

    distances: Mapped
    tasks: tuple[Task, ...]

    name = "scores"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        truth = [(task.name, [(s.name, s.start, s.stop) for s in task.segments], task.positive) for task in self.tasks]
        return digest_of(self.name, self.version, self.distances.digest, truth)

    def load(self, shard: Shard) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        task = self.tasks[shard.start]
        values = self.distances.read(0)["values"]
        return np.concatenate([values[s.start : s.stop] for s in task.segments]), task.positive

    def compute(self, payload: tuple[NDArray[np.float64], NDArray[np.bool_]]) -> Arrays:
        distances, positive = payload
        measured = ~np.isnan(distances)  # what was skipped has none
        distances, positive = distances[measured], positive[measured]
        ranked = ranked_pairs(distances, positive)
        return {
            "figures": np.array(pair_figures(ranked), np.float64),
            "counts": np.array([len(positive), positive.sum()], np.int64),
            **curve_arrays(ranked[0]),
        }

    def keys(self, shard: Shard) -> str:
        return f"task {self.tasks[shard.start].name}"


def _result_file(distances: Mapped, segments: tuple[Segment, ...], tasks: tuple[Task, ...], index: int) -> bytes:
    """A `.results` file in the published layout, `distance,label` a line."""
    segment = segments[index]
    return files.write_distances(distances.read(0)["values"][segment.start : segment.stop], _labels(segment, tasks))


def _labels(segment: Segment, tasks: tuple[Task, ...]) -> NDArray[np.bool_]:
    for task in tasks:
        start = 0
        for own in task.segments:
            stop = start + own.stop - own.start
            if own.name == segment.name:
                return task.positive[start:stop]
            start = stop
    raise AssertionError(f"no task has the list {segment.name}")


def _figures(run: Run, scores: Mapped, index: int) -> list[Cell]:
    """A task's pairs, positives and figures."""
    arrays = run.read(scores, index)
    return [*arrays["counts"].tolist(), *arrays["figures"].tolist()]


BENCHMARK = Benchmark(
    name="hbench-classification",
    summary="HPatches 2016 patch classification: TREC AP and ROC AUC of listed pairs",
    needs=hbench.COMMON_NEEDS,
    options=hbench.HBenchOptions,
    prepare=prepare,
    fractions=FRACTIONS,
    can_skip=True,
)
