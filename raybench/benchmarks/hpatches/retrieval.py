"""HPatches 2017, patch retrieval: are the five other views of a patch found among distractors?

Follows the HPatches toolbox: for a query (a patch of `ref`) the pool is its five views at one noise level, then the
distractors (patches of `ref`) in file order without those of the query's own sequence, cut to the first k entries, so
that k counts the five. The sort is stable: at equal distance the views lead. Trapezoid AP for each k. Only the ranks of
the five views are needed, hence distractors that are closer are counted, never sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.hpatches import inputs as hpatches
from raybench.benchmarks.hpatches.inputs import EVERY_NUMBER, LEVELS, NUMBERS, TaskFolder
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.patches import read_files
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.formats import hpatches as files
from raybench.formats.hpatches import ReferencePatches
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.partials import Counts, Rows
from raybench.search.closer import Patches, Search, count_closer
from raybench.search.pairs import Pairs, pair_distances
from raybench.table import Cell, Table

COLUMNS = ("split", "noise", "pool", "map")
FRACTIONS = frozenset(("map",))
FILES = ("retr_queries_split-{}.csv", "retr_distractors_split-{}.csv")
POOLS = (100, 500, 1_000, 5_000, 10_000, 15_000, 20_000)
VIEWS = len(NUMBERS) - 1  # positives of a query at one level
NOTES = (
    "map: mean over queries of the trapezoid AP over a pool of the five views and the first distractors (pool counts "
    "both); mean: of the three noise levels.",
)


@dataclass(frozen=True)
class Task:
    """One split: its queries by name, and the search for them."""

    split: str
    queries: ReferencePatches
    search: Search

    @property
    def by_sequence(self) -> dict[str, NDArray[np.int64]]:
        """The places of the queries of each sequence that has some."""
        return _places(np.array(self.queries.sequences)[self.queries.sequence])

    @property
    def by_type(self) -> dict[str, NDArray[np.int64]]:
        """The places of the queries of each type of sequences."""
        types = np.array([hpatches.type_of(name) for name in self.queries.sequences])
        return _places(types[self.queries.sequence])


@dataclass(frozen=True)
class Plan:
    """A job whose files were read and agree with each other."""

    patches: hpatches.Patches
    tasks: tuple[Task, ...]
    views: Pairs
    inputs: dict[str, str]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        queries = sum(len(task.queries) for task in self.tasks)
        distractors = sum(len(task.search.references) for task in self.tasks)
        return f"{self.patches.split_names}: {queries:,} queries, {distractors:,} distractors"

    def execute(self, run: Run) -> Outcome:
        """From features to the tables, in one line of steps."""
        searches = [task.search for task in self.tasks]
        distractors = [search.references.image for search in searches]
        wanted = np.unique(np.concatenate([self.views.a_image, self.views.b_image, *distractors]))
        features = self.patches.features(run, wanted)
        distance, size = self.patches.distance, self.patches.job.shard_size
        near = run.fold(pair_distances(run, features, self.views, distance, size), Rows)
        closer = run.fold(count_closer(run, features, near, searches, distance, size), Counts)
        scores = run.map(Scores(near, closer, self.tasks), len(self.tasks), 1)
        export = Export("per-query", scores.digest, partial(_query_file, scores, self.tasks), ("every query",))
        run.export(export, ["tables/per_query.parquet"])
        main, by_type, by_sequence = _tables(run, scores, self.tasks, self.notes)
        return Outcome(main, (by_type, by_sequence), facts=self.patches.facts)


def prepare(job: Job[hpatches.HPatchesOptions]) -> Plan:
    """Read and check every file that the job rests on; raises all problems together."""
    hpatches.check_inputs(job)
    problems = ProblemList()
    folder: TaskFolder | None = None
    patches: hpatches.Patches | None = None
    lists: dict[str, ReferencePatches] = {}
    seen: dict[str, str] = {}
    with problems.noting():
        folder = hpatches.read_folder(job, FILES, problems)
        names = [pattern.format(split.name) for split in folder.splits for pattern in FILES]
        lists, seen = read_files(folder.uri, names, files.read_patches, problems)
    with problems.noting():
        patches = hpatches.open_patches(job, folder.splits if folder else (), _needed(lists), problems)
    if folder and patches:
        for name, listed in lists.items():
            file = storage.join(folder.uri, f"{name}.csv")
            column = (listed.sequence, 0, listed.patch)
            hpatches.note_out_of_range(file, patches, listed.sequences, column, problems)
    problems.check()
    assert folder is not None and patches is not None
    tasks, views = _laid_out(patches, lists)
    notes = (*NOTES, *_pool_notes(tasks), *folder.notes, *hpatches.post_processing_notes(job))
    inputs = {"tasks": digest_of(folder.digest, seen), **patches.digests}
    return Plan(patches, tasks, views, inputs, (*notes, *hpatches.limit_notes(job, "queries of each split")))


def _needed(lists: dict[str, ReferencePatches]) -> dict[str, frozenset[int]]:
    """Every image of the queries' sequences, `ref` of the distractors'."""
    needed = {name: frozenset({0}) for listed in lists.values() for name in listed.sequences}
    queries = [listed for name, listed in lists.items() if name.startswith("retr_queries")]
    return needed | {name: EVERY_NUMBER for listed in queries for name in listed.sequences}


def _laid_out(patches: hpatches.Patches, lists: dict[str, ReferencePatches]) -> tuple[tuple[Task, ...], Pairs]:
    """The tasks, and the pairs (query, view) of all of them, by query, level and number."""
    tasks, pairs, first = [], [], 0
    for number, split in enumerate(patches.splits):
        queries = lists[f"retr_queries_split-{split.name}"].kept(slice(patches.job.limit))
        distractors = lists[f"retr_distractors_split-{split.name}"]
        images = patches.layout.images(number)
        group, own = (patches.layout.of(listed.sequences)[listed.sequence] for listed in (distractors, queries))
        references = Patches(images[group, 0, 0], distractors.patch, group)
        asked = Patches(images[own, 0, 0], queries.patch, own)
        tasks.append(Task(split.name, queries, Search(asked, references, cuts_of_pools(own, group), first)))
        views = images[own, :, 1:].reshape(len(queries), -1)  # (queries, levels x numbers)
        one = (asked.image, asked.patch)
        repeated = [np.repeat(values, views.shape[1]) for values in one]
        pairs.append((*repeated, views.reshape(-1), repeated[1]))
        first += len(queries)
    return tuple(tasks), Pairs(*(np.concatenate(column) for column in zip(*pairs, strict=True)))


def cuts_of_pools(own: NDArray[np.int32], distractors: NDArray[np.int32]) -> NDArray[np.int64]:
    """(queries, pools): how far down the list of distractors the pool of each query reaches."""
    cuts = np.empty((len(own), len(POOLS)), np.int64)
    for sequence in np.unique(own):
        usable = np.flatnonzero(distractors != sequence)
        ends = np.append(usable + 1, len(distractors))  # where so many usable ones are passed
        reach = np.minimum(np.array(POOLS) - VIEWS - 1, len(usable))
        cuts[own == sequence] = ends[reach]
    return cuts


def _pool_notes(tasks: tuple[Task, ...]) -> tuple[str, ...]:
    short = [task for task in tasks if len(task.search.references) + VIEWS < POOLS[-1]]
    return tuple(
        f"split {task.split}: {len(task.search.references):,} distractors; larger pools hold all there are."
        for task in short
    )


@dataclass(frozen=True)
class Scores:
    """The stage that measures: AP of each query, level and pool, and their means; a split a shard."""

    near: Mapped
    closer: Mapped
    tasks: tuple[Task, ...]

    name = "scores"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        queries = [(task.split, task.queries.sequences, task.queries.sequence) for task in self.tasks]
        return digest_of("hpatches-retrieval", self.version, self.near.digest, self.closer.digest, queries)

    def load(self, shard: Shard) -> tuple[Task, NDArray[np.float64], NDArray[np.int64]]:
        task = self.tasks[shard.start]
        rows = slice(task.search.first, task.search.first + len(task.queries))
        count = sum(len(one.queries) for one in self.tasks)
        near = self.near.read(0)["values"].reshape(count, len(LEVELS), VIEWS)
        closer = self.closer.read(0)["values"].reshape(count, len(LEVELS), VIEWS, len(POOLS))
        return task, near[rows], closer[rows]

    def compute(self, payload: tuple[Task, NDArray[np.float64], NDArray[np.int64]]) -> Arrays:
        task, near, closer = payload
        order = np.argsort(near, axis=2, kind="stable")
        ranks = np.take_along_axis(closer, order[..., None], axis=2).swapaxes(2, 3) + np.arange(1, VIEWS + 1)
        ap = ranking.trapezoid_ap_of_ranks(ranks, VIEWS)  # (queries, levels, pools)
        return {
            "ap": ap,
            "map": ap.mean(axis=0),
            "map_by_type": np.stack([ap[places].mean(axis=0) for places in task.by_type.values()]),
            "map_by_sequence": np.stack([ap[places].mean(axis=0) for places in task.by_sequence.values()]),
        }

    def keys(self, shard: Shard) -> str:
        return f"split {self.tasks[shard.start].split}"


def _query_file(scores: Mapped, tasks: tuple[Task, ...], index: int) -> bytes:
    """The AP of every query, level and pool, as Parquet; there is one such file."""
    parts = [_per_query(task, scores.read(number)["ap"]) for number, task in enumerate(tasks)]
    return write_parquet({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _per_query(task: Task, ap: NDArray[np.float64]) -> Arrays:
    query, level, pool = (axis.reshape(-1) for axis in np.indices(ap.shape))
    return {
        "split": np.full(ap.size, task.split),
        "query": query,
        "sequence": np.array(task.queries.sequences)[task.queries.sequence[query]],
        "patch": task.queries.patch[query],
        "noise": np.array(LEVELS)[level],
        "pool": np.array(POOLS)[pool],
        "ap": ap.reshape(-1),
    }


def _places(names: NDArray[np.str_]) -> dict[str, NDArray[np.int64]]:
    return {str(name): np.flatnonzero(names == name) for name in np.unique(names)}


def _tables(run: Run, scores: Mapped, tasks: tuple[Task, ...], notes: tuple[str, ...]) -> tuple[Table, Table, Table]:
    """The main table, by type and by sequence of the queries."""
    main: list[tuple[Cell, ...]] = []
    by_type: list[tuple[Cell, ...]] = []
    by_sequence: list[tuple[Cell, ...]] = []
    for index, task in enumerate(tasks):
        found = run.read(scores, index)
        main += _rows((task.split,), found["map"])
        for kind, means in zip(task.by_type, found["map_by_type"], strict=True):
            by_type += _rows((task.split, kind), means)
        for sequence, means in zip(task.by_sequence, found["map_by_sequence"], strict=True):
            by_sequence += _rows((task.split, sequence), means)
    return (
        Table("hpatches_retrieval", COLUMNS, tuple(main), FRACTIONS, notes),
        Table("by_type", ("split", "type", *COLUMNS[1:]), tuple(by_type), FRACTIONS),
        Table("by_sequence", ("split", "sequence", *COLUMNS[1:]), tuple(by_sequence), FRACTIONS),
    )


def _rows(group: tuple[str, ...], means: NDArray[np.float64]) -> list[tuple[Cell, ...]]:
    """Pool by pool a row a noise level, then their mean; `means` is (levels, pools)."""
    rows: list[tuple[Cell, ...]] = []
    for pool, levels in zip(POOLS, means.T, strict=True):
        figures = zip((*LEVELS, "mean"), [*levels.tolist(), float(levels.mean())], strict=True)
        rows += [(*group, noise, pool, figure) for noise, figure in figures]
    return rows


BENCHMARK = Benchmark(
    name="hpatches-retrieval",
    summary="HPatches 2017 patch retrieval: trapezoid AP of five views in pools of 100 to 20,000",
    needs=hpatches.NEEDS,
    options=hpatches.HPatchesOptions,
    prepare=prepare,
    fractions=FRACTIONS,
)
