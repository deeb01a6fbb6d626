"""Views of HPatches 2017 verification: the figures of each noise level and kind of negatives, by type and by sequence.

`pair_groups` says where a pair between two sequences belongs. Groups are ranked by themselves, as the whole lists are:
`imbalanced` takes the first fifth of the group's own positives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hpatches.inputs import LEVELS, type_of
from raybench.benchmarks.pair_groups import RULE, Groups, PairSequences
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.table import Cell, Table

FIGURES = ("auc_balanced", "ap_imbalanced")
COUNTS = ("pairs", "positives", "between")
VIEWS = ("type", "sequence")
IMBALANCED_SHARE = 0.2
NOTES = (
    "auc_balanced, ap_imbalanced (trapezoid AP): as in the main table, of each group's own pairs, with the first 20% "
    "of its positives; empty without both kinds of pairs; mean: of the three noise levels.",
    RULE,
)


@dataclass(frozen=True)
class RankedLists:
    """Positives and one kind of negatives at one level: where their distances stand, and their sequences."""

    split: str
    noise: str
    negatives: str
    positive_at: tuple[int, int]
    negative_at: tuple[int, int]
    positive_of: PairSequences
    negative_of: PairSequences

    def groups(self, view: str) -> tuple[Groups, Groups]:
        """The groups of positives and of negatives, which have the same names."""
        if view == "sequence":
            return self.positive_of.by_sequence, self.negative_of.by_sequence
        kinds = [type_of(name) for name in self.positive_of.names]
        return self.positive_of.by_kind(kinds), self.negative_of.by_kind(kinds)


def imbalanced_part(positives: int) -> int:
    """How many of the first positives `imbalanced` takes."""
    return int(IMBALANCED_SHARE * positives)


@dataclass(frozen=True)
class Views:
    """The stage that measures groups of pairs, a level and kind of negatives a shard: figures and counts by view."""

    distances: Mapped
    lists: tuple[RankedLists, ...]

    name = "views"
    version = 1
    on_device = False

    @cached_property
    def digest(self) -> str:
        layout = [(own.split, own.noise, own.negatives, own.positive_at, own.negative_at) for own in self.lists]
        sides = {id(side): side for own in self.lists for side in (own.positive_of, own.negative_of)}
        groups = [(side.names, side.a, side.b) for side in sides.values()]  # the levels share them
        return digest_of("hpatches-verification", self.name, self.version, self.distances.digest, layout, groups)

    def load(self, shard: Shard) -> RankedLists:
        return self.lists[shard.start]

    def compute(self, payload: RankedLists) -> Arrays:
        values = self.distances.read(0)["values"]
        positives, negatives = values[slice(*payload.positive_at)], values[slice(*payload.negative_at)]
        arrays: Arrays = {}
        for view in VIEWS:
            sides = payload.groups(view)
            members = list(zip(*(groups.members() for groups in sides), strict=True))
            figures = [_figures(positives[own], negatives[others]) for own, others in members]
            counts = [
                (len(own) + len(others), len(own), sides[0].between[own].sum() + sides[1].between[others].sum())
                for own, others in members
            ]
            arrays[f"{view}_figures"] = np.array(figures, np.float64)
            arrays[f"{view}_counts"] = np.array(counts, np.int64)
        return arrays

    def keys(self, shard: Shard) -> str:
        own = self.lists[shard.start]
        return f"{own.split}-{own.noise}-{own.negatives}"


def _figures(positives: NDArray[np.float64], negatives: NDArray[np.float64]) -> tuple[float, float]:
    if not len(positives) or not len(negatives):
        return float("nan"), float("nan")
    few = positives[: imbalanced_part(len(positives))]
    return (
        ranking.roc_auc(ranking.negatives_first(positives, negatives)),
        ranking.trapezoid_ap(ranking.negatives_first(few, negatives)),
    )


def view_tables(run: Run, distances: Mapped, lists: Sequence[RankedLists]) -> tuple[Table, Table]:
    """The tables by type and by sequence: a row a noise level, then their mean, as in the main table."""
    mapped = run.map(Views(distances, tuple(lists)), len(lists), 1)
    found = {(own.split, own.negatives, own.noise): run.read(mapped, i) for i, own in enumerate(lists)}
    first = {own.split: own for own in lists}
    tables = []
    for view in VIEWS:
        rows: list[tuple[Cell, ...]] = []
        for split, own in first.items():
            kinds = list(dict.fromkeys(one.negatives for one in lists if one.split == split))
            for place, group in enumerate(own.groups(view)[0].names):
                for kind in kinds:
                    levels = [found[split, kind, noise] for noise in LEVELS]
                    counts = levels[0][f"{view}_counts"][place].tolist()  # the same at each level
                    figures = [arrays[f"{view}_figures"][place] for arrays in levels]
                    figures.append(np.mean(figures, axis=0))
                    rows += [
                        (split, group, noise, kind, *counts, *values.tolist())
                        for noise, values in zip((*LEVELS, "mean"), figures, strict=True)
                        if counts[0]
                    ]
        columns = ("split", view, "noise", "negatives", *COUNTS, *FIGURES)
        tables.append(Table(f"by_{view}", columns, tuple(rows), frozenset(FIGURES), NOTES))
    return tables[0], tables[1]
