"""HPatches 2016, image and patch retrieval: the 50 patches of a pool that are nearest to a query.

Follows the HBench toolbox (branch av): TREC AP over the relevant ones among the 50, 0 if there are none. Equal
distances keep pool order; then the query is swapped into the first place. The toolbox averages n queries over n + 1
(a leading zero); here the mean is over n unless `--compat hbench` asks for theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.cases import retrieval_cases
from raybench.benchmarks.hbench.pools import GivenLists, PoolTask, given_tasks, located_pools, pool_tasks
from raybench.benchmarks.hbench.views import mean_view_table, query_labels
from raybench.benchmarks.job import Benchmark, Job, Outcome, limit_notes
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import DescribedPatches
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, tie_tables, tied_figures
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList, Problems
from raybench.extract.trials import NoTrial, Trial
from raybench.formats import hbench_retrieval as files
from raybench.formats.hbench_retrieval import (
    LIST_LENGTH,
    NO_PATCH,
    image_of,
)
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.metrics.ranking import found_ap
from raybench.metrics.retrieval import among, list_ties, query_first
from raybench.metrics.samples import FigureOf, MeanSample, Units
from raybench.search.neighbours import PoolQueries, search_pools
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of

KNOWN_BEYOND = 14  # neighbours behind a list, which a tie at its end may bring into it
QUERY_KINDS = ("image", "patch")  # what a query may look for; the scores of each are under its name


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
    tasks = pool_tasks(found, job.limit)
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
        origin, digests = given_tasks(tasks, results), {"results": results.digest}
    elif patches is not None:
        pools = located_pools(tasks, found.folder, patches.source, problems)
        origin, digests = SearchedPools(patches, pools), patches.digests
    else:
        raise Problems(problems.lines)
    problems.check()
    return HBenchRetrieval(job, tasks, origin, {"benchmarks": found.digest, **digests})


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
            found = search_pools(
                run, features, pools, LIST_LENGTH + KNOWN_BEYOND, patches.distance, self.job.shard_size
            )
            lists = run.each(published_lists, self.tasks, run.fold(found, TopK), version=2)
            run.write(hbench.results_pattern("retrieval", patches), _result_file, self.tasks, lists)
        else:
            lists = run.each(given_lists, self.origin, version=1)
        scores = run.each(score_lists, self.tasks, lists, version=2)
        samples = run.each(sample_queries, self.tasks, scores, self.job.options.compat, version=1)
        write_samples(run, self.tasks, samples)
        run.write("curves/{name}.parquet", query_curve_file, self.tasks, scores)
        run.write("tables/{name}.parquet", query_file, ["per_query"], self.tasks, scores.whole)
        scored = run.read_each(scores)
        means = [mean_figures(arrays, self.job.options.compat) for arrays in scored]
        table = Table("hbench_retrieval", COLUMNS, _task_rows(self.tasks, means), FRACTIONS, self._notes())
        seeds = _seed_rows(self.tasks, means)
        further = (Table("seeds", SEED_COLUMNS, seeds, FRACTIONS),) if seeds else ()
        drawn = self.origin if isinstance(self.origin, SearchedPools) else None
        pictures = retrieval_cases(run, drawn, self.tasks, [patch for _, patch in means], lists, scores)
        ties = tie_tables(run, _ties(self.tasks, scored, self.job.options.compat))
        further = (*further, _view_table(self.tasks, scored), *ties)
        return Outcome(table, further, pictures=pictures, samples=RunSamples("sequences", (samples,)))

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
    """The published lists of what was found for a task: codes in order, the query first.

    `beyond` are the next ones, `distance` goes with both: to see what ties do.
    """
    top, rows = TopK.from_arrays(found.read(0)), slice(task.start, task.stop)
    references, distance = top.reference[rows], top.distance[rows].copy()
    every = np.where(references == NO_REFERENCE, NO_PATCH, references)
    lists, beyond = np.split(every, [LIST_LENGTH], axis=1)
    is_query = task.content.queries[:, None]
    query, place = np.nonzero(lists == is_query)
    distance[query, place] = distance[query, 0]  # of what the query changes places with
    return {
        "lists": query_first(lists, task.content.queries),
        "beyond": np.where(beyond == is_query, NO_PATCH, beyond),
        "distance": distance,
    }


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
    arrays = {"image": image, "patch": patch, "image_ap": found_ap(image), "patch_ap": found_ap(patch)}
    if "distance" in lists:  # finished lists have none
        beyond, length = lists["beyond"], found.shape[1]
        members = np.count_nonzero(task.clusters != NO_PATCH, axis=1)
        known = {
            "image": (image, among(image_of(beyond), image_of(task.clusters)), np.full(len(found), LIST_LENGTH)),
            "patch": (patch, among(beyond, task.clusters), members),
        }
        for kind, (relevant, further, more) in known.items():
            ties = list_ties(np.concatenate([relevant, further], axis=1), lists["distance"][:, 1:], length, more)
            arrays |= {f"{kind}_worst": ties.worst, f"{kind}_best": ties.best}
    return arrays


def sample_queries(task: PoolTask, scores: Arrays, compat: str | None) -> Arrays:
    """The AP of a task's queries as a sample; those of one sequence are not independent.

    With `hbench` values are scaled to n / (n + 1), so that their mean is the published tool's.
    """
    values = np.stack([scores[f"{kind}_ap"] for kind in QUERY_KINDS], axis=1)
    images = np.array([image.partition("/")[0] for image in task.content.pool])[image_of(task.content.queries)]
    names, unit = np.unique(images, return_inverse=True)
    scale = len(values) / (len(values) + int(compat == "hbench"))
    units = Units.plain(names.tolist())
    return MeanSample(_places(task), units, unit.astype(np.int32), values * scale).to_arrays()


def _places(task: PoolTask) -> tuple[FigureOf, ...]:
    return tuple(FigureOf(task.name, column) for column in columns_of(FIGURES))


def _ties(tasks: Sequence[PoolTask], scored: Sequence[Arrays], compat: str | None) -> Iterator[TiedFigure]:
    """What ties do to the figures of each task; tied are queries. Of finished lists nothing is known."""
    for task, arrays in zip(tasks, scored, strict=True):
        if "image_worst" in arrays:
            value, worst, best = (mean_figures(arrays, compat, case) for case in ("ap", "worst", "best"))
            moved = [np.count_nonzero(arrays[f"{kind}_best"] > arrays[f"{kind}_worst"]) for kind in QUERY_KINDS]
            found = {"worst": np.array(worst), "best": np.array(best), "tied": np.array(moved)}
            yield from tied_figures(_places(task), value, found)


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


def mean_figures(scores: Arrays, compat: str | None, case: str = "ap") -> tuple[float, float]:
    """The mean AP over the queries of a task, of images and of patches; `hbench` counts one query too many."""
    extra = int(compat == "hbench")
    values = [scores[f"{kind}_{case}"] for kind in QUERY_KINDS]
    image, patch = (float(own.sum() / (len(own) + extra)) for own in values)
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
