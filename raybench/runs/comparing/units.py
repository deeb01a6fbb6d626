"""Samples of several runs over the same units in the same order, so that each draw is the same for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.samples import FigureOf, Sample, Units


@dataclass(frozen=True)
class Shared:
    """Samples of the same figures, each of another run, over the same units.

    `problem` says what was not the same, if anything; `dropped`, whether units were left out for it, so that figures
    are not those of the tables any more.
    """

    samples: tuple[Sample, ...]
    problem: str = ""
    dropped: bool = False

    @property
    def units_with_items(self) -> dict[FigureOf, NDArray[np.str_]]:
        """By figure, the names of units that have something to be found; a pair of one TSS group has nothing of others.

        With force, samples may have figures that others lack.
        """
        by_figure = [dict(zip(one.figures, one.has_items, strict=True)) for one in self.samples]
        shared = [figure for figure in by_figure[0] if all(figure in known for known in by_figure)]
        names = self.samples[0].units.names
        return {figure: names[np.all([known[figure] for known in by_figure], axis=0)] for figure in shared}


def shared_units(names: Sequence[str], kind: str, samples: Sequence[Sample]) -> Shared:
    """Samples of the same figure over the units that their runs share.

    A unit that another run does not know counts there as one without items, if it has none that must be found: a file
    of predictions says nothing of a query for which there are none.
    """
    if all(_same(samples[0].units, one.units) for one in samples[1:]):
        return Shared(tuple(samples), _other_items(names, kind, samples))
    union = _united([one.units for one in samples])
    widened = tuple(one.of_units(union) for one in samples)
    lost = _lost(names, kind, samples, widened)
    if not lost:
        return Shared(widened, _other_items(names, kind, widened))
    known = np.all([one.units.places(union.names) >= 0 for one in samples], axis=0)
    common = Units(union.names[known], union.stratum[known])
    return Shared(tuple(one.of_units(common) for one in samples), lost, dropped=True)


def _same(one: Units, other: Units) -> bool:
    return np.array_equal(one.names, other.names) and np.array_equal(one.stratum, other.stratum)


def _united(units: Sequence[Units]) -> Units:
    names = np.concatenate([one.names for one in units])
    strata = np.concatenate([one.stratum for one in units])
    distinct, first = np.unique(names, return_index=True)
    return Units(distinct, strata[first])


def _lost(names: Sequence[str], kind: str, samples: Sequence[Sample], widened: Sequence[Sample]) -> str:
    """Which unit that has something to be found is not in every run."""
    needed = widened[0].units.names[np.any([one.items_by_unit > 0 for one in widened], axis=0)]
    for name, sample in zip(names, samples, strict=True):
        absent = needed[sample.units.places(needed) < 0]
        if len(absent):
            return f"{len(absent):,} of the {kind} are not in {name} ({absent[0]} …)"
    return ""


def _other_items(names: Sequence[str], kind: str, samples: Sequence[Sample]) -> str:
    """Which unit has another number of true items in one run than in another."""
    first = samples[0].items_by_unit
    for name, sample in zip(names[1:], samples[1:], strict=True):
        other: NDArray[np.int64] = sample.items_by_unit
        differing = np.flatnonzero(first != other)
        if len(differing):
            at = int(differing[0])
            where = f"{samples[0].units.names[at]}: {first[at]:,} in {names[0]}, {other[at]:,} in {name}"
            return f"{len(differing):,} of the {kind} have another number of true items ({where})"
    return ""
