"""The truth of HPatches 2016 classification: tasks, their lists of pairs, and labels from wherever they stand.

Labels may come with the `.pairs` (first revision), in `X.labels` (later revision) and in `.results`; where several are
there they must agree. Everything that is wrong is noted, file by file, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.hbench import chosen_tasks, find_folder
from raybench.benchmarks.job import Job
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, InputError, ProblemList
from raybench.formats import hbench as files
from raybench.formats.hbench import Distances, PatchPairs

T = TypeVar("T")


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


def read_task_files(job: Job, problems: ProblemList) -> TaskFiles:
    """Read the `.benchmark`, `.pairs` and `.labels` files of the chosen tasks."""
    assert job.benchmarks is not None
    folder, entries = find_folder(job.benchmarks, "classification", ["*.benchmark"])
    tasks = chosen_tasks(entries, job.options.get("task"), folder)
    lists, seen = read_files(folder, [f"{task}.benchmark" for task in tasks], files.read_list_names, problems)
    pair_files = list(dict.fromkeys(name for names in lists.values() for name in names))
    pairs, seen_pairs = read_files(folder, [name for name in pair_files if name in entries], files.read_pairs, problems)
    label_files = [f"{task}.labels" for task in tasks if f"{task}.labels" in entries]
    labels, seen_labels = read_files(folder, label_files, files.read_labels, problems)
    for name, found in pairs.items():
        if not len(found):
            problems.add(f"{folder}/{name}.pairs: empty; expected patch_a,patch_b[,label] a line")
    if not job.results:
        for task, names in lists.items():
            for name in names:
                if name not in entries:
                    problems.add(f"{folder}/{task}.benchmark: names {name}, which is not in {folder}")
    stems = {task: tuple(name.removesuffix(".pairs") for name in names) for task, names in lists.items()}
    readable = {**seen_pairs, **seen_labels}
    for task, names in lists.items():
        needed = [name for name in (*names, f"{task}.labels") if name in entries or (name in names and not job.results)]
        if not all(name in readable for name in needed):
            del stems[task]  # what is wrong with it is noted; what would follow from that is not
    return TaskFiles(folder, stems, pairs, labels, digest_of(seen, seen_pairs, seen_labels))


def read_result_files(uri: str, tasks: TaskFiles, problems: ProblemList) -> ResultFiles:
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
    distances, seen = read_files(folder, list(dict.fromkeys(wanted)), files.read_distances, problems)
    return ResultFiles(folder, distances, digest_of(seen))


def build_tasks(
    files_of_tasks: TaskFiles, results: ResultFiles | None, limit: int | None, problems: ProblemList
) -> tuple[tuple[Task, ...], tuple[Segment, ...]]:
    """Tasks with their truth, and the segments that they share, laid one behind the other."""
    segments: dict[str, Segment] = {}
    tasks = []
    for task, stems in files_of_tasks.lists.items():
        by_list = results is None or all(stem in results.distances for stem in stems)
        if not by_list and results is not None and task not in results.distances:
            continue  # noted where its results were looked for
        try:
            own = []
            for name in stems if by_list else (task,):
                lengths = _lengths(name, stems if name == task else (name,), task, files_of_tasks, results)
                start = max((segment.stop for segment in segments.values()), default=0)
                own.append(segments.setdefault(name, Segment(name, lengths, limit, start)))
            positive = _agreed_labels(task, own, files_of_tasks, results)
        except InputError as error:
            problems.add(error)
            continue
        offsets = np.cumsum([0, *(sum(segment.lengths) for segment in own)])
        kept = np.concatenate([segment.positions + at for segment, at in zip(own, offsets, strict=False)])
        tasks.append(Task(task, tuple(own), positive[kept]))
    return tuple(tasks), tuple(segments.values())


def read_files(
    folder: str, names: Sequence[str], parse: Callable[[bytes, str], T], problems: ProblemList
) -> tuple[dict[str, T], dict[str, str]]:
    """The parsed files by stem and their digests by name; what is wrong with one is noted."""

    def one(name: str) -> tuple[T | InputError, str]:
        uri = storage.join(folder, name)
        try:
            data = storage.read(uri)
            return parse(data, uri), digest_of_bytes(data)
        except InputError as error:
            return error, ""

    parsed: dict[str, T] = {}
    digests = {}
    for name, (value, digest) in zip(names, storage.in_parallel(one, names), strict=True):
        if isinstance(value, InputError):
            problems.add(value)
        else:
            parsed[name.rpartition(".")[0]] = value
            digests[name] = digest
    return parsed, digests


def _lengths(
    name: str, stems: Iterable[str], task: str, tasks: TaskFiles, results: ResultFiles | None
) -> tuple[int, ...]:
    """Pairs in each list of a segment; its `.results` file must have as many lines."""
    known = [len(tasks.pairs[stem]) for stem in stems if stem in tasks.pairs]
    if len(known) < len(tuple(stems)):
        known = [len(tasks.labels[task])] if name == task and task in tasks.labels else []
    if results is None:
        return tuple(known)
    lines = len(results.distances[name].distances)
    if known and lines != sum(known):
        raise DataError(f"{results.folder}/{name}.results: {lines:,} lines, expected {sum(known):,}, one a pair")
    return tuple(known) or (lines,)


def _agreed_labels(
    task: str, segments: Sequence[Segment], tasks: TaskFiles, results: ResultFiles | None
) -> NDArray[np.bool_]:
    """The one truth that all sources of labels tell."""
    expected = sum(sum(segment.lengths) for segment in segments)
    sources: list[tuple[str, NDArray[np.bool_]]] = []
    listed = [tasks.pairs[stem].labels for stem in tasks.lists[task] if stem in tasks.pairs]
    in_pairs = [labels for labels in listed if labels is not None]
    if len(in_pairs) == len(tasks.lists[task]):
        sources.append((f"the .pairs of {task}", np.concatenate(in_pairs)))
    if task in tasks.labels:
        sources.append((f"{tasks.folder}/{task}.labels", tasks.labels[task]))
    if results is not None:
        given = [results.distances[segment.name].labels for segment in segments]
        in_results = [labels for labels in given if labels is not None]
        if len(in_results) == len(segments):
            sources.append((f"the .results of {task}", np.concatenate(in_results)))
    if not sources:
        raise DataError(
            f"{tasks.folder}/{task}.benchmark: no labels; expected a third column in .pairs or {task}.labels"
        )
    first_name, first = sources[0]
    for name, labels in sources:
        if len(labels) != expected:
            raise DataError(f"{name}: {len(labels):,} labels, expected {expected:,}, one a pair")
        differing = np.flatnonzero(labels != first)
        if len(differing):
            raise DataError(f"{name}: line {differing[0] + 1}: label differs from that in {first_name}")
    return first
