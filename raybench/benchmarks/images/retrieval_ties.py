"""What ties do to image-retrieval: every mean with wrong references first at equal distance, and with relevant ones.

Standings say how many of all references are closer and as near, so both cases are exact, whatever the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from raybench.benchmarks.images.figures import Candidates
from raybench.benchmarks.images.labelled_sets import Labels
from raybench.benchmarks.images.retrieval_figures import IN_MAIN_PLACES, MAIN_FIGURES, Ranking, query_values
from raybench.benchmarks.images.ties import pooled_best
from raybench.benchmarks.ties import TiedFigure, tie_tables, tied_figures
from raybench.engine.run import Run
from raybench.formats.shardfile import Arrays
from raybench.metrics.query_ranks import extreme_ranks
from raybench.metrics.samples import FigureOf
from raybench.table import Table, columns_of, figure_cells


def retrieval_ties(
    run: Run, rows: Sequence[Candidates], rankings: Sequence[Ranking], labels: Labels, main: Table
) -> tuple[Table, ...]:
    """The table of ties of the main table's rows, if there are any; a wide gap is noted and said."""
    pooled = run.read_each(run.each(pooled_best, rows[: len(rankings)], labels.relevant, version=1))
    means = run.read_each(run.each(mean_extremes, rankings, labels, version=1))
    return tie_tables(run, _tied(rankings, pooled, means, main))


def _tied(
    rankings: Sequence[Ranking], pooled: Sequence[Arrays], means: Sequence[Arrays], main: Table
) -> Iterator[TiedFigure]:
    """µAP is published with wrong ones first, so only its best case is new."""
    columns = columns_of(MAIN_FIGURES)
    cells = {(cell.row, cell.figure): cell.value for cell in figure_cells(main, main.columns[:2], columns)}
    for ranking, of_pool, of_means in zip(rankings, pooled, means, strict=True):
        places = [FigureOf(ranking.variant.row, column) for column in columns]
        values = [float("nan") if (value := cells[one.row, one.figure]) is None else value for one in places]
        first: Arrays = {"worst": np.array(values[:1]), "best": of_pool["best"][:1], "tied": of_pool["tied"][:1]}
        ends = {name: np.concatenate([array, of_means[name]]) for name, array in first.items()}
        yield from tied_figures(places, values, ends)


def mean_extremes(ranking: Ranking, labels: Labels) -> Arrays:
    """Both cases of the means that the main table has; tied are queries."""
    counted, found = labels.counted, ranking.read()
    is_junk = counted.gain == 0
    queries, query = np.unique(counted.pairs.query, return_inverse=True)
    both = extreme_ranks(query, found.fewest, found.most, ~is_junk, is_junk)
    worst, best = (query_values(ranks, counted.gain, len(queries))[:, IN_MAIN_PLACES] for ranks in both)
    return {"worst": worst.mean(axis=0), "best": best.mean(axis=0), "tied": np.count_nonzero(best > worst, axis=0)}
