"""Views of HPatches 2016 classification: the figures of each task by noise level, by change and by sequence of pairs.

`pair_groups` says where a pair between two sequences belongs. The noise of a pair is the level of its two images, `ref`
going with any; a pair of two levels, or of two `ref`, is in no group. Groups are ranked by themselves, as tasks are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.pairs import Task, TaskFiles
from raybench.benchmarks.hbench.views import CHANGES, LEVELS, labels_of
from raybench.benchmarks.pair_groups import RULE, Groups, PairSequences, small_kind
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.formats.hbench import PatchPairs
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.ranking import Flags
from raybench.table import Cell, Table

FIGURES = ("ap", "auc", "ap_balanced", "auc_balanced")
COLUMNS = ("task", "view", "group", "pairs", "positives", "between", *FIGURES)
VIEWS = ("noise", "change", "sequence")
NOTES = (
    "ap, auc, balanced: as in the main table (TREC AP), of each group's own pairs; empty without both kinds of pairs.",
    f"{RULE} noise: the level of both images, ref going with any.",
)
NOISES = tuple(LEVELS.values())
REF, NO_LEVEL = len(NOISES), len(NOISES) + 1


@dataclass(frozen=True)
class PairLabels:
    """Sequences and noise (a number into NOISES, or beyond them: none) of the pairs of a task that count."""

    sequences: PairSequences
    noise: NDArray[np.unsignedinteger]

    def groups(self, view: str) -> Groups:
        if view == "noise":
            return Groups(NOISES, self.noise, np.zeros(len(self.noise), np.bool_))
        if view == "sequence":
            return self.sequences.by_sequence
        kinds = [CHANGES.get(name[:1]) if name[1:2] == "_" else None for name in self.sequences.names]
        return self.sequences.by_kind(kinds)


def pair_labels(task: Task, files: TaskFiles) -> PairLabels | None:
    """The labels of a task's pairs; None if one of its lists is not there (results may come without)."""
    lists = [files.pairs[stem] for stem in files.lists[task.name] if stem in files.pairs]
    if len(lists) < len(files.lists[task.name]):
        return None
    names = sorted({image.partition("/")[0] for pairs in lists for image in pairs.images})
    sides = [_sides(pairs, {name: number for number, name in enumerate(names)}) for pairs in lists]
    starts = np.cumsum([0, *(sum(segment.lengths) for segment in task.segments)])
    kept = np.concatenate([s.positions + start for s, start in zip(task.segments, starts, strict=False)])
    a, b, noise = (np.concatenate(column)[kept] for column in zip(*sides, strict=True))
    return PairLabels(PairSequences.of(names, a, b), noise)


def _sides(pairs: PatchPairs, place: dict[str, int]) -> tuple[NDArray[np.unsignedinteger], ...]:
    """Sequences of both patches, and the noise, of each pair of a list."""
    small = small_kind(len(place))
    sequence = np.array([place[image.partition("/")[0]] for image in pairs.images], small)
    level = np.array([_level(image) for image in pairs.images], np.uint8)
    a, b = level[pairs.a_image], level[pairs.b_image]
    noise = np.where((a == b) | (b == REF), a, np.where(a == REF, b, np.uint8(NO_LEVEL)))
    return sequence[pairs.a_image], sequence[pairs.b_image], noise


def _level(image: str) -> int:
    if image.endswith("/ref"):
        return REF
    noise = labels_of(image).get("noise")
    return NO_LEVEL if noise is None else NOISES.index(noise)


def ranked_pairs(distances: NDArray[np.float64], positive: Flags) -> tuple[Flags, Flags]:
    """Pairs in file order by distance: all of them, and their balanced part."""
    even = ranking.balanced(positive)
    return ranking.by_distance(distances, positive), ranking.by_distance(distances[even], positive[even])


def pair_figures(ranked: tuple[Flags, Flags]) -> list[float]:
    """AP and AUC of all pairs, then of their balanced part."""
    return [figure(flags) for flags in ranked for figure in (ranking.trec_ap, ranking.roc_auc)]


@dataclass(frozen=True)
class Views:
    """The stage that measures groups of pairs, a task a shard: figures and counts by view."""

    distances: Mapped
    tasks: tuple[Task, ...]
    labels: tuple[PairLabels, ...]

    name = "views"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        truth = [(task.name, [(s.start, s.stop) for s in task.segments], task.positive) for task in self.tasks]
        groups = [(own.sequences.names, own.sequences.a, own.sequences.b, own.noise) for own in self.labels]
        return digest_of("hbench-classification", self.name, self.version, self.distances.digest, truth, groups)

    def load(self, shard: Shard) -> int:
        return shard.start

    def compute(self, payload: int) -> Arrays:
        task, labels = self.tasks[payload], self.labels[payload]
        values = self.distances.read(0)["values"]
        distances = np.concatenate([values[s.start : s.stop] for s in task.segments])
        measured = ~np.isnan(distances)  # what was skipped has none
        arrays: Arrays = {"pairs": np.array([np.count_nonzero(measured)], np.int64)}
        for view in VIEWS:
            groups = labels.groups(view)
            members = groups.members(measured)
            figures = [_group_figures(distances[own], task.positive[own]) for own in members]
            counts = [(len(own), task.positive[own].sum(), groups.between[own].sum()) for own in members]
            arrays[f"{view}_figures"] = np.array(figures, np.float64).reshape(-1, len(FIGURES))
            arrays[f"{view}_counts"] = np.array(counts, np.int64).reshape(-1, 3)
        return arrays

    def keys(self, shard: Shard) -> str:
        return f"task {self.tasks[shard.start].name}"


def _group_figures(distances: NDArray[np.float64], positive: Flags) -> list[float]:
    both = positive.any() and not positive.all()
    return pair_figures(ranked_pairs(distances, positive)) if both else [float("nan")] * len(FIGURES)


def view_table(
    run: Run, distances: Mapped, tasks: Sequence[Task], labels: Sequence[PairLabels | None]
) -> tuple[Table, ...]:
    """The views of all tasks whose lists are there; no table if there are none."""
    known = [(task, own) for task, own in zip(tasks, labels, strict=True) if own is not None]
    if not known:
        return ()
    stage = Views(distances, tuple(task for task, _ in known), tuple(own for _, own in known))
    mapped = run.map(stage, len(known), 1)
    rows: list[tuple[Cell, ...]] = []
    without = [task.name for task, own in zip(tasks, labels, strict=True) if own is None]
    notes = [*NOTES, *(f"{name}: no views, since its .pairs are not there." for name in without)]
    for index, (task, own) in enumerate(known):
        arrays = run.read(mapped, index)
        for view in VIEWS:
            found, figures = arrays[f"{view}_counts"].tolist(), arrays[f"{view}_figures"].tolist()
            names = own.groups(view).names
            rows += [
                (task.name, view, group, *counts, *values)
                for group, counts, values in zip(names, found, figures, strict=True)
                if counts[0]
            ]
            outside = int(arrays["pairs"][0]) - sum(counts[0] for counts in found)
            if outside:
                notes.append(f"{task.name}: {outside:,} pairs are in no group by {view}.")
    return (Table("views", COLUMNS, tuple(rows), frozenset(FIGURES), tuple(notes)),)
