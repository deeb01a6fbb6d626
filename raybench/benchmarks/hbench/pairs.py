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

from raybench.benchmarks.hbench.inputs import HBenchOptions, ResultFiles, read_result_files, read_task_files
from raybench.benchmarks.job import Job
from raybench.benchmarks.patches import read_files
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats import hbench as files
from raybench.formats.hbench import Distances, PatchPairs
from raybench.metrics.ranking import Flags

GivenResults = ResultFiles[Distances] | None  # None: distances are to be measured
Parts = Sequence[tuple[str, tuple[int, ...]]]  # of a task: names with the lengths of their lists


@dataclass(frozen=True)
class PairLists:
    """What the folder of tasks says: the lists of each sound task, the pairs of each list, and the labels of tasks."""

    folder: str
    tasks: dict[str, tuple[str, ...]]
    pairs: dict[str, PatchPairs]
    labels: dict[str, Flags]
    digest: str


@dataclass(frozen=True)
class Segment:
    """Consecutive pairs with a name: a `.pairs` list, or a whole task where only that has a `.results` file.

    `lengths` are those of the lists in it; of each the first `limit` pairs count, and `positive` is their truth.
    `start` is the position of the first of them among all pairs of the run.
    """

    name: str
    lengths: tuple[int, ...]
    limit: int | None
    start: int
    positive: Flags

    @property
    def stop(self) -> int:
        return self.start + len(self.positive)

    @property
    def positions(self) -> NDArray[np.int64]:
        """The lines that count, from zero."""
        return _counted(self.lengths, self.limit)


@dataclass(frozen=True)
class PairTask:
    """A `.benchmark`: its segments in the order of the file."""

    name: str
    segments: tuple[Segment, ...]

    @property
    def positive(self) -> Flags:
        """The truth of all its pairs that count."""
        return np.concatenate([segment.positive for segment in self.segments])

    def of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The task's own values of those of all pairs of the run."""
        return np.concatenate([values[segment.start : segment.stop] for segment in self.segments])


def read_pair_lists(root: str, job: Job[HBenchOptions], problems: ProblemList) -> PairLists:
    """Read the `.benchmark`, `.labels` and `.pairs` of the chosen tasks; with `--results` lists need not be there."""
    found = read_task_files(root, "classification", job.options.task, files.read_list_names, _read_labels, problems)
    folder, needs_lists = found.folder, not job.options.results
    listed = list(dict.fromkeys(name for names in found.every.values() for name in names))
    pairs, seen = read_files(folder, [name for name in listed if name in found.files], files.read_pairs, problems)
    for stem, read in pairs.items():
        if not len(read):
            problems.add(f"{folder}/{stem}.pairs: empty; expected patch_a,patch_b[,label] a line")
    for task, names in found.every.items() if needs_lists else ():
        for name in names:
            if name not in found.files:
                problems.add(f"{folder}/{task}.benchmark: names {name}, which is not in {folder}")
    tasks = {
        task: tuple(name.removesuffix(".pairs") for name in names)
        for task, names in found.sound.items()
        if all(name in seen or (name not in found.files and not needs_lists) for name in names)
    }  # what is wrong with the others is noted; what would follow from that is not
    return PairLists(folder, tasks, pairs, found.labels, digest_of(found.digest, seen))


def _read_labels(data: bytes, name: str, lists: tuple[str, ...]) -> Flags:
    return files.read_labels(data, name)  # their number is checked once that of the pairs is known


def read_pair_results(job: Job[HBenchOptions], lists: PairLists, problems: ProblemList) -> GivenResults:
    """The `.results` of each task with `--results`: those of its lists where all are there, else its own."""
    if not job.options.results:
        return None
    choices = {task: (stems, (task,)) for task, stems in lists.tasks.items()}
    parse = partial(files.read_distances, allow_nan=job.skip_bad_input)
    return read_result_files(
        job.options.results, "classification", choices, lambda data, uri, _: parse(data, uri), problems
    )


def pair_tasks(
    lists: PairLists, results: GivenResults, limit: int | None, problems: ProblemList
) -> tuple[tuple[PairTask, ...], tuple[Segment, ...]]:
    """Tasks with their truth, and the segments that they share, laid one behind the other."""
    segments: dict[tuple[bool, str], Segment] = {}
    truths: dict[tuple[bool, str], tuple[str, Flags]] = {}
    tasks = []
    for task, stems in lists.tasks.items():
        by_list = results is None or all(stem in results.parsed for stem in stems)
        if not by_list and results is not None and task not in results.parsed:
            continue  # noted where its results were looked for
        with problems.noting():
            named = [(stem, (stem,)) for stem in stems] if by_list else [(task, stems)]
            parts = [(name, _lengths(name, own, task, lists, results)) for name, own in named]
            positive = _agreed_labels(task, parts, lists, results)
            own_segments, offset = [], 0
            for name, lengths in parts:
                truth = positive[offset : offset + sum(lengths)]
                other, known = truths.setdefault((by_list, name), (task, truth))
                if not np.array_equal(known, truth):
                    line = int(np.flatnonzero(known != truth)[0]) + 1
                    raise DataError(f"{name}: line {line}: label differs between tasks {other} and {task}")
                start = max((segment.stop for segment in segments.values()), default=0)
                counted = truth[_counted(lengths, limit)]
                segment = Segment(name, lengths, limit, start, counted)
                own_segments.append(segments.setdefault((by_list, name), segment))
                offset += sum(lengths)
            tasks.append(PairTask(task, tuple(own_segments)))
    return tuple(tasks), tuple(segments.values())


def _counted(lengths: Sequence[int], limit: int | None) -> NDArray[np.int64]:
    """The lines that count, of lists that stand one behind the other."""
    starts = np.cumsum([0, *lengths])
    kept = [np.arange(length)[:limit] + start for start, length in zip(starts, lengths, strict=False)]
    return np.concatenate(kept).astype(np.int64)


def _lengths(name: str, stems: Sequence[str], task: str, lists: PairLists, results: GivenResults) -> tuple[int, ...]:
    """Pairs in each list of a segment; its `.results` file must have as many lines."""
    known = [len(lists.pairs[stem]) for stem in stems if stem in lists.pairs]
    if len(known) < len(stems):
        known = [len(lists.labels[task])] if len(stems) > 1 and task in lists.labels else []
    if results is None:
        return tuple(known)
    lines = len(results.parsed[name].distances)
    if known and lines != sum(known):
        raise DataError(f"{results.folder}/{name}.results: {lines:,} lines, expected {sum(known):,}, one a pair")
    return tuple(known) or (lines,)


def _agreed_labels(task: str, parts: Parts, lists: PairLists, results: GivenResults) -> Flags:
    """The one truth that all sources of labels tell; each covers a run of the task's pairs."""
    expected = sum(sum(lengths) for _, lengths in parts)
    if not expected:
        raise DataError(f"{lists.folder}/{task}.benchmark: no pairs at all")
    sources = _label_sources(task, parts, lists, results)
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
            f"{lists.folder}/{task}.benchmark: no labels; expected a third column in .pairs or {task}.labels"
        )
    return truth


def _label_sources(
    task: str, parts: Parts, lists: PairLists, results: GivenResults
) -> list[tuple[str, int, int, Flags]]:
    """Every file with labels: its name, where its pairs start in the task, how many there must be, and the labels."""
    whole = sum(sum(lengths) for _, lengths in parts)
    sources = []
    lengths = [length for _, lengths in parts for length in lengths]
    if len(lengths) == len(lists.tasks[task]):  # else where a list starts in the task is not known
        starts = np.cumsum([0, *lengths]).tolist()
        for stem, start, length in zip(lists.tasks[task], starts, lengths, strict=False):
            labels = lists.pairs[stem].labels if stem in lists.pairs else None
            if labels is not None:
                sources.append((f"{lists.folder}/{stem}.pairs", start, length, labels))
    if task in lists.labels:
        sources.append((f"{lists.folder}/{task}.labels", 0, whole, lists.labels[task]))
    if results is not None:
        start = 0
        for name, own in parts:
            labels = results.parsed[name].labels
            if labels is not None:
                sources.append((f"{results.folder}/{name}.results", start, sum(own), labels))
            start += sum(own)
    return sources
