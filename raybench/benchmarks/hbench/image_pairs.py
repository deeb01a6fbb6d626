"""The truth of HPatches 2016 matching: tasks, their image pairs, and where each patch is found in the other image.

The truth is `X.labels` where that is there, else the identity. Everything that is wrong is noted, file by file, before
anything is computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.inputs import ResultFiles, TaskFiles, read_result_files
from raybench.errors import ProblemList
from raybench.formats import hbench_matching as files
from raybench.formats.hbench_matching import ImagePair, PairMatches
from raybench.search.neighbours import ImagePairs
from raybench.sources.patches import Source, items_of

Truth = NDArray[np.int64] | None  # None: patch K is patch K
MatchingFiles = TaskFiles[tuple[ImagePair, ...], dict[ImagePair, NDArray[np.int64]]]
MatchesByPair = dict[ImagePair, PairMatches]


@dataclass(frozen=True)
class MatchingTask:
    """A `.benchmark`: its pairs that count, the truth of each, and their numbers among all pairs of the run."""

    name: str
    pairs: tuple[ImagePair, ...]
    truth: tuple[Truth, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class GivenMatches:
    """What the `.results` file of a task says of its pairs that count."""

    task: MatchingTask
    matches: tuple[PairMatches, ...]

    @property
    def name(self) -> str:
        return self.task.name


def matching_tasks(found: MatchingFiles, limit: int | None) -> tuple[MatchingTask, ...]:
    """The tasks with their truth, their pairs numbered one after the other."""
    built = []
    start = 0
    for name, every in found.sound.items():
        pairs = every[:limit]
        truth = tuple(_truth(found.labels.get(name, {}).get(pair)) for pair in pairs)
        built.append(MatchingTask(name, pairs, truth, tuple(range(start, start + len(pairs)))))
        start += len(pairs)
    return tuple(built)


def _truth(labels: NDArray[np.int64] | None) -> Truth:
    return None if labels is None or np.array_equal(labels, np.arange(len(labels))) else labels


def read_match_results(root: str, found: MatchingFiles, problems: ProblemList) -> ResultFiles[MatchesByPair]:
    """Read the tasks' `.results` files, and note what does not fit the labels."""
    pairs = found.sound
    results = read_result_files(
        root,
        "matching",
        {task: ((task,),) for task in pairs},
        lambda data, uri, task: files.read_matches(data, uri, pairs[task]),
        problems,
    )
    for task, matches in results.parsed.items():
        for pair, labels in found.labels.get(task, {}).items():
            patches = len(matches[pair].index)
            if len(labels) != patches:
                problems.add(
                    f"{found.folder}/{task}.labels: pair {pair.head}: {len(labels):,} labels, but "
                    f"{results.folder}/{task}.results has {patches:,} patches"
                )
    return results


def given_tasks(tasks: Sequence[MatchingTask], results: ResultFiles[MatchesByPair]) -> tuple[GivenMatches, ...]:
    """The matches of each task that has results, which are all unless something was noted."""
    return tuple(
        GivenMatches(task, tuple(results.parsed[task.name][pair] for pair in task.pairs))
        for task in tasks
        if task.name in results.parsed
    )


def located_tasks(
    tasks: Sequence[MatchingTask], found: MatchingFiles, source: Source, k: int, problems: ProblemList
) -> tuple[tuple[MatchingTask, ...], ImagePairs]:
    """The tasks, and the image pairs to match, each once; names and counts that do not fit are noted."""
    every = [pair for pairs in found.sound.values() for pair in pairs]
    items = items_of(source, sorted({image for pair in every for image in (pair.a, pair.b)}), problems)
    by_item = source.counts(items.values(), problems)
    counts = {image: by_item[item] for image, item in items.items() if item in by_item}
    numbers: dict[tuple[ImagePair, bytes], int] = {}
    listed: list[tuple[ImagePair, Truth]] = []
    built = []
    for task in tasks:
        own = []
        for pair, truth in zip(task.pairs, task.truth, strict=True):
            key = (pair, b"" if truth is None else truth.tobytes())
            if key not in numbers:
                numbers[key] = len(listed)
                listed.append((pair, truth))
            own.append(numbers[key])
        built.append(dataclasses.replace(task, numbers=tuple(own)))
        _check_counts(task.name, found, counts, k, problems)
    a = np.array([items.get(pair.a, -1) for pair, _ in listed], np.int32)
    b = np.array([items.get(pair.b, -1) for pair, _ in listed], np.int32)
    return tuple(built), ImagePairs(a, b, tuple(truth for _, truth in listed))


def _check_counts(task: str, found: MatchingFiles, counts: dict[str, int], k: int, problems: ProblemList) -> None:
    """Every patch must have its true match, and every image at least K patches."""
    for pair in found.every[task]:
        if pair.a not in counts or pair.b not in counts:
            continue  # noted where they were looked for
        queries, targets = counts[pair.a], counts[pair.b]
        labels = found.labels.get(task, {}).get(pair)
        of_pair = f"{found.folder}/{task}.labels: pair {pair.head}"
        if k > targets:
            problems.add(f"--k {k}: {pair.b} has only {targets} patches; give a K that every image has")
        if labels is None and queries > targets:
            problems.add(
                f"{found.folder}/{task}.benchmark: pair {pair.head}: {queries} patches against {targets}; without "
                f"{task}.labels patch K is patch K, so {pair.b} must have as many"
            )
        if labels is not None and len(labels) != queries:
            problems.add(f"{of_pair}: {len(labels):,} labels, but {pair.a} has {queries:,} patches")
        elif labels is not None and labels.max(initial=-1) >= targets:
            problems.add(f"{of_pair}: index {labels.max()} is out of range; {pair.b} has {targets} patches")


def as_indices(truth: Truth, count: int) -> NDArray[np.int64]:
    """The truth of `count` patches as indices."""
    return np.arange(count) if truth is None else truth
