"""What each unit is worth by itself: the figures of its own items, to set two methods beside each other unit by unit.

A pooled figure is no mean of these: in its pool the items of one unit stand among those of all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.error_rates import LOWER_IS_BETTER, needed_matches
from raybench.metrics.samples import MeanSample, RankedSample, Sample


def unit_figures(sample: Sample) -> NDArray[np.float64]:
    """For each figure the value of each unit alone, (figures, units); nan where its items leave none."""
    return _means(sample) if isinstance(sample, MeanSample) else _rankings(sample)


def _means(sample: MeanSample) -> NDArray[np.float64]:
    sums, counts = sample.by_unit
    means: NDArray[np.float64] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means


def _rankings(sample: RankedSample) -> NDArray[np.float64]:
    """Every unit's own ranking; an item between two units stands in those of both."""
    between = sample.first != sample.second
    place = np.concatenate([np.arange(len(sample.positive)), np.flatnonzero(between)])
    unit = np.concatenate([sample.first, sample.second[between]])
    order = np.lexsort((place, unit))
    unit, positive = unit[order], sample.positive[place[order]]
    ends = np.bincount(unit, minlength=len(sample.units)).cumsum()
    rank = np.arange(1, len(unit) + 1) - np.concatenate([[0], ends])[unit]
    found = np.cumsum(positive) - np.concatenate([[0], np.cumsum(positive)])[np.concatenate([[0], ends])[unit]]
    own = OwnRanks(unit[positive], rank[positive], found[positive], np.diff(ends, prepend=0), sample.missed)
    return np.array([own.figure(flavour) for flavour in sample.flavours]).reshape(len(sample.figures), -1)


@dataclass(frozen=True)
class OwnRanks:
    """The positives of all rankings: whose each is, its rank, the how many-th it is; items and missed of each unit."""

    unit: NDArray[np.int32]  # (positives,) rising
    rank: NDArray[np.int64]  # from 1
    found: NDArray[np.int64]  # from 1
    items: NDArray[np.int64]  # (units,)
    missed: NDArray[np.int64]

    def figure(self, flavour: str) -> NDArray[np.float64]:
        """By unit, as `metrics.samples.figure_of_ranks` has it for one."""
        ranked = np.bincount(self.unit, minlength=len(self.items))
        if flavour == "roc_auc":
            wrong, pairs = self._sums(self.rank - self.found), ranked * (self.items - ranked)
            return _shares(pairs - wrong, pairs)
        positives = ranked + self.missed
        if flavour == "recall_at_p90":
            best = np.zeros(len(self.items), np.int64)
            good = self.found / self.rank >= 0.9
            np.maximum.at(best, self.unit[good], self.found[good])
            return _shares(best, positives)
        if flavour in LOWER_IS_BETTER:
            return self._error_rate(flavour, ranked, positives)
        here = self.found / self.rank
        before = np.where(self.rank > 1, (self.found - 1) / np.maximum(self.rank - 1, 1), 1.0)
        return _shares(self._sums(here if flavour == "step_ap" else (here + before) / 2), positives)

    def _error_rate(self, flavour: str, ranked: NDArray[np.int64], positives: NDArray[np.int64]) -> NDArray[np.float64]:
        """The match that decides is the same as in `metrics.error_rates`; nan where it, or any other, is not there."""
        needed, others = needed_matches(positives), self.items - ranked
        decides = np.flatnonzero(self.found == needed[self.unit])
        false_alarms = np.zeros(len(self.items), np.int64)
        false_alarms[self.unit[decides]] = self.rank[decides] - self.found[decides]
        whole = others if flavour == "fpr95" else false_alarms + needed
        return _shares(false_alarms, np.where((needed > 0) & (needed <= ranked) & (others > 0), whole, 0))

    def _sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(self.unit, values.astype(np.float64), minlength=len(self.items)).astype(np.float64)


def _shares(part: NDArray[Any], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
    return shares
