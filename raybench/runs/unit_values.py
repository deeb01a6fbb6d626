"""What each unit of a finished run is worth by itself, for a chart that sets two runs beside each other by unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.samples import FigureOf, MeanOf, RankedSample
from raybench.metrics.unit_figures import unit_figures
from raybench.runs.finished import finished_manifest
from raybench.runs.samples import read_samples

SINGLE_PAIRS = "pairs"


@dataclass(frozen=True)
class UnitValues:
    """One figure of every unit alone; `kind` is what units are: queries, sequences, pairs. nan where it has none."""

    figure: FigureOf
    kind: str
    names: tuple[str, ...]
    values: NDArray[np.float64]


def unit_values(out: str) -> list[UnitValues]:
    """The values of every figure of a run that samples were kept of, then of those that are means of others.

    A ranking of which each unit is a single pair has none: whatever its distance, that pair alone is ranked well.
    """
    stored = read_samples(out, finished_manifest(out))
    found: dict[FigureOf, UnitValues] = {}
    for sample in stored.samples:
        if stored.kind == SINGLE_PAIRS and isinstance(sample, RankedSample):
            continue
        names = tuple(sample.units.names.tolist())
        for figure, values in zip(sample.figures, unit_figures(sample), strict=True):
            found[figure] = UnitValues(figure, stored.kind, names, values)
    for mean in stored.means:
        if all(part in found for part in mean.parts):
            found[mean.figure] = _mean(mean, found)
    return list(found.values())


def _mean(mean: MeanOf, known: Mapping[FigureOf, UnitValues]) -> UnitValues:
    """Of a unit the mean over those parts in which it has a value."""
    parts = [known[part] for part in mean.parts]
    names = np.concatenate([np.array(part.names, np.str_) for part in parts])
    values = np.concatenate([part.values for part in parts])
    distinct, place = np.unique(names, return_inverse=True)
    there = ~np.isnan(values)
    counts = np.bincount(place[there], minlength=len(distinct))
    sums = np.bincount(place[there], values[there], minlength=len(distinct))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return UnitValues(mean.figure, parts[0].kind, tuple(distinct.tolist()), means)
