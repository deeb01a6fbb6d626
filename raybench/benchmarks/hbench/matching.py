"""HPatches 2016, image matching: the nearest target of every reference patch, right or wrong, over pairs of images.

Follows the HBench toolbox (branch av); `metrics.matching` says how its AP differs from that of the text and of 2017.
Among equal distances the lowest target index comes first. The toolbox stores squared distances; plain ones, written
here, rank the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.image_pairs import (
    ResultFiles,
    Task,
    TaskFiles,
    read_result_files,
    read_task_files,
    tasks_in_files,
    tasks_in_images,
)
from raybench.benchmarks.hbench.views import labels_of, view_table
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import chosen_distance, features_of, open_source
from raybench.descriptors import DescriptorSpec
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.errors import ConfigError, ProblemList
from raybench.formats import hbench_matching as files
from raybench.formats.hbench_matching import ImagePair, PairMatches
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.matching import by_ratio, closer_in_list, match_figures
from raybench.search.neighbours import ImagePairs, Matches, joined_matches, match_images
from raybench.sources.patches import Source
from raybench.table import Cell, Table

COLUMNS = ("task", "pairs", "map", "map_2nnr", "map_all", "map_ranked", "success_rate")
PAIR_COLUMNS = ("task", "pair", "ap", "ap_2nnr", "ap_all", "ap_ranked", "success_rate")
FRACTIONS = frozenset((*COLUMNS[2:], *PAIR_COLUMNS[2:]))
NOTES = (
    "map: mean over image pairs of the TREC AP of nearest neighbours by distance, over the right ones found (HBench "
    "tool); map_2nnr: the same by the ratio of second to first distance; map_all: over all reference patches (2017).",
    "map_ranked: mean of 1 / rank of the true target among all targets (HBench text); from .results within their K, "
    "else 0; success_rate: nearest neighbours that are right.",
)
DEFAULT_K = 2
POINTS_PER_PAIR = 200


@dataclass(frozen=True)
class Options(hbench.HBenchOptions):
    """Those of the 2016 benchmarks, and how many targets are kept."""

    k: int | None = option(None, "nearest targets per reference patch", "protocol", default_words=str(DEFAULT_K))


@dataclass(frozen=True)
class Plan:
    """A job whose files were read and agree with each other."""

    job: Job[Options]
    tasks: tuple[Task, ...]
    inputs: dict[str, str]
    results: ResultFiles | None
    source: Source | None
    descriptor: DescriptorSpec | None
    pairs: ImagePairs | None

    @property
    def summary(self) -> str:
        return f"{len(self.tasks)} tasks over {sum(len(task.pairs) for task in self.tasks):,} image pairs"

    def execute(self, run: Run) -> Outcome:
        """From features or results to the table, in one line of steps."""
        matches = self._matches(run)
        scores = run.map(Scores(matches, self.tasks), len(self.tasks), 1)
        figures = [run.read(scores, index)["figures"] for index in range(len(self.tasks))]
        name = hbench.descriptor_name(self.job, self.descriptor)
        curves = [f"curves/{task.name}.parquet" for task in self.tasks]
        digest, words = matches.mapped.digest, tuple(f"task {task.name}" for task in self.tasks)
        run.export(Export("curves", digest, partial(_curve_file, matches, self.tasks), words), curves)
        written = [] if self.results else [f"results/matching/{name}/{task.name}.results" for task in self.tasks]
        if written:
            run.export(Export("results", digest, partial(_result_file, matches, self.tasks), words), written)
        per_pair = Table("per_pair", PAIR_COLUMNS, _pair_rows(self.tasks, figures), FRACTIONS)
        table = Table("hbench_matching", COLUMNS, _task_rows(self.tasks, figures), FRACTIONS, self._notes())
        return Outcome(table, (per_pair, self._views(figures)))

    def _matches(self, run: Run) -> Matches:
        if self.results is not None:
            stage = ReadResults(self.results, self.tasks)
            mapped = run.map(stage, len(self.tasks), 1)
            return Matches(mapped, tuple(task.numbers[0] for task in self.tasks))
        assert self.source is not None and self.pairs is not None
        distance = chosen_distance(self.job, self.descriptor)
        wanted = np.unique(np.concatenate([self.pairs.a, self.pairs.b])).tolist()
        features = features_of(run, self.job, self.source, self.descriptor, distance, wanted)
        return match_images(run, features, self.pairs, chosen_k(self.job), distance, self.job.shard_size)

    def _views(self, figures: Sequence[NDArray[np.float64]]) -> Table:
        """Means over all pairs, each once, whatever tasks they are in; the noise is that of the target image."""
        numbers = [number for task in self.tasks for number in task.numbers]
        images = [pair.b for task in self.tasks for pair in task.pairs]
        once = np.unique(numbers, return_index=True)[1].tolist()
        return view_table("pairs", COLUMNS[2:], [labels_of(images[i]) for i in once], np.concatenate(figures)[once])

    def _notes(self) -> tuple[str, ...]:
        limit = self.job.limit
        return NOTES if limit is None else (*NOTES, f"LIMITED: only the first {limit:,} pairs of each task were used.")


def prepare(job: Job[Options]) -> Plan:
    """Read and check every file that the job rests on; raises all problems together."""
    hbench.check_inputs(job)
    k = chosen_k(job)
    problems = ProblemList()
    files_of_tasks: TaskFiles | None = None
    results, source, descriptor, pairs = None, None, None, None
    tasks: tuple[Task, ...] = ()
    if not job.options.results:
        with problems.noting():
            source, descriptor = open_source(job)
            chosen_distance(job, descriptor)
    with problems.noting():
        files_of_tasks = read_task_files(job, problems)
        tasks = tasks_in_files(files_of_tasks, job.limit)
        if job.options.results and tasks:
            results = read_result_files(job.options.results, files_of_tasks, problems)
        if source is not None:
            tasks, pairs = tasks_in_images(files_of_tasks, source, job.limit, k, problems)
    problems.check()
    assert files_of_tasks is not None
    digests = {"benchmarks": files_of_tasks, "results": results, "descriptor": descriptor, "patches": source}
    inputs = {name: read.digest for name, read in digests.items() if read is not None}
    return Plan(job, tasks, inputs, results, source, descriptor, pairs)


def chosen_k(job: Job[Options]) -> int:
    """`--k`, which goes with computing alone: finished results say themselves how many neighbours they have."""
    k: int | None = job.options.k
    if k is not None and job.options.results:
        raise ConfigError("--k: the .results files say how many neighbours they have; leave it out")
    if k is not None and k < 1:
        raise ConfigError(f"--k {k}: at least 1 neighbour is needed (2 for the ratio scores)")
    return DEFAULT_K if k is None else k


@dataclass(frozen=True)
class ReadResults:
    """The stage that reads finished `.results` files, a task a shard. The rank of a true target is known within K."""

    results: ResultFiles
    tasks: tuple[Task, ...]

    name = "read-results"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.results.digest, _truth(self.tasks))

    def load(self, shard: Shard) -> tuple[Task, bytes, str]:
        task = self.tasks[shard.start]
        uri = storage.join(self.results.folder, f"{task.name}.results")
        return task, storage.read(uri), uri

    def compute(self, payload: tuple[Task, bytes, str]) -> Arrays:
        task, data, uri = payload
        found = files.read_matches(data, uri, self.results.pairs[task.name])
        return joined_matches([self._arrays(found[pair], i, task) for i, pair in enumerate(task.pairs)])

    def keys(self, shard: Shard) -> str:
        return f"{self.tasks[shard.start].name}.results"

    def _arrays(self, found: PairMatches, place: int, task: Task) -> Arrays:
        truth = _as_indices(task.truth[place], len(found.index))
        return {"index": found.index, "distance": found.distance, "closer": closer_in_list(found.index, truth)}


@dataclass(frozen=True)
class Scores:
    """The stage that measures: the figures of every pair, a task a shard."""

    matches: Matches
    tasks: tuple[Task, ...]

    name = "scores"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.matches.mapped.digest, _truth(self.tasks))

    def load(self, shard: Shard) -> Task:
        return self.tasks[shard.start]

    def compute(self, payload: Task) -> Arrays:
        rows = [
            dataclasses.astuple(match_figures(found["distance"], found["index"], truth, found["closer"]))
            for found, truth in _with_truth(self.matches, payload)
        ]
        return {"figures": np.array(rows, np.float64)}

    def keys(self, shard: Shard) -> str:
        return f"task {self.tasks[shard.start].name}"


def _curve_file(matches: Matches, tasks: tuple[Task, ...], index: int) -> bytes:
    """PR points of every pair of a task, by distance and by ratio, as Parquet."""
    task = tasks[index]
    curves: list[tuple[str, str, ranking.Curve]] = []
    for pair, (found, truth) in zip(task.pairs, _with_truth(matches, task), strict=True):
        right = found["index"][:, 0] == truth
        ranked = {"distance": ranking.by_distance(found["distance"][:, 0], right)}
        if found["distance"].shape[1] > 1:
            ranked["ratio"] = by_ratio(found["distance"], right)
        curves += [(pair.head, score, ranking.curve(flags, POINTS_PER_PAIR)) for score, flags in ranked.items()]
    lengths = [len(points.rank) for _, _, points in curves]
    columns: dict[str, NDArray[np.generic]] = {
        "pair": np.repeat([pair for pair, _, _ in curves], lengths),
        "score": np.repeat([score for _, score, _ in curves], lengths),
        "rank": np.concatenate([points.rank for _, _, points in curves]),
        "recall": np.concatenate([points.recall for _, _, points in curves]),
        "precision": np.concatenate([points.precision for _, _, points in curves]),
    }
    return write_parquet(columns)


def _result_file(matches: Matches, tasks: tuple[Task, ...], index: int) -> bytes:
    """The `.results` file of a task in the published layout."""
    found = matches.read(tasks[index].numbers)
    blocks: list[tuple[ImagePair, PairMatches]] = [
        (pair, PairMatches(arrays["index"], arrays["distance"]))
        for pair, arrays in zip(tasks[index].pairs, found, strict=True)
    ]
    return files.write_matches(blocks)


def _with_truth(matches: Matches, task: Task) -> list[tuple[Arrays, NDArray[np.int64]]]:
    found = matches.read(task.numbers)
    return [(arrays, _as_indices(given, len(arrays["index"]))) for arrays, given in zip(found, task.truth, strict=True)]


def _as_indices(truth: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
    return np.arange(count) if truth is None else truth


def _truth(tasks: Sequence[Task]) -> list[object]:
    return [(task.name, [pair.head for pair in task.pairs], task.truth, task.numbers) for task in tasks]


def _task_rows(tasks: Sequence[Task], figures: Sequence[NDArray[np.float64]]) -> tuple[tuple[Cell, ...], ...]:
    """The mean over the pairs of each task."""
    return tuple(
        (task.name, len(task.pairs), *own.mean(axis=0).tolist()) for task, own in zip(tasks, figures, strict=True)
    )


def _pair_rows(tasks: Sequence[Task], figures: Sequence[NDArray[np.float64]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (task.name, pair.head, *row)
        for task, own in zip(tasks, figures, strict=True)
        for pair, row in zip(task.pairs, own.tolist(), strict=True)
    )


BENCHMARK = Benchmark(
    name="hbench-matching",
    summary="HPatches 2016 image matching: AP of nearest neighbours over pairs of images",
    needs=hbench.COMMON_NEEDS,
    options=Options,
    prepare=prepare,
    fractions=FRACTIONS,
)
