"""The truth of HPatches 2016 classification: tasks, their lists of pairs, and labels from wherever they stand.

Labels may come with the `.pairs` (first revision), in `X.labels` (later revision) and in `.results`; where several are
there they must agree. Everything that is wrong is noted, file by file, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.inputs import HBenchOptions, chosen_tasks, find_folder
from raybench.benchmarks.job import Job
from raybench.benchmarks.patches import read_files
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats import hbench as files
from raybench.formats.hbench import Distances, PatchPairs

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class TaskFiles:
    """What the tasks' folder says: the lists of each sound task, the pairs of each list, and the labels of tasks."""

    folder: str
    lists: dict[str, tuple[str, ...]]
    pairs: dict[str, PatchPairs]
    labels: dict[str, NDArray[np.bool_]]
    digest: str


@dataclass(frozen=True)
class ResultFiles:
    """What the results' folder says: distances by list or by task."""

    folder: str
    distances: dict[str, Distances]
    digest: str


@dataclass(frozen=True)
class Segment:
    """Consecutive pairs with a name: a `.pairs` list, or a whole task where only that has a `.results` file.

    `lengths` are those of the lists in it; of each the first `limit` pairs count. `start` is the position of the first
    of them among all pairs of the run.
    """

    name: str
    lengths: tuple[int, ...]
    limit: int | None
    start: int

    @property
    def positions(self) -> NDArray[np.int64]:
        """The lines that count, from zero."""
        starts = np.cumsum([0, *self.lengths])
        kept = [np.arange(start, start + n) for start, n in zip(starts, self._kept(), strict=False)]
        return np.concatenate(kept).astype(np.int64)

    @property
    def stop(self) -> int:
        return self.start + sum(self._kept())

    def _kept(self) -> list[int]:
        return [length if self.limit is None else min(length, self.limit) for length in self.lengths]


@dataclass(frozen=True)
class Task:
    """A `.benchmark`: its segments in file order and the truth of all its pairs that count."""

    name: str
    segments: tuple[Segment, ...]
    positive: NDArray[np.bool_]


def read_task_files(job: Job[HBenchOptions], problems: ProblemList) -> TaskFiles:
    """Read the `.benchmark`, `.pairs` and `.labels` files of the chosen tasks."""
    assert job.options.benchmarks is not None
    folder, entries = find_folder(job.options.benchmarks, "classification", ["*.benchmark"])
    tasks = chosen_tasks(entries, job.options.task, folder)
    lists, seen = read_files(folder, [f"{task}.benchmark" for task in tasks], files.read_list_names, problems)
    pair_files = list(dict.fromkeys(name for names in lists.values() for name in names))
    pairs, seen_pairs = read_files(folder, [name for name in pair_files if name in entries], files.read_pairs, problems)
    label_files = [f"{task}.labels" for task in tasks if f"{task}.labels" in entries]
    labels, seen_labels = read_files(folder, label_files, files.read_labels, problems)
    for name, found in pairs.items():
        if not len(found):
            problems.add(f"{folder}/{name}.pairs: empty; expected patch_a,patch_b[,label] a line")
    if not job.options.results:
        for task, names in lists.items():
            for name in names:
                if name not in entries:
                    problems.add(f"{folder}/{task}.benchmark: names {name}, which is not in {folder}")
    stems = {task: tuple(name.removesuffix(".pairs") for name in names) for task, names in lists.items()}
    readable = {**seen_pairs, **seen_labels}
    for task, names in lists.items():
        listed = () if job.options.results else names
        needed = [name for name in (*names, f"{task}.labels") if name in entries or name in listed]
        if not all(name in readable for name in needed):
            del stems[task]  # what is wrong with it is noted; what would follow from that is not
    return TaskFiles(folder, stems, pairs, labels, digest_of(seen, seen_pairs, seen_labels))


def read_result_files(uri: str, tasks: TaskFiles, problems: ProblemList, skip: bool) -> ResultFiles:
    """Read the `.results` files of the tasks: those of the lists where all are there, else the task's own."""
    names = list(dict.fromkeys([*(stem for stems in tasks.lists.values() for stem in stems), *tasks.lists]))
    folder, entries = find_folder(uri, "classification", [f"{name}.results" for name in names])
    wanted = []
    for task, stems in tasks.lists.items():
        if all(f"{stem}.results" in entries for stem in stems):
            wanted += [f"{stem}.results" for stem in stems]
        elif f"{task}.results" in entries:
            wanted.append(f"{task}.results")
        else:
            missing = ", ".join(f"{stem}.results" for stem in stems)
            problems.add(f"{folder}: no results of task {task}; expected {missing}, or {task}.results")
    parse = partial(files.read_distances, allow_nan=skip)
    distances, seen = read_files(folder, list(dict.fromkeys(wanted)), parse, problems)
    return ResultFiles(folder, distances, digest_of(seen))


def build_tasks(
    files_of_tasks: TaskFiles, results: ResultFiles | None, limit: int | None, problems: ProblemList
) -> tuple[tuple[Task, ...], tuple[Segment, ...]]:
    """Tasks with their truth, and the segments that they share, laid one behind the other."""
    segments: dict[tuple[bool, str], Segment] = {}
    truths: dict[tuple[bool, str], tuple[str, Flags]] = {}
    tasks = []
    for task, stems in files_of_tasks.lists.items():
        by_list = results is None or all(stem in results.distances for stem in stems)
        if not by_list and results is not None and task not in results.distances:
            continue  # noted where its results were looked for
        with problems.noting():
            own = []
            for name in stems if by_list else (task,):
                lengths = _lengths(name, (name,) if by_list else stems, task, files_of_tasks, results)
                start = max((segment.stop for segment in segments.values()), default=0)
                own.append(segments.setdefault((by_list, name), Segment(name, lengths, limit, start)))
            positive = _agreed_labels(task, own, files_of_tasks, results)
            offset, kept = 0, []
            for segment in own:
                truth = positive[offset : offset + sum(segment.lengths)]
                other, known = truths.setdefault((by_list, segment.name), (task, truth))
                if not np.array_equal(known, truth):
                    line = int(np.flatnonzero(known != truth)[0]) + 1
                    raise DataError(f"{segment.name}: line {line}: label differs between tasks {other} and {task}")
                kept.append(segment.positions + offset)
                offset += sum(segment.lengths)
            tasks.append(Task(task, tuple(own), positive[np.concatenate(kept)]))
    return tuple(tasks), tuple(segments.values())


def _lengths(
    name: str, stems: Sequence[str], task: str, tasks: TaskFiles, results: ResultFiles | None
) -> tuple[int, ...]:
    """Pairs in each list of a segment; its `.results` file must have as many lines."""
    known = [len(tasks.pairs[stem]) for stem in stems if stem in tasks.pairs]
    if len(known) < len(stems):
        known = [len(tasks.labels[task])] if len(stems) > 1 and task in tasks.labels else []
    if results is None:
        return tuple(known)
    lines = len(results.distances[name].distances)
    if known and lines != sum(known):
        raise DataError(f"{results.folder}/{name}.results: {lines:,} lines, expected {sum(known):,}, one a pair")
    return tuple(known) or (lines,)


def _agreed_labels(task: str, segments: Sequence[Segment], tasks: TaskFiles, results: ResultFiles | None) -> Flags:
    """The one truth that all sources of labels tell; each covers a run of the task's pairs."""
    expected = sum(sum(segment.lengths) for segment in segments)
    if not expected:
        raise DataError(f"{tasks.folder}/{task}.benchmark: no pairs at all")
    sources = _label_sources(task, segments, tasks, results)
    truth, origin = np.zeros(expected, np.bool_), np.full(expected, -1)
    for number, (name, start, length, labels) in enumerate(sources):
        if len(labels) != length:
            raise DataError(f"{name}: {len(labels):,} labels, expected {length:,}, one a pair")
        run = slice(start, start + length)
        differing = np.flatnonzero((origin[run] >= 0) & (truth[run] != labels))
        if len(differing):
            other = sources[origin[run][differing[0]]][0]
            raise DataError(f"{name}: line {differing[0] + 1}: label differs from that in {other}")
        truth[run], origin[run] = labels, number
    if (origin < 0).any():
        raise DataError(
            f"{tasks.folder}/{task}.benchmark: no labels; expected a third column in .pairs or {task}.labels"
        )
    return truth


def _label_sources(
    task: str, segments: Sequence[Segment], tasks: TaskFiles, results: ResultFiles | None
) -> list[tuple[str, int, int, Flags]]:
    """Every file with labels: its name, where its pairs start in the task, how many there must be, and the labels."""
    whole = sum(sum(segment.lengths) for segment in segments)
    sources = []
    lengths = [length for segment in segments for length in segment.lengths]
    if len(lengths) == len(tasks.lists[task]):  # else a list's place in the task is not known
        starts = np.cumsum([0, *lengths]).tolist()
        for stem, start, length in zip(tasks.lists[task], starts, lengths, strict=False):
            labels = tasks.pairs[stem].labels if stem in tasks.pairs else None
            if labels is not None:
                sources.append((f"{tasks.folder}/{stem}.pairs", start, length, labels))
    if task in tasks.labels:
        sources.append((f"{tasks.folder}/{task}.labels", 0, whole, tasks.labels[task]))
    if results is not None:
        start = 0
        for segment in segments:
            labels = results.distances[segment.name].labels
            if labels is not None:
                sources.append((f"{results.folder}/{segment.name}.results", start, sum(segment.lengths), labels))
            start += sum(segment.lengths)
    return sources
