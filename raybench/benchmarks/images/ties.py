"""What ties do to copy detection. Its tools take the worst case at equal scores, so mostly the best case is new here.

Only candidates are looked at: among references that are as near as the last of the k of a query, and so were left out,
a true one may be. Vectors that tell nothing apart are warned of, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.constant_vectors import ADVICE, CONSTANT, constant_words
from raybench.benchmarks.images.figures import (
    COPYDAYS_FIGURES,
    HEADLINE,
    AskedResults,
    Candidates,
    CodecResults,
    Variant,
    asked_results,
    query_ap,
)
from raybench.benchmarks.ties import TiedFigure, tie_tables, tied_figures
from raybench.engine.run import Run
from raybench.extract.vector_set import VectorSet
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import PRECISIONS, AtLeast, PooledCurve, TruePairs, count_blocks, operating_point
from raybench.metrics.partials import NO_REFERENCE, Rows
from raybench.metrics.ranking import Flags, stable_order, trapezoid_ap
from raybench.metrics.retrieval import extreme_lists
from raybench.metrics.samples import FigureOf
from raybench.metrics.ties import tied_ranking
from raybench.table import Table, columns_of

ROWS_LOOKED_AT = 1_024  # of a set's first shard and of its last


def note_constant_sets(run: Run, sets: Mapping[str, VectorSet]) -> None:
    """Warn, below the table and aloud, of sets whose vectors are all (nearly) equal, or (nearly) all zero."""
    looked = run.read_each(run.each(look_at_set, list(sets), dict(sets), version=1))
    for role, found in zip(sets, looked, strict=True):
        for words in found["words"].tolist():
            run.note(f"{CONSTANT} {role}: {words}; {ADVICE}")


def look_at_set(role: str, sets: Mapping[str, VectorSet]) -> Arrays:
    """What is wrong with some rows of a set, in `words`, if anything is."""
    shards = sets[role].mapped.shards
    rows = [sets[role].read(number)[1][:ROWS_LOOKED_AT] for number in sorted({0, len(shards) - 1})]
    words = constant_words(np.concatenate([some for some in rows if len(some)] or [np.zeros((0, 1), np.float32)]))
    return {"words": np.array([words] if words else [], np.str_)}


def disc_ties(
    run: Run, rows: Sequence[Candidates], truth: TruePairs, scored: Mapping[Variant, Arrays]
) -> tuple[Table, ...]:
    """The table of ties of the main table's rows, if there are any; a wide gap is noted and said."""
    found = run.read_each(run.each(pooled_best, rows, truth, version=1))
    return tie_tables(run, _disc_ties(rows, found, scored))


def _disc_ties(
    rows: Sequence[Candidates], found: Sequence[Arrays], scored: Mapping[Variant, Arrays]
) -> Iterator[TiedFigure]:
    for row, best in zip(rows, found, strict=True):
        scores = scored[row.variant]
        values = np.array([scores["uAP"][0], scores["accuracy_at_1"][0], scores["recall_at"][0]])
        places = [FigureOf(row.variant.row, column) for column in columns_of(HEADLINE)]
        yield from tied_figures(places, values.tolist(), {"worst": values, **best})


def pooled_best(candidates: Candidates, truth: TruePairs) -> Arrays:
    """The best case of the HEADLINE figures: true ones first among equal scores; of one query one can be at the top.

    `tied` are true pairs with a wrong one at their score, of all queries or of their own.
    """
    found, at_least = count_blocks(truth, candidates.blocks)
    above = _above(candidates, truth, found)
    curve, tied = _best_curve(truth, found, at_least, above)
    first = above.own == 0
    top = np.unique(truth.query[found.index[first]])
    figures = [curve.precision.sum(), len(top), operating_point(curve, PRECISIONS[0]).recall * len(truth)]
    shared = np.count_nonzero(first & (at_least.own > 1))
    return {
        "best": np.array(figures, np.float64) / max(len(truth), 1),
        "tied": np.array([tied, shared, tied], np.int64),
    }


def _above(candidates: Candidates, truth: TruePairs, found: Rows) -> AtLeast:
    """How many predictions score more than each found pair: at least as much as the next number does."""
    higher = Rows(found.index, np.nextafter(found.values, np.inf))
    parts = [AtLeast.of(truth, higher, block) for block in candidates.blocks()]
    return AtLeast.merged(parts)


def _best_curve(truth: TruePairs, found: Rows, at_least: AtLeast, above: AtLeast) -> tuple[PooledCurve, int]:
    """The curve with true pairs first at each score, and how many of them have a wrong one at theirs."""
    levels, level = np.unique(found.values, return_inverse=True)
    own = np.bincount(level, minlength=len(levels))
    wrong_above = above.pool - (np.cumsum(own[::-1])[::-1] - own)  # by level
    wrong_here = at_least.pool - above.pool - own
    order = np.argsort(-level, kind="stable")
    ranked = np.arange(1, len(order) + 1)
    rank = ranked + wrong_above[level[order]]
    curve = PooledCurve(rank, ranked / max(len(truth), 1), ranked / rank, found.values[order])
    return curve, int(own[wrong_here > 0].sum())


def copydays_ties(
    run: Run, rows: Sequence[CodecResults], truth: TruePairs, strong: NDArray[np.int64], main: Table
) -> tuple[Table, ...]:
    """The same for Copydays; `strong` are the queries of that block."""
    found = run.read_each(run.each(list_extremes, rows, truth, strong, version=1))
    return tie_tables(run, _copydays_ties(rows, found, main))


def _copydays_ties(rows: Sequence[CodecResults], found: Sequence[Arrays], main: Table) -> Iterator[TiedFigure]:
    columns = columns_of(COPYDAYS_FIGURES)
    cells = {row[0]: row[1 : 1 + len(columns)] for row in main.rows}
    for row, arrays in zip(rows, found, strict=True):
        values = [float("nan") if cell is None else float(cell) for cell in cells[row.name]]
        yield from tied_figures([FigureOf(row.name, column) for column in columns], values, arrays)


def list_extremes(results: CodecResults, truth: TruePairs, strong: NDArray[np.int64]) -> Arrays:
    """Both cases of strong mAP and of overall µAP; tied are queries, and results of all queries."""
    found = asked_results(results.read(), truth)
    worst, best = (_strong_map(found, flags, strong) for flags in extreme_lists(found.relevant, found.distance))
    there = found.reference != NO_REFERENCE
    distance, relevant = found.distance[there].astype(np.float64), found.relevant[there]
    order = stable_order(distance)
    both = tied_ranking(distance[order], relevant[order])
    overall = [trapezoid_ap(flags, len(found.query)) for flags in (both.worst, both.best)]
    return {
        "worst": np.array([worst.mean() if len(strong) else np.nan, overall[0]]),
        "best": np.array([best.mean() if len(strong) else np.nan, overall[1]]),
        "tied": np.array([np.count_nonzero(best > worst), both.tied], np.int64),
    }


def _strong_map(found: AskedResults, relevant: Flags, strong: NDArray[np.int64]) -> NDArray[np.float64]:
    return query_ap(relevant, found.positives)[np.searchsorted(found.query, strong)]
