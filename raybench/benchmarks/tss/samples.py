"""What the TSS table is made of: image pairs, which are independent, drawn within their groups.

Both directions of a pair are one item. So a figure of a group is the mean over its pairs of the mean of two rows, which
is that over rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.tss.scoring import ScoredGroup
from raybench.engine.run import Run
from raybench.formats.shardfile import Arrays
from raybench.metrics.samples import FigureOf, MeanOf, MeanSample, Units


def group_samples(run: Run, groups: Sequence[ScoredGroup], columns: Sequence[str], shown: Sequence[int]) -> RunSamples:
    """The samples of a run, whose table has these columns: `shown` of a row's 51 scores, then two without mirrored."""
    items = ["pairs"]
    samples = run.each(sample_groups, items, list(groups), list(columns), list(shown), version=1)
    write_samples(run, items, samples)
    means = [
        MeanOf(FigureOf("mean", column), tuple(FigureOf(group.name, column) for group in groups)) for column in columns
    ]
    return RunSamples("pairs", (samples,), tuple(means))


def sample_groups(_: str, groups: Sequence[ScoredGroup], columns: Sequence[str], shown: Sequence[int]) -> Arrays:
    """All pairs as items, each a unit of its own; figures of other groups are none of theirs."""
    counts = [len(group.pairs) for group in groups]
    values = np.full((sum(counts), len(groups), len(columns)), np.nan)
    ends = np.cumsum([0, *counts])
    for number, group in enumerate(groups):
        values[ends[number] : ends[number + 1], number] = pair_values(group, shown)
    units = Units(
        np.array([pair.name for group in groups for pair in group.pairs], np.str_),
        np.repeat(np.arange(len(groups), dtype=np.int32), counts),
    )
    figures = tuple(FigureOf(group.name, column) for group in groups for column in columns)
    unit = np.arange(sum(counts), dtype=np.int32)
    return MeanSample(figures, units, unit, values.reshape(sum(counts), -1)).to_arrays()


def pair_values(group: ScoredGroup, shown: Sequence[int]) -> NDArray[np.float64]:
    """(pairs, figures): `shown` scores, then SegIUR and T5 without mirrored pairs; nan where one does not count."""
    means = group.values.mean(axis=1)  # (pairs, 51)
    if group.skip_absent:
        means[~group.has_flow, 1:] = np.nan
    mirrored = np.array([bool(pair.flip) for pair in group.pairs], np.bool_)
    straight = np.where(mirrored[:, np.newaxis], np.nan, means[:, [0, 5]])
    return np.concatenate([means[:, list(shown)], straight], axis=1)
