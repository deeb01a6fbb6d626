"""The truth of HPatches 2016 matching: tasks, their image pairs, and where each patch is found in the other image.

The truth is `X.labels` where that is there, else the identity. Everything that is wrong is noted, file by file, before
anything is computed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.inputs import HBenchOptions, chosen_tasks, find_folder
from raybench.benchmarks.job import Job
from raybench.benchmarks.patches import read_files
from raybench.digests import digest_of
from raybench.errors import ProblemList
from raybench.formats import hbench_matching as files
from raybench.formats.hbench_matching import ImagePair
from raybench.search.neighbours import ImagePairs
from raybench.sources.patches import Source, items_of

Truth = NDArray[np.int64] | None  # None: patch K is patch K


@dataclass(frozen=True)
class Task:
    """A `.benchmark`: its pairs that count, the truth of each, and their numbers among all pairs of the run."""

    name: str
    pairs: tuple[ImagePair, ...]
    truth: tuple[Truth, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class TaskFiles:
    """What the tasks' folder says: the pairs of each sound task, and the labels of those that have some."""

    folder: str
    pairs: dict[str, tuple[ImagePair, ...]]
    labels: dict[str, dict[ImagePair, NDArray[np.int64]]]
    digest: str

    def truth(self, task: str, pair: ImagePair) -> Truth:
        """The pair's labels, or None for the identity."""
        given = self.labels.get(task, {}).get(pair)
        return None if given is None or np.array_equal(given, np.arange(len(given))) else given


@dataclass(frozen=True)
class ResultFiles:
    """Where the `.results` are, their digest, and all pairs of each task. They were read once and found good."""

    folder: str
    pairs: dict[str, tuple[ImagePair, ...]]
    digest: str


def read_task_files(job: Job[HBenchOptions], problems: ProblemList) -> TaskFiles:
    """Read the `.benchmark` and `.labels` files of the chosen tasks."""
    assert job.options.benchmarks is not None
    folder, entries = find_folder(job.options.benchmarks, "matching", ["*.benchmark"])
    tasks = chosen_tasks(entries, job.options.task, folder)
    pairs, seen = read_files(folder, [f"{task}.benchmark" for task in tasks], files.read_image_pairs, problems)
    label_files = [f"{task}.labels" for task in pairs if f"{task}.labels" in entries]
    labels, seen_labels = read_files(
        folder, label_files, lambda data, uri: files.read_true_matches(data, uri, pairs[_stem(uri)]), problems
    )
    for name in label_files:
        if name not in seen_labels:
            del pairs[name.removesuffix(".labels")]  # what is wrong with it is noted
    return TaskFiles(folder, pairs, labels, digest_of(seen, seen_labels))


def read_result_files(uri: str, tasks: TaskFiles, problems: ProblemList) -> ResultFiles:
    """Read the tasks' `.results` files, and note what does not fit the labels."""
    folder, entries = find_folder(uri, "matching", [f"{task}.results" for task in tasks.pairs])
    for task in tasks.pairs:
        if f"{task}.results" not in entries:
            problems.add(f"{folder}: no results of task {task}; expected {task}.results")
    there = [f"{task}.results" for task in tasks.pairs if f"{task}.results" in entries]
    matches, seen = read_files(
        folder, there, lambda data, uri: files.read_matches(data, uri, tasks.pairs[_stem(uri)]), problems
    )
    for task, found in matches.items():
        for pair, labels in tasks.labels.get(task, {}).items():
            patches = len(found[pair].index)
            if len(labels) != patches:
                problems.add(
                    f"{tasks.folder}/{task}.labels: pair {pair.head}: {len(labels):,} labels, but "
                    f"{folder}/{task}.results has {patches:,} patches"
                )
    return ResultFiles(folder, tasks.pairs, digest_of(seen))


def tasks_in_files(tasks: TaskFiles, limit: int | None) -> tuple[Task, ...]:
    """The tasks with pairs numbered one after the other, a `.results` file behind the other."""
    built = []
    start = 0
    for name, every in tasks.pairs.items():
        pairs = every[:limit]
        truth = tuple(tasks.truth(name, pair) for pair in pairs)
        built.append(Task(name, pairs, truth, tuple(range(start, start + len(pairs)))))
        start += len(pairs)
    return tuple(built)


def tasks_in_images(
    tasks: TaskFiles, source: Source, limit: int | None, k: int, problems: ProblemList
) -> tuple[tuple[Task, ...], ImagePairs]:
    """The tasks, and the image pairs to match, each once; names and counts that do not fit are noted."""
    every = [pair for pairs in tasks.pairs.values() for pair in pairs]
    items = items_of(source, sorted({image for pair in every for image in (pair.a, pair.b)}), problems)
    counts = source.counts(items.values(), problems)
    patches = {image: counts[item] for image, item in items.items() if item in counts}
    numbers: dict[tuple[ImagePair, bytes], int] = {}
    listed: list[tuple[ImagePair, Truth]] = []
    built = []
    for task in tasks_in_files(tasks, limit):
        own = []
        for pair, truth in zip(task.pairs, task.truth, strict=True):
            key = (pair, b"" if truth is None else truth.tobytes())
            if key not in numbers:
                numbers[key] = len(listed)
                listed.append((pair, truth))
            own.append(numbers[key])
        built.append(Task(task.name, task.pairs, task.truth, tuple(own)))
        _check_counts(task.name, tasks, patches, k, problems)
    a, b = (np.array([items.get(image, -1) for image in side], np.int32) for side in _sides(listed))
    return tuple(built), ImagePairs(a, b, tuple(truth for _, truth in listed))


def _sides(listed: Sequence[tuple[ImagePair, Truth]]) -> tuple[list[str], list[str]]:
    return [pair.a for pair, _ in listed], [pair.b for pair, _ in listed]


def _check_counts(task: str, tasks: TaskFiles, patches: dict[str, int], k: int, problems: ProblemList) -> None:
    """Every patch must have its true match, and every image at least K patches."""
    for pair in tasks.pairs[task]:
        if pair.a not in patches or pair.b not in patches:
            continue  # noted where they were looked for
        queries, targets = patches[pair.a], patches[pair.b]
        labels = tasks.labels.get(task, {}).get(pair)
        if k > targets:
            problems.add(f"--k {k}: {pair.b} has only {targets} patches; give a K that every image has")
        if labels is None and queries > targets:
            problems.add(
                f"{tasks.folder}/{task}.benchmark: pair {pair.head}: {queries} patches against {targets}; without "
                f"{task}.labels patch K is patch K, so {pair.b} must have as many"
            )
        if labels is not None and len(labels) != queries:
            problems.add(
                f"{tasks.folder}/{task}.labels: pair {pair.head}: {len(labels):,} labels, but {pair.a} has {queries:,} "
                "patches"
            )
        elif labels is not None and labels.max(initial=-1) >= targets:
            problems.add(
                f"{tasks.folder}/{task}.labels: pair {pair.head}: index {labels.max()} is out of range; {pair.b} has "
                f"{targets} patches"
            )


def _stem(uri: str) -> str:
    return posixpath.basename(uri).rpartition(".")[0]
