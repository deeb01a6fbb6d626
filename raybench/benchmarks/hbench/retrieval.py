"""HPatches 2016, image and patch retrieval: the 50 patches of a pool that are nearest to a query.

Follows the HBench toolbox (branch av): TREC AP over the relevant ones among the 50, 0 if there are none. Equal
distances keep pool order; then the query is swapped into the first place. The toolbox averages n queries over n + 1
(a leading zero); here the mean is over n unless `--compat hbench` asks for theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.cases import retrieval_cases
from raybench.benchmarks.hbench.inputs import ResultFiles, TaskFiles
from raybench.benchmarks.hbench.views import mean_view_table, query_labels
from raybench.benchmarks.job import Benchmark, Job, Outcome, limit_notes
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import DescribedPatches
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList, Problems
from raybench.extract.trials import NoTrial, Trial
from raybench.formats import hbench_retrieval as files
from raybench.formats.hbench_retrieval import (
    LIST_LENGTH,
    NO_PATCH,
    Codes,
    RetrievalTask,
    image_of,
    patch_code,
    patch_of,
    signature,
)
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.metrics.ranking import found_ap
from raybench.metrics.retrieval import among, query_first
from raybench.search.neighbours import PoolQueries, search_pools
from raybench.sources.patches import Source, items_of
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of

QUERY_KINDS = ("image", "patch")  # what a query may look for; the scores of each are under its name
SEED_GROUP = re.compile(r"(.+_\d+s)_\d+")  # <train|test>_<easy|hard>_<n>s_<seed>


@dataclass(frozen=True)
class RetrievalOptions(hbench.HBenchOptions):
    """Those of the 2016 benchmarks, and whose mean is taken."""

    compat: str | None = option(
        None,
        "hbench: the published tool's own mean, n queries over n + 1",
        "protocol",
        default_words="the plain mean",
        choices=("hbench",),
    )


@dataclass(frozen=True)
class PoolTask:
    """A `.benchmark`: pool, queries that count with their clusters (queries, most), and the first query's number."""

    name: str
    content: RetrievalTask
    clusters: Codes
    start: int

    @property
    def stop(self) -> int:
        return self.start + len(self.content.queries)

    @property
    def signatures(self) -> NDArray[np.str_]:
        """The queries by name."""
        return np.array([signature(self.content.pool, code) for code in self.content.queries.tolist()])

    @property
    def group(self) -> str | None:
        """The name without its seed, if it has one."""
        found = SEED_GROUP.fullmatch(self.name)
        return found[1] if found else None


@dataclass(frozen=True)
class GivenLists:
    """What the `.results` file of a task says of its queries that count, (queries, names)."""

    name: str
    lists: Codes


@dataclass(frozen=True)
class SearchedPools:
    """Patches, and the pools of all tasks that are to be searched, with images as items of the source."""

    patches: DescribedPatches
    pools: tuple[PoolQueries, ...]


def prepare(job: Job[RetrievalOptions]) -> HBenchRetrieval:
    """Read and check every file that the job rests on; raises all problems together."""
    root = hbench.check_inputs(job)
    problems = ProblemList()
    patches = hbench.patches_to_describe(job, problems)
    found = hbench.read_task_files(
        root, "retrieval", job.options.task, files.read_retrieval_task, files.read_clusters, problems
    )
    tasks = _build_tasks(found, job.limit)
    origin: SearchedPools | tuple[GivenLists, ...]
    if job.options.results:
        content = found.sound
        results = hbench.read_result_files(
            job.options.results,
            "retrieval",
            {name: ((name,),) for name in content},
            lambda data, uri, name: files.read_lists(data, uri, content[name]),
            problems,
        )
        origin, digests = _given(tasks, results), {"results": results.digest}
    elif patches is not None:
        pools = _located_pools(tasks, found.folder, patches.source, problems)
        origin, digests = SearchedPools(patches, pools), patches.digests
    else:
        raise Problems(problems.lines)
    problems.check()
    return HBenchRetrieval(job, tasks, origin, {"benchmarks": found.digest, **digests})


def _build_tasks(found: TaskFiles[RetrievalTask, Codes], limit: int | None) -> tuple[PoolTask, ...]:
    """The tasks with their truth, their queries numbered one after the other."""
    built: list[PoolTask] = []
    for name, content in found.sound.items():
        clusters = found.labels[name] if name in found.labels else _clusters(content)
        kept = RetrievalTask(content.pool, content.queries[:limit])
        built.append(PoolTask(name, kept, clusters[:limit], built[-1].stop if built else 0))
    return tuple(built)


def _clusters(task: RetrievalTask) -> Codes:
    """Without labels the cluster is `SEQ.*.K` over the pool's images of the query's sequence."""
    sequences = np.array([image.split("/")[0] for image in task.pool])
    same = sequences == sequences[image_of(task.queries)][:, None]  # (queries, pool images)
    code = patch_code(np.arange(len(sequences))[None, :], patch_of(task.queries)[:, None])
    return np.where(same, code, NO_PATCH)


def _given(tasks: Sequence[PoolTask], results: ResultFiles[Codes]) -> tuple[GivenLists, ...]:
    """The lists of each task that has results, which are all unless something was noted."""
    return tuple(
        GivenLists(task.name, results.parsed[task.name][: len(task.content.queries)])
        for task in tasks
        if task.name in results.parsed
    )


def _located_pools(
    tasks: Sequence[PoolTask], folder: str, source: Source, problems: ProblemList
) -> tuple[PoolQueries, ...]:
    """The pools with images as items of the source; names and indices that are not there are noted."""
    items = items_of(source, sorted({image for task in tasks for image in task.content.pool}), problems)
    counts = source.counts(items.values(), problems)
    pools = []
    for task in tasks:
        pool = task.content.pool
        images = np.array([items.get(image, -1) for image in pool], np.int32)
        count = np.array([counts.get(int(item), np.iinfo(np.int32).max) for item in images], np.int64)
        image, patch = image_of(task.content.queries), patch_of(task.content.queries)
        beyond = np.flatnonzero(patch >= count[image])
        if len(beyond):
            line = int(beyond[0])
            problems.add(
                f"{folder}/{task.name}.benchmark: line {line + 2}: patch "
                f"{signature(pool, int(task.content.queries[line]))} is out of range; {pool[image[line]]} has "
                f"{count[image[line]]} patches ({len(beyond):,} such lines)"
            )
        first = patch_code(np.arange(len(pool)), np.zeros(len(pool), np.int64))
        pools.append(PoolQueries(images, first, images[image], patch.astype(np.int32), task.start))
    return tuple(pools)


@dataclass(frozen=True)
class HBenchRetrieval:
    """A job whose files were read and agree with each other."""

    job: Job[RetrievalOptions]
    tasks: tuple[PoolTask, ...]
    origin: SearchedPools | tuple[GivenLists, ...]
    inputs: dict[str, str]

    @property
    def summary(self) -> str:
        return f"{len(self.tasks)} tasks with {self.tasks[-1].stop if self.tasks else 0:,} queries"

    @property
    def trial(self) -> Trial:
        if not isinstance(self.origin, SearchedPools):
            return NoTrial()
        return self.origin.patches.trial(np.concatenate([pool.images for pool in self.origin.pools]))

    def execute(self, run: Run) -> Outcome:
        if isinstance(self.origin, SearchedPools):
            patches, pools = self.origin.patches, self.origin.pools
            features = patches.features(run, np.concatenate([pool.images for pool in pools]))
            found = search_pools(run, features, pools, LIST_LENGTH, patches.distance, self.job.shard_size)
            lists = run.each(published_lists, self.tasks, run.fold(found, TopK), version=1)
            run.write(hbench.results_pattern("retrieval", patches), _result_file, self.tasks, lists)
        else:
            lists = run.each(given_lists, self.origin, version=1)
        scores = run.each(score_lists, self.tasks, lists, version=1)
        run.write("curves/{name}.parquet", query_curve_file, self.tasks, scores)
        run.write("tables/{name}.parquet", query_file, ["per_query"], self.tasks, scores.whole)
        scored = run.read_each(scores)
        means = [mean_figures(arrays, self.job.options.compat) for arrays in scored]
        table = Table("hbench_retrieval", COLUMNS, _task_rows(self.tasks, means), FRACTIONS, self._notes())
        seeds = _seed_rows(self.tasks, means)
        further = (Table("seeds", SEED_COLUMNS, seeds, FRACTIONS),) if seeds else ()
        drawn = self.origin if isinstance(self.origin, SearchedPools) else None
        pictures = retrieval_cases(run, drawn, self.tasks, [patch for _, patch in means], lists, scores)
        return Outcome(table, (*further, _view_table(self.tasks, scored)), pictures=pictures)

    def _notes(self) -> tuple[str, ...]:
        notes = [*NOTES]
        if self.job.options.compat == "hbench":
            notes.append("COMPAT hbench: n queries are averaged over n + 1, as the published tool does.")
        if not isinstance(self.origin, SearchedPools):
            shortest = min(given.lists.shape[1] for given in self.origin)
            if shortest < LIST_LENGTH:
                notes.append(f"The .results have {shortest} names a query, not {LIST_LENGTH}.")
        return (*notes, *limit_notes(self.job, "queries of each task"))


def published_lists(task: PoolTask, found: Mapped) -> Arrays:
    """The published lists of what was found for a task: codes in order, the query first."""
    references = TopK.from_arrays(found.read(0)).reference[task.start : task.stop]
    lists = np.where(references == NO_REFERENCE, NO_PATCH, references)
    return {"lists": query_first(lists, task.content.queries)}


def _result_file(task: PoolTask, lists: Arrays) -> bytes:
    """The `.results` file of a task in the published layout."""
    return files.write_names(task.content, lists["lists"])


def given_lists(given: GivenLists) -> Arrays:
    """The lists of a finished file, as they are."""
    return {"lists": given.lists}


def score_lists(task: PoolTask, lists: Arrays) -> Arrays:
    """What is relevant in the list of each query, and its AP, for images and for patches."""
    found = lists["lists"][:, 1:]
    image = among(image_of(found), image_of(task.clusters))
    patch = among(found, task.clusters)
    return {"image": image, "patch": patch, "image_ap": found_ap(image), "patch_ap": found_ap(patch)}


def query_curve_file(task: PoolTask, scores: Arrays) -> bytes:
    """PR points of every query of a task, for images and for patches, as Parquet."""
    queries, length = scores["image"].shape
    rank = np.tile(np.arange(length + 1), queries)
    columns: dict[str, NDArray[np.generic]] = {"query": np.repeat(task.signatures, length + 1), "rank": rank}
    for kind in QUERY_KINDS:
        found = np.pad(np.cumsum(scores[kind], axis=1, dtype=np.int64), ((0, 0), (1, 0)))
        columns[f"{kind}_recall"] = (found / np.maximum(found[:, -1:], 1)).ravel()
        columns[f"{kind}_precision"] = np.where(rank > 0, found.ravel() / np.maximum(rank, 1), 1.0)
    return write_parquet(columns)


def query_file(name: str, tasks: Sequence[PoolTask], scores: Mapped) -> bytes:
    """The AP of every query of all tasks, as one Parquet file."""
    every = [scores.read(number) for number in range(len(tasks))]
    columns: dict[str, NDArray[np.generic]] = {
        "task": np.repeat([task.name for task in tasks], [len(arrays["image_ap"]) for arrays in every]),
        "query": np.concatenate([task.signatures for task in tasks]),
        **{f"{kind}_ap": np.concatenate([arrays[f"{kind}_ap"] for arrays in every]) for kind in QUERY_KINDS},
    }
    return write_parquet(columns)


FIGURES = (
    Figure(
        "image_map",
        "mean over queries of the TREC AP over the 50 nearest, relevant = from an image of the query's cluster",
    ),
    Figure("patch_map", "relevant = in the cluster. AP is over the relevant ones among the 50"),
)
COLUMNS = ("task", "queries", *columns_of(FIGURES))
SEED_COLUMNS = ("group", "tasks", "queries", *columns_of(FIGURES))
FRACTIONS = fractions_of(FIGURES)
NOTES = (note_of(FIGURES),)


def mean_figures(scores: Arrays, compat: str | None) -> tuple[float, float]:
    """The mean AP over the queries of a task, of images and of patches; `hbench` counts one query too many."""
    extra = int(compat == "hbench")
    image, patch = (float(scores[f"{kind}_ap"].sum() / (len(scores[f"{kind}_ap"]) + extra)) for kind in QUERY_KINDS)
    return image, patch


def _task_rows(tasks: Sequence[PoolTask], means: Sequence[tuple[float, float]]) -> tuple[tuple[Cell, ...], ...]:
    """A row per task: its queries and figures."""
    return tuple((task.name, len(task.content.queries), *mean) for task, mean in zip(tasks, means, strict=True))


def _seed_rows(tasks: Sequence[PoolTask], means: Sequence[tuple[float, float]]) -> tuple[tuple[Cell, ...], ...]:
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


def _view_table(tasks: Sequence[PoolTask], scored: Sequence[Arrays]) -> Table:
    """Means over all queries of all tasks."""
    content = [task.content for task in tasks]
    labels = [label for own in content for label in query_labels(own.pool, image_of(own.queries))]
    figures = np.concatenate([np.stack([arrays[f"{kind}_ap"] for kind in QUERY_KINDS], axis=1) for arrays in scored])
    return mean_view_table("queries", FIGURES, labels, figures)


BENCHMARK = Benchmark(
    name="hbench-retrieval",
    options=RetrievalOptions,
    prepare=prepare,
    keys=("task",),
    figures=columns_of(FIGURES),
    fractions=FRACTIONS,
    gallery=stored_cases,
)
