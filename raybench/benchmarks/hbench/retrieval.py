"""HPatches 2016, image and patch retrieval: the 50 patches of a pool that are nearest to a query.

Follows the HBench toolbox (branch av): TREC AP over the relevant ones among the 50, 0 if there are none. Equal
distances keep pool order; then the query is swapped into the first place. The toolbox averages n queries over n + 1
(a leading zero); here the mean is over n unless `--compat hbench` asks for theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from raybench import storage
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.pools import (
    LIST_LENGTH,
    ResultFiles,
    Task,
    TaskFiles,
    build_tasks,
    located_pools,
    read_lists,
    read_result_files,
    read_task_files,
)
from raybench.benchmarks.hbench.retrieval_files import KINDS, curve_file, query_file, result_file
from raybench.benchmarks.hbench.views import query_labels, view_table
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import chosen_distance, features_of, open_source
from raybench.descriptors import DescriptorSpec
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.formats.hbench_retrieval import NO_PATCH, Codes, image_of
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.metrics.ranking import found_ap
from raybench.metrics.retrieval import among, query_first
from raybench.search.neighbours import PoolQueries, search_pools
from raybench.sources.patches import Source
from raybench.table import Cell, Table

COLUMNS = ("task", "queries", "image_map", "patch_map")
SEED_COLUMNS = ("group", "tasks", "queries", "image_map", "patch_map")
FRACTIONS = frozenset(COLUMNS[2:])
NOTE = (
    "image_map: mean over queries of the TREC AP over the 50 nearest, relevant = from an image of the query's cluster; "
    "patch_map: relevant = in the cluster. AP is over the relevant ones among the 50."
)


@dataclass(frozen=True)
class Options(hbench.HBenchOptions):
    """Those of the 2016 benchmarks, and whose mean is taken."""

    compat: str | None = option(
        None,
        "hbench: the published tool's own mean, n queries over n + 1",
        "protocol",
        default_words="the plain mean",
        choices=("hbench",),
    )


@dataclass(frozen=True)
class Plan:
    """A job whose files were read and agree with each other."""

    job: Job[Options]
    tasks: tuple[Task, ...]
    inputs: dict[str, str]
    results: ResultFiles | None
    source: Source | None
    descriptor: DescriptorSpec | None
    pools: tuple[PoolQueries, ...]

    @property
    def summary(self) -> str:
        return f"{len(self.tasks)} tasks with {self.tasks[-1].stop if self.tasks else 0:,} queries"

    def execute(self, run: Run) -> Outcome:
        """From features or results to the table, in one line of steps."""
        lists = self._lists(run)
        scores = run.map(Scores(lists, self.tasks), len(self.tasks), 1)
        scored = [run.read(scores, index) for index in range(len(self.tasks))]
        means = [self._means(arrays) for arrays in scored]
        name = hbench.descriptor_name(self.job, self.descriptor)
        curves = [f"curves/{task.name}.parquet" for task in self.tasks]
        words = tuple(f"task {task.name}" for task in self.tasks)
        run.export(Export("curves", scores.digest, partial(curve_file, scores, self.tasks), words), curves)
        per_query = Export("per-query", scores.digest, partial(query_file, scores, self.tasks), ("every query",))
        run.export(per_query, ["tables/per_query.parquet"])
        written = [] if self.results else [f"results/retrieval/{name}/{task.name}.results" for task in self.tasks]
        if written:
            run.export(Export("results", lists.digest, partial(result_file, lists, self.tasks), words), written)
        rows = tuple(
            (task.name, len(task.content.queries), *mean) for task, mean in zip(self.tasks, means, strict=True)
        )
        table = Table("hbench_retrieval", COLUMNS, rows, FRACTIONS, self._notes())
        seeds = _seed_rows(self.tasks, means)
        further = (Table("seeds", SEED_COLUMNS, seeds, FRACTIONS),) if seeds else ()
        return Outcome(table, (*further, _views(self.tasks, scored)))

    def _lists(self, run: Run) -> Mapped:
        if self.results is not None:
            return run.map(ReadResults(self.results, self.tasks), len(self.tasks), 1)
        assert self.source is not None
        distance = chosen_distance(self.job, self.descriptor)
        wanted = np.unique(np.concatenate([pool.images for pool in self.pools])).tolist()
        features = features_of(run, self.job, self.source, self.descriptor, distance, wanted)
        found = search_pools(run, features, self.pools, LIST_LENGTH, distance, self.job.shard_size)
        return run.map(Lists(run.fold(found, TopK), self.tasks), len(self.tasks), 1)

    def _means(self, scores: Arrays) -> tuple[float, float]:
        extra = int(self.job.options.compat == "hbench")
        image, patch = (float(scores[f"{kind}_ap"].sum() / (len(scores[f"{kind}_ap"]) + extra)) for kind in KINDS)
        return image, patch

    def _notes(self) -> tuple[str, ...]:
        notes = [NOTE]
        if self.job.options.compat == "hbench":
            notes.append("COMPAT hbench: n queries are averaged over n + 1, as the published tool does.")
        if self.results is not None and self.results.length < LIST_LENGTH:
            notes.append(f"The .results have {self.results.length} names a query, not {LIST_LENGTH}.")
        if self.job.limit is not None:
            notes.append(f"LIMITED: only the first {self.job.limit:,} queries of each task were used.")
        return tuple(notes)


def prepare(job: Job[Options]) -> Plan:
    """Read and check every file that the job rests on; raises all problems together."""
    hbench.check_inputs(job)
    problems = ProblemList()
    files_of_tasks: TaskFiles | None = None
    results, source, descriptor = None, None, None
    tasks: tuple[Task, ...] = ()
    pools: tuple[PoolQueries, ...] = ()
    if not job.options.results:
        with problems.noting():
            source, descriptor = open_source(job)
            chosen_distance(job, descriptor)
    with problems.noting():
        files_of_tasks = read_task_files(job, problems)
        tasks = build_tasks(files_of_tasks, job.limit)
        if job.options.results and tasks:
            results = read_result_files(job.options.results, files_of_tasks, problems)
        if source is not None:
            pools = located_pools(tasks, files_of_tasks.folder, source, problems)
    problems.check()
    assert files_of_tasks is not None
    digests = {"benchmarks": files_of_tasks, "results": results, "descriptor": descriptor, "patches": source}
    inputs = {name: read.digest for name, read in digests.items() if read is not None}
    return Plan(job, tasks, inputs, results, source, descriptor, pools)


@dataclass(frozen=True)
class ReadResults:
    """The stage that reads finished `.results` files into lists, a task a shard."""

    results: ResultFiles
    tasks: tuple[Task, ...]

    name = "read-results"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.results.digest, [task.identity for task in self.tasks])

    def load(self, shard: Shard) -> tuple[Task, bytes, str]:
        task = self.tasks[shard.start]
        uri = storage.join(self.results.folder, f"{task.name}.results")
        return task, storage.read(uri), uri

    def compute(self, payload: tuple[Task, bytes, str]) -> Arrays:
        task, data, uri = payload
        lists = read_lists(data, uri, self.results.tasks[task.name])
        return {"lists": lists[: len(task.content.queries)]}

    def keys(self, shard: Shard) -> str:
        return f"{self.tasks[shard.start].name}.results"


@dataclass(frozen=True)
class Lists:
    """The stage that makes the published lists of what was found, a task a shard: codes in order, the query first."""

    found: Mapped
    tasks: tuple[Task, ...]

    name = "lists"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.found.digest, [task.identity for task in self.tasks])

    def load(self, shard: Shard) -> tuple[Task, Codes]:
        task = self.tasks[shard.start]
        return task, TopK.from_arrays(self.found.read(0)).reference[task.start : task.stop]

    def compute(self, payload: tuple[Task, Codes]) -> Arrays:
        task, references = payload
        lists = np.where(references == NO_REFERENCE, NO_PATCH, references)
        return {"lists": query_first(lists, task.content.queries)}

    def keys(self, shard: Shard) -> str:
        return f"task {self.tasks[shard.start].name}"


@dataclass(frozen=True)
class Scores:
    """The stage that measures: what is relevant in each list, and its AP, a task a shard."""

    lists: Mapped
    tasks: tuple[Task, ...]

    name = "scores"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.lists.digest, [task.identity for task in self.tasks])

    def load(self, shard: Shard) -> tuple[Task, Codes]:
        return self.tasks[shard.start], self.lists.read(shard.start)["lists"][:, 1:]

    def compute(self, payload: tuple[Task, Codes]) -> Arrays:
        task, found = payload
        image = among(image_of(found), image_of(task.clusters))
        patch = among(found, task.clusters)
        return {"image": image, "patch": patch, "image_ap": found_ap(image), "patch_ap": found_ap(patch)}

    def keys(self, shard: Shard) -> str:
        return f"task {self.tasks[shard.start].name}"


def _views(tasks: Sequence[Task], scored: Sequence[Arrays]) -> Table:
    places = [(task.content.pool, image_of(task.content.queries)) for task in tasks]
    labels = [label for pool, images in places for label in query_labels(pool, images)]
    figures = np.concatenate([np.stack([arrays[f"{kind}_ap"] for kind in KINDS], axis=1) for arrays in scored])
    return view_table("queries", COLUMNS[2:], labels, figures)


def _seed_rows(tasks: Sequence[Task], means: Sequence[tuple[float, float]]) -> tuple[tuple[Cell, ...], ...]:
    """The mean over seeds of each group that has several; each seed counts alike."""
    groups: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        if task.group:
            groups.setdefault(task.group, []).append(index)
    return tuple(
        (
            group,
            len(own),
            sum(len(tasks[i].content.queries) for i in own),
            *np.mean([means[i] for i in own], 0).tolist(),
        )
        for group, own in groups.items()
        if len(own) > 1
    )


BENCHMARK = Benchmark(
    name="hbench-retrieval",
    summary="HPatches 2016 image and patch retrieval: AP over the 50 nearest patches of a pool",
    needs=hbench.COMMON_NEEDS,
    options=Options,
    prepare=prepare,
    fractions=FRACTIONS,
)
