"""The tables of TSS: a group's `scores.csv` as the kit prints it, one row a group, one row a pair and direction.

Means are over rows, two a pair; the last row of the main table is the mean over groups. Where flows are absent the
tools average their zeros in; `--missing-flow skip` leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.pair_scores import PairScores
from raybench.benchmarks.tss.scoring import ABSENT, ESTIMATED, STATES
from raybench.benchmarks.tss.trees import Pair
from raybench.formats.tss import SCORE_COLUMNS
from raybench.table import Cell, Table

COLUMNS = ("group", "pairs", "SegIUR", "T1", "T3", "T5", "T10", "SegIUR_no_flip", "T5_no_flip")
SHOWN = (0, 1, 3, 5, 10)  # SegIUR and these thresholds, as columns of the scores
PAIR_COLUMNS = ("group", "pair", "direction", "src", "ref", "flip", *COLUMNS[2:7], "flow", "mask")
FRACTIONS = frozenset(COLUMNS[2:])


@dataclass(frozen=True)
class Group:
    """The scored pairs of one group, in name order, and their figures."""

    name: str
    pairs: tuple[Pair, ...]
    values: NDArray[np.float64]  # (pairs, 2, 51)
    states: NDArray[np.int8]  # (pairs, 2)
    skip_absent: bool

    @property
    def has_flow(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.states[:, 0] != ABSENT
        return found

    def means(self, mirrored: bool = True) -> list[float | None]:
        """SegIUR and T1..T50 over all rows, or without mirrored pairs; None where there is nothing to average."""
        chosen = np.array([mirrored or not pair.flip for pair in self.pairs], np.bool_)
        counted = chosen & self.has_flow if self.skip_absent else chosen
        return [_mean(self.values[chosen if column == 0 else counted, :, column]) for column in range(51)]

    def t5(self) -> list[float]:
        """Each pair's T5, mean of both directions."""
        return [float(value) for value in self.values[:, :, 5].mean(axis=1)]

    def rows(self, names: tuple[str, str]) -> list[list[Cell]]:
        """The rows of `scores.csv`; `names` end the names of the rows there and back."""
        rows: list[list[Cell]] = []
        for pair, values, flow in zip(self.pairs, self.values, self.has_flow, strict=True):
            for side, ending in enumerate(names):
                figures: list[Cell] = [float(value) for value in values[side]]
                if self.skip_absent and not flow:
                    figures[1:] = [None] * 50
                named = (f"{pair.name}{ending}", pair.sources[side], pair.sources[1 - side], figures[0], pair.flip)
                rows.append([*named, *figures[1:]])
        for name, mirrored in (("Average", True), ("w/o flip", False)):
            means = self.means(mirrored)
            rows.append([name, "-", "-", means[0], int(mirrored), *means[1:]])
        assert all(len(row) == len(SCORE_COLUMNS) for row in rows)
        return rows


def grouped(pairs: Sequence[Pair], scores: PairScores, groups: Sequence[str], skip_absent: bool) -> list[Group]:
    """The pairs without a problem, by group; a group all of whose pairs are missing is empty."""
    made = []
    for name in groups:
        chosen = [i for i, pair in enumerate(pairs) if pair.group == name and not scores.problems[i]]
        own = tuple(pairs[i] for i in chosen)
        made.append(Group(name, own, scores.values[chosen], scores.states[chosen], skip_absent))
    return made


def main_table(groups: Sequence[Group], notes: tuple[str, ...]) -> Table:
    """One row a group, and the mean over groups."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        every, straight = group.means(), group.means(mirrored=False)
        rows.append((group.name, len(group.pairs), *(every[column] for column in SHOWN), straight[0], straight[5]))
    over = [_mean(np.array([row[i] for row in rows if row[i] is not None], np.float64)) for i in range(2, len(COLUMNS))]
    rows.append(("mean", sum(len(group.pairs) for group in groups), *over))
    return Table("tss", COLUMNS, tuple(rows), FRACTIONS, notes)


def pair_table(groups: Sequence[Group]) -> Table:
    """One row a pair and direction, and where its flow and mask came from."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        for pair, values, states in zip(group.pairs, group.values, group.states, strict=True):
            state = (STATES[states[0]], STATES[states[1]])
            for side, way in enumerate(("1to2", "2to1")):
                figures: list[Cell] = [float(values[side, column]) for column in SHOWN]
                if group.skip_absent and states[0] == ABSENT:
                    figures[1:] = [None] * (len(SHOWN) - 1)
                named = (group.name, pair.name, way, pair.sources[side], pair.sources[1 - side], pair.flip)
                rows.append((*named, *figures, *state))
    return Table("per_pair", PAIR_COLUMNS, tuple(rows), FRACTIONS)


def state_notes(groups: Sequence[Group]) -> list[str]:
    """What the figures rest on where results were incomplete."""
    notes = []
    for group in groups:
        absent = [pair.name for pair, there in zip(group.pairs, group.has_flow, strict=True) if not there]
        if absent:
            treated = "left out of T1..T50" if group.skip_absent else "their zeros are averaged in, as the tools do"
            notes.append(
                f"NO FLOW: {len(absent)} of {len(group.pairs)} pairs of {group.name} ({named(absent)}); {treated}."
            )
        for state, words in ((ESTIMATED, "estimated from the flows"), (ABSENT, "absent, so that SegIUR is 0")):
            count = int(np.count_nonzero(group.states[:, 1] == state))
            if count:
                notes.append(f"{group.name}: masks of {count} of {len(group.pairs)} pairs were {words}.")
    return notes


def named(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more."""
    return ", ".join([*names[:most], *([f"… {len(names) - most} more"] if len(names) > most else [])])


def _mean(values: NDArray[np.float64]) -> float | None:
    """The exactly rounded mean, so that no order matters; None of nothing."""
    return math.fsum(values.reshape(-1)) / values.size if values.size else None
