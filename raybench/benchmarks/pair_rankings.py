"""Listed pairs of patches ranked by distance: one order, from which figures, curves, ties and draws all follow.

A pair lies between the sequences of its two patches, which are what is independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.pair_groups import PairSequences
from raybench.benchmarks.ties import all_equal
from raybench.formats.shardfile import Arrays
from raybench.metrics import error_rates, ranking
from raybench.metrics.ranking import Flags
from raybench.metrics.samples import FigureOf, RankedSample, Units
from raybench.metrics.ties import tied_ranking

MEASURES: Mapping[str, Callable[[Flags], float]] = {
    "step_ap": ranking.trec_ap,
    "trapezoid_ap": ranking.trapezoid_ap,
    "roc_auc": ranking.roc_auc,
    "fpr95": error_rates.fpr95,
    "fdr95": error_rates.fdr95,
}


@dataclass(frozen=True)
class RankedFigures:
    """The figures of one ranking: where they stand in the main table, and the flavour of each (a key of MEASURES)."""

    row: str
    columns: tuple[str, ...]
    flavours: tuple[str, ...]

    @property
    def places(self) -> tuple[FigureOf, ...]:
        return tuple(FigureOf(self.row, column) for column in self.columns)

    def of(self, ranked: Flags) -> list[float]:
        return [MEASURES[flavour](ranked) for flavour in self.flavours]


def rank_sequence_pairs(
    figures: RankedFigures,
    distances: NDArray[np.float64],
    positive: Flags,
    sequences: PairSequences,
    negatives_lead: bool = False,
) -> Arrays:
    """Pairs by rising distance, equal ones in the order given, as the arrays of a RankedSample; and their ties.

    With `negatives_lead` negatives stand first among equal ones. `worst` and `best` are by figure, if any are `tied`.
    `equal`: whether all distances are.
    """
    order = np.lexsort((positive, distances)) if negatives_lead else ranking.stable_order(distances)
    ranked = positive[order]
    a: NDArray[Any] = sequences.a[order]
    b: NDArray[Any] = sequences.b[order]
    units = Units.plain(sequences.names)
    sample = RankedSample(figures.places, figures.flavours, units, ranked, a, b, np.zeros(len(units), np.int64))
    both = tied_ranking(distances[order], ranked)
    ends = [figures.of(flags) for flags in (both.worst, both.best)] if both.tied else [[], []]
    return {
        **sample.to_arrays(),
        "worst": np.array(ends[0], np.float64),
        "best": np.array(ends[1], np.float64),
        "tied": np.array([both.tied], np.int64),
        "equal": np.array([all_equal(distances)]),
    }


def ranking_ties(values: Sequence[float], rankings: Sequence[Arrays]) -> Arrays:
    """`worst`, `best` and `tied` by figure, of ranked pairs (see above) whose figures stand one behind the other."""
    worst: list[float] = []
    best: list[float] = []
    tied: list[int] = []
    start = 0
    for arrays in rankings:
        own = values[start : start + len(arrays["flavour"])]
        is_tied = bool(arrays["tied"][0])
        worst += arrays["worst"].tolist() if is_tied else own
        best += arrays["best"].tolist() if is_tied else own
        tied += [int(arrays["tied"][0])] * len(own)
        start += len(own)
    return {"worst": np.array(worst), "best": np.array(best), "tied": np.array(tied, np.int64)}
