"""Views of HPatches 2016 figures: by noise level, by change (`i_`, `v_`) and by sequence.

Figures of an image pair or a query are averaged over all of a group. Pairs of patches are ranked within their group, as
tasks are: `pair_groups` says where a pair between two sequences belongs. The noise of a pair is the level of its two
images, `ref` going with any; a pair of two levels, or of two `ref`, is in no group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.pairs import PairLists, PairTask
from raybench.benchmarks.pair_groups import RULE, Groups, PairSequences, small_kind
from raybench.formats.hbench import PatchPairs
from raybench.formats.shardfile import Arrays
from raybench.table import Cell, Figure, Table, columns_of, fractions_of

LEVELS = {"e": "easy", "h": "hard", "t": "tough"}
CHANGES = {"i": "illumination", "v": "viewpoint"}
VIEWS = ("noise", "change", "sequence")
PAIR_NOTES = (
    "ap, auc, balanced: as in the main table (TREC AP), of each group's own pairs; empty without both kinds of pairs.",
    f"{RULE} noise: the level of both images, ref going with any.",
)
NOISES = tuple(LEVELS.values())
REF, NO_LEVEL = len(NOISES), len(NOISES) + 1


def labels_of(image: str) -> dict[str, str]:
    """In which group an image `SEQ/IM` is, by view; a name outside the published scheme is in none.

    >>> labels_of("i_dome/h3")
    {'noise': 'hard', 'change': 'illumination', 'sequence': 'i_dome'}
    """
    sequence, name = image.split("/")
    level = LEVELS.get(name[:1]) if name[1:].isdecimal() else None
    labels = {"noise": level, "change": _change(sequence), "sequence": sequence}
    return {view: group for view, group in labels.items() if group is not None}


def query_labels(pool: Sequence[str], images: NDArray[np.int64]) -> list[dict[str, str]]:
    """In which groups queries are, by the index of their image in the pool; its noise is that of its other images."""
    noise = {group for image in pool for view, group in labels_of(image).items() if view == "noise"}
    shared = {"noise": noise.pop()} if len(noise) == 1 else {}
    own = [{**labels_of(image), **shared} for image in pool]
    return [own[image] for image in images.tolist()]


def mean_view_table(
    count: str, figures: Sequence[Figure], labels: Sequence[dict[str, str]], values: NDArray[np.float64]
) -> Table:
    """The mean of each figure over the items of each group; `values` are (items, figures), `count` names the items."""
    members: dict[tuple[str, str], list[int]] = {}
    for item, own in enumerate(labels):
        for key in own.items():
            members.setdefault(key, []).append(item)
    rows: list[tuple[Cell, ...]] = [
        (view, group, len(items), *values[items].mean(axis=0).tolist())
        for view in VIEWS
        for (own, group), items in sorted(members.items())
        if own == view
    ]
    return Table("views", ("view", "group", count, *columns_of(figures)), tuple(rows), fractions_of(figures))


@dataclass(frozen=True)
class GroupedTask:
    """A task of pairs with sequences and noise (a number into NOISES, or beyond them: none) of each that counts."""

    task: PairTask
    sequences: PairSequences
    noise: NDArray[np.unsignedinteger]

    @property
    def name(self) -> str:
        return self.task.name

    def groups(self, view: str) -> Groups:
        if view == "noise":
            return Groups(NOISES, self.noise, np.zeros(len(self.noise), np.bool_))
        names = self.sequences.names
        return self.sequences.by_kind(names if view == "sequence" else [_change(name) for name in names])


def grouped_tasks(tasks: Sequence[PairTask], lists: PairLists) -> tuple[GroupedTask, ...]:
    """The tasks with the groups of their pairs; those without their lists (results may come so) are left out."""
    return tuple(_grouped(task, lists) for task in tasks if all(stem in lists.pairs for stem in lists.tasks[task.name]))


def _grouped(task: PairTask, lists: PairLists) -> GroupedTask:
    own = [lists.pairs[stem] for stem in lists.tasks[task.name]]
    names = sorted({image.partition("/")[0] for pairs in own for image in pairs.images})
    sides = [_sides(pairs, {name: number for number, name in enumerate(names)}) for pairs in own]
    starts = np.cumsum([0, *(sum(segment.lengths) for segment in task.segments)])
    kept = np.concatenate([s.positions + start for s, start in zip(task.segments, starts, strict=False)])
    a, b, noise = (np.concatenate(column)[kept] for column in zip(*sides, strict=True))
    return GroupedTask(task, PairSequences.of(names, a, b), noise)


def _sides(pairs: PatchPairs, index: dict[str, int]) -> tuple[NDArray[np.unsignedinteger], ...]:
    """Sequences of both patches, and the noise, of each pair of a list."""
    small = small_kind(len(index))
    sequence = np.array([index[image.partition("/")[0]] for image in pairs.images], small)
    level = np.array([_level(image) for image in pairs.images], np.uint8)
    a, b = level[pairs.a_image], level[pairs.b_image]
    noise = np.where((a == b) | (b == REF), a, np.where(a == REF, b, np.uint8(NO_LEVEL)))
    return sequence[pairs.a_image], sequence[pairs.b_image], noise


def pair_view_table(
    figures: Sequence[Figure], grouped: Sequence[GroupedTask], scored: Sequence[Arrays], without: Sequence[str]
) -> Table:
    """The figures and counts of every group of pairs; `without` names the tasks that have no views."""
    rows: list[tuple[Cell, ...]] = []
    notes = [*PAIR_NOTES, *(f"{name}: no views, since its .pairs are not there." for name in without)]
    for task, arrays in zip(grouped, scored, strict=True):
        for view in VIEWS:
            counts, values = arrays[f"{view}_counts"].tolist(), arrays[f"{view}_figures"].tolist()
            rows += [
                (task.name, view, group, *count, *value)
                for group, count, value in zip(task.groups(view).names, counts, values, strict=True)
                if count[0]
            ]
            outside = int(arrays["pairs"][0]) - sum(count[0] for count in counts)
            if outside:
                notes.append(f"{task.name}: {outside:,} pairs are in no group by {view}.")
    columns = ("task", "view", "group", "pairs", "positives", "between", *columns_of(figures))
    return Table("views", columns, tuple(rows), fractions_of(figures), tuple(notes))


def _level(image: str) -> int:
    if image.endswith("/ref"):
        return REF
    noise = labels_of(image).get("noise")
    return NO_LEVEL if noise is None else NOISES.index(noise)


def _change(sequence: str) -> str | None:
    return CHANGES.get(sequence[:1]) if sequence[1:2] == "_" else None
