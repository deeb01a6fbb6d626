"""What a run says of ties: `tables/ties.csv`, and a warning where the order of equal distances makes up a figure.

`metrics.ties` says what worst and best are; the published figure lies between them. Figures that no tie can change are
not in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.constant_vectors import CONSTANT
from raybench.engine.run import Run
from raybench.formats.shardfile import Arrays
from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.metrics.samples import FigureOf, MeanOf
from raybench.table import Table

COLUMNS = ("row", "figure", "value", "worst", "best", "tied")
LOUD = 0.01  # a gap of more than a point is warned of
NOTE = (
    "worst, best: the figure if wrong, or right, ones stood first among equal distances; value: as the protocol "
    "orders them; tied: items that this can move. Figures that no tie can change are left out."
)


@dataclass(frozen=True)
class TiedFigure:
    """A figure with its worst and best case, and how many items are tied, on which these depend."""

    of: FigureOf
    value: float
    worst: float
    best: float
    tied: int

    @property
    def gap(self) -> float:
        return abs(self.best - self.worst)


def tied_figures(figures: Sequence[FigureOf], values: Sequence[float], scores: Arrays) -> list[TiedFigure]:
    """Those of a scored item with arrays `worst`, `best` and `tied` by figure; last bits never turn the order round."""
    ends = (scores[name].tolist() for name in ("worst", "best", "tied"))
    return [
        TiedFigure(of, value, *_around(of, value, worst, best), tied)
        for of, value, worst, best, tied in zip(figures, values, *ends, strict=True)
    ]


def _around(of: FigureOf, value: float, worst: float, best: float) -> tuple[float, float]:
    """The worst and the best case, neither within the other and the value."""
    if of.figure in LOWER_IS_BETTER:
        return max(worst, value), min(best, value)
    return min(worst, value), max(best, value)


def with_means(found: Iterable[TiedFigure], means: Iterable[MeanOf]) -> list[TiedFigure]:
    """The figures, and those that are means of them."""
    by_figure = {one.of: one for one in found}
    return [*by_figure.values(), *(_mean(mean.figure, [by_figure[part] for part in mean.parts]) for mean in means)]


def _mean(of: FigureOf, parts: Sequence[TiedFigure]) -> TiedFigure:
    value, worst, best = np.mean([(part.value, part.worst, part.best) for part in parts], axis=0).tolist()
    return TiedFigure(of, value, worst, best, sum(part.tied for part in parts))


def tie_tables(run: Run, figures: Iterable[TiedFigure]) -> tuple[Table, ...]:
    """The table of the figures that ties can change, if there are any; a wide gap is noted and said."""
    found = [one for one in figures if one.tied and not np.isnan(one.value)]
    if not found:
        return ()
    widest = max(found, key=lambda one: one.gap)
    if widest.gap > LOUD:
        run.note(_warning(widest, sum(one.gap > LOUD for one in found)))
    rows = tuple((one.of.row, one.of.figure, one.value, one.worst, one.best, one.tied) for one in found)
    return (Table("ties", COLUMNS, rows, frozenset(("value", "worst", "best")), (NOTE,)),)


def _warning(widest: TiedFigure, loud: int) -> str:
    return (
        f"TIES: {widest.of.figure} of {widest.of.row} rests on the order of equal distances: it is "
        f"{100 * widest.value:.2f} in the protocol's order, and from {100 * widest.worst:.2f} to "
        f"{100 * widest.best:.2f} in others. Figures that ties move by more than a point: {loud:,} (tables/ties.csv)."
    )


def all_equal(distances: NDArray[np.float64]) -> bool:
    """Whether there are several distances, and all are the same."""
    return len(distances) > 1 and bool(distances.min() == distances.max())


def note_equal_distances(run: Run, are_equal: bool) -> None:
    """Warn of results without vectors whose distances are all equal."""
    if are_equal:
        run.note(f"{CONSTANT} all distances are equal, so figures say nothing.")
