"""The truth of HPatches 2016 retrieval: tasks, their pools and queries, and the cluster of each query.

The clusters are `X.labels` where that is there, else the same patch in the pool's images of the query's sequence.
Everything that is wrong is noted, file by file, before anything is computed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.inputs import HBenchOptions, chosen_tasks, find_folder
from raybench.benchmarks.job import Job
from raybench.benchmarks.patches import read_files
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats import hbench_retrieval as files
from raybench.formats.hbench_retrieval import NO_PATCH, Codes, RetrievalTask, image_of, patch_code, patch_of, signature
from raybench.search.neighbours import PoolQueries
from raybench.sources.patches import Source, items_of

LIST_LENGTH = 51  # the query and the 50 that are scored
GROUP = re.compile(r"(.+_\d+s)_\d+")  # <train|test>_<easy|hard>_<n>s_<seed>


@dataclass(frozen=True)
class Task:
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
        found = GROUP.fullmatch(self.name)
        return found[1] if found else None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a digest needs of it."""
        return self.name, self.content.pool, self.content.queries, self.clusters


@dataclass(frozen=True)
class TaskFiles:
    """What the tasks' folder says: the content of each sound task, and the clusters of those that have labels."""

    folder: str
    tasks: dict[str, RetrievalTask]
    labels: dict[str, Codes]
    digest: str


@dataclass(frozen=True)
class ResultFiles:
    """Where the `.results` are, the whole content of each task, and how many names a query has at most."""

    folder: str
    tasks: dict[str, RetrievalTask]
    length: int
    digest: str


def read_task_files(job: Job[HBenchOptions], problems: ProblemList) -> TaskFiles:
    """Read the `.benchmark` and `.labels` files of the chosen tasks."""
    assert job.options.benchmarks is not None
    folder, entries = find_folder(job.options.benchmarks, "retrieval", ["*.benchmark"])
    chosen = chosen_tasks(entries, job.options.task, folder)
    tasks, seen = read_files(folder, [f"{name}.benchmark" for name in chosen], files.read_retrieval_task, problems)
    label_files = [f"{name}.labels" for name in tasks if f"{name}.labels" in entries]
    labels, seen_labels = read_files(
        folder, label_files, lambda data, uri: _read_clusters(data, uri, tasks[_stem(uri)]), problems
    )
    for name in label_files:
        if name not in seen_labels:
            del tasks[name.removesuffix(".labels")]  # what is wrong with it is noted
    return TaskFiles(folder, tasks, labels, digest_of(seen, seen_labels))


def read_result_files(uri: str, tasks: TaskFiles, problems: ProblemList) -> ResultFiles:
    """Read the tasks' `.results` files and note what is wrong with them."""
    folder, entries = find_folder(uri, "retrieval", [f"{name}.results" for name in tasks.tasks])
    for name in tasks.tasks:
        if f"{name}.results" not in entries:
            problems.add(f"{folder}: no results of task {name}; expected {name}.results")
    there = [f"{name}.results" for name in tasks.tasks if f"{name}.results" in entries]
    lists, seen = read_files(folder, there, lambda data, uri: read_lists(data, uri, tasks.tasks[_stem(uri)]), problems)
    shortest = min((found.shape[1] for found in lists.values()), default=LIST_LENGTH)
    return ResultFiles(folder, tasks.tasks, shortest, digest_of(seen))


def read_lists(data: bytes, name: str, task: RetrievalTask) -> Codes:
    """A `.results` file: 51 names a query, itself first; fewer only where all have as many, as a small pool gives."""
    lists = files.read_names(data, name, task)
    if lists.shape[1] > LIST_LENGTH:
        longest = int((lists != NO_PATCH).sum(axis=1).argmax())
        raise DataError(f"{name}: line {longest + 2}: {lists.shape[1]} names, expected {LIST_LENGTH}")
    short = np.flatnonzero((lists == NO_PATCH).any(axis=1))
    if len(short):
        count = int((lists[short[0]] != NO_PATCH).sum())
        raise DataError(f"{name}: line {short[0] + 2}: {count} names, other lines have {lists.shape[1]}")
    other = np.flatnonzero(lists[:, 0] != task.queries)
    if len(other):
        query = signature(task.pool, int(task.queries[other[0]]))
        raise DataError(
            f"{name}: line {other[0] + 2}: expected the query {query} first, found "
            f"{signature(task.pool, int(lists[other[0], 0]))} ({len(other):,} such lines)"
        )
    return lists


def build_tasks(tasks: TaskFiles, limit: int | None) -> tuple[Task, ...]:
    """The tasks with their truth, their queries numbered one after the other."""
    built: list[Task] = []
    for name, content in tasks.tasks.items():
        clusters = tasks.labels[name] if name in tasks.labels else _clusters(content)
        kept = RetrievalTask(content.pool, content.queries[:limit])
        built.append(Task(name, kept, clusters[:limit], built[-1].stop if built else 0))
    return tuple(built)


def located_pools(tasks: Sequence[Task], folder: str, source: Source, problems: ProblemList) -> tuple[PoolQueries, ...]:
    """The pools with images as items of the source; names and indices that are not there are noted."""
    items = items_of(source, sorted({image for task in tasks for image in task.content.pool}), problems)
    counts = source.counts(items.values(), problems)
    pools = []
    for task in tasks:
        pool = task.content.pool
        images = np.array([items.get(image, -1) for image in pool], np.int32)
        count = np.array([counts.get(int(item), np.iinfo(np.int32).max) for item in images], np.int64)
        place, patch = image_of(task.content.queries), patch_of(task.content.queries)
        beyond = np.flatnonzero(patch >= count[place])
        if len(beyond):
            line = int(beyond[0])
            problems.add(
                f"{folder}/{task.name}.benchmark: line {line + 2}: patch "
                f"{signature(pool, int(task.content.queries[line]))} is out of range; {pool[place[line]]} has "
                f"{count[place[line]]} patches ({len(beyond):,} such lines)"
            )
        first = patch_code(np.arange(len(pool)), np.zeros(len(pool), np.int64))
        pools.append(PoolQueries(images, first, images[place], patch.astype(np.int32), task.start))
    return tuple(pools)


def _read_clusters(data: bytes, name: str, task: RetrievalTask) -> Codes:
    clusters = files.read_names(data, name, task)
    other = np.flatnonzero((clusters != task.queries[:, None]).all(axis=1))
    if len(other):
        query = signature(task.pool, int(task.queries[other[0]]))
        raise DataError(f"{name}: line {other[0] + 2}: the query {query} is not in its own cluster")
    return clusters


def _clusters(task: RetrievalTask) -> Codes:
    """`SEQ.*.K` over the pool's images of the query's sequence."""
    sequences = np.array([image.split("/")[0] for image in task.pool])
    same = sequences == sequences[image_of(task.queries)][:, None]  # (queries, pool images)
    code = patch_code(np.arange(len(sequences))[None, :], patch_of(task.queries)[:, None])
    return np.where(same, code, NO_PATCH)


def _stem(uri: str) -> str:
    return posixpath.basename(uri).rpartition(".")[0]
