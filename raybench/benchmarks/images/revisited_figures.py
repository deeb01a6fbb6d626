"""Figures of Revisited Oxford and Paris: AP and P@k of each query under each setup, from standings of labelled pairs.

A setup says which labels are right and which are junk. Junk is taken out of the ranking first. AP is by trapezoids; a
list is read no further than its last positive, so P@k divides by min(k, 1 + rank of the last positive). A query without
a positive has no figures and is left out of the means (`compute_map` of filipradenovic/revisitop, python/evaluate.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.images.revisited_sets import Labelled
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, tied_figures
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.formats.parquet import write_parquet
from raybench.formats.revisited import EASY, HARD, JUNK
from raybench.formats.shardfile import Arrays
from raybench.metrics.query_ranks import QueryRanks
from raybench.metrics.samples import FigureOf, MeanSample, Units
from raybench.search.set_standings import PairStandings
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, row_name

SETUPS = {  # which labels are right, and which are junk
    "easy": ((EASY,), (JUNK, HARD)),
    "medium": ((EASY, HARD), (JUNK,)),
    "hard": ((HARD,), (JUNK, EASY)),
}
RANKS = (1, 5, 10)
FIGURES = (
    Figure("map", "mean over queries of the trapezoid AP, junk taken out of the ranking first"),
    Figure("mp_at_1", "mean precision at 1 (5, 10), of lists that end with their last positive"),
    Figure("mp_at_5"),
    Figure("mp_at_10"),
)
KEYS = ("set", "setup")
COLUMNS = (*KEYS, "queries", *columns_of(FIGURES))
FRACTIONS = fractions_of(FIGURES)
PER_QUERY = ("ap", *(f"p_at_{k}" for k in RANKS))


@dataclass(frozen=True)
class RankedSet:
    """The labelled pairs of one set by one codec, and where each stands in the ranking of all its references.

    `set_name` has `+r1m` behind it where distractors are among the references.
    """

    codec: str
    set_name: str
    labelled: Labelled
    standings: Mapped | None  # none: no pair is labelled

    @property
    def name(self) -> str:
        return f"{self.set_name}_{self.codec}"

    @property
    def queries(self) -> int:
        return len(self.labelled.queries)

    def read(self) -> PairStandings:
        if self.standings is None:
            none = np.zeros(0, np.int64)
            return PairStandings(np.zeros(0), none, none, none)
        return PairStandings.from_arrays(self.standings.read(0))


def score_set(ranked: RankedSet) -> Arrays:
    """By setup and query: `values` (setups, figures, queries), nan without a positive; `positives` and `junk`."""
    before, labelled = ranked.read().before, ranked.labelled
    ranks = [QueryRanks.of(labelled.pairs.query, before, *flags(labelled, setup)) for setup in SETUPS]
    junk = [np.bincount(labelled.pairs.query[flags(labelled, setup)[1]], minlength=ranked.queries) for setup in SETUPS]
    return {
        "values": np.stack([query_figures(one, ranked.queries) for one in ranks]),
        "positives": np.stack([one.positives(ranked.queries) for one in ranks]).astype(np.int64),
        "junk": np.stack(junk).astype(np.int64),
    }


def flags(labelled: Labelled, setup: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pairs are right under a setup, and which are junk."""
    right, junk = SETUPS[setup]
    return np.isin(labelled.label, right), np.isin(labelled.label, junk)


def query_figures(ranks: QueryRanks, queries: int) -> NDArray[np.float64]:
    """AP and P@1, 5, 10 of each query, (figures, queries); nan where it has no positive.

    >>> ranks = QueryRanks.of(np.zeros(2, int), np.array([0, 6]), np.ones(2, bool), np.zeros(2, bool))
    >>> query_figures(ranks, 1)[1:, 0].tolist() == [1.0, 1 / 5, 2 / 7]
    True
    """
    return np.stack([trapezoid_ap(ranks, queries), *(precision_at(k, ranks, queries) for k in RANKS)])


def trapezoid_ap(ranks: QueryRanks, queries: int) -> NDArray[np.float64]:
    """The trapezoid AP of each query; nan where it has no positive.

    >>> trapezoid_ap(QueryRanks.of(np.zeros(1, int), np.array([1]), np.ones(1, bool), np.zeros(1, bool)), 2).tolist()
    [0.25, nan]
    """
    before = np.where(ranks.rank > 0, ranks.order / np.maximum(ranks.rank, 1), 1.0)
    after = (ranks.order + 1) / (ranks.rank + 1)
    return _shares(ranks.sums((before + after) / 2, queries), ranks.positives(queries))


def precision_at(k: int, ranks: QueryRanks, queries: int) -> NDArray[np.float64]:
    """P@k of each query on a list that ends with its last positive; nan where it has none."""
    length = np.zeros(queries, np.int64)
    np.maximum.at(length, ranks.query, ranks.rank + 1)
    depth = np.minimum(k, length)
    return _shares(ranks.sums(ranks.rank < depth[ranks.query], queries), depth)


def _shares(parts: NDArray[np.float64], wholes: NDArray[np.int64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.where(wholes > 0, parts / np.maximum(wholes, 1), np.nan)
    return found


def means(values: NDArray[np.float64]) -> list[float | None]:
    """The mean of each figure over the queries that have one, (figures, queries); None where none has."""
    counted = values[:, ~np.isnan(values[0])]
    return [float(row.mean()) for row in counted] if counted.shape[1] else [None] * len(values)


def set_rows(set_name: str, scores: Arrays | None) -> Iterator[tuple[Cell, ...]]:
    """The rows of one set; of a codec that failed they are empty."""
    for number, setup in enumerate(SETUPS):
        if scores is None:
            yield (set_name, setup, None, *([None] * len(FIGURES)))
        else:
            values = scores["values"][number]
            yield (set_name, setup, int(np.count_nonzero(~np.isnan(values[0]))), *means(values))


def main_table(rows: Iterable[tuple[Cell, ...]], metadata: str | None, notes: Iterable[str]) -> Table:
    """The main table; a text for a last column `metadata` if one is given."""
    extra, last = ((), ()) if metadata is None else ((metadata,), ("metadata",))
    return Table("revisited", (*COLUMNS, *last), tuple((*row, *extra) for row in rows), FRACTIONS, tuple(notes))


def codec_table(rows: Iterable[tuple[Cell, ...]]) -> Table:
    """The same rows by every codec."""
    return Table("by_codec", ("codec", *COLUMNS), tuple(rows), FRACTIONS)


def per_query_file(_: str, ranked: Sequence[RankedSet], scores: Mapped) -> bytes:
    """Figures of every query under every setup, as Parquet; of the first codec."""
    parts = [_per_query(one, scores.read(number)) for number, one in enumerate(ranked)]
    return write_parquet({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _per_query(ranked: RankedSet, scores: Arrays) -> Arrays:
    values = scores["values"].swapaxes(0, 1).reshape(len(PER_QUERY), -1)
    return {
        "set": np.full(values.shape[1], ranked.set_name),
        "setup": np.repeat(list(SETUPS), ranked.queries),
        "query": np.tile(np.array(ranked.labelled.queries, np.str_), len(SETUPS)),
        "positives": scores["positives"].ravel(),
        "junk": scores["junk"].ravel(),
        **dict(zip(PER_QUERY, values, strict=True)),
    }


def revisited_samples(run: Run, ranked: Sequence[RankedSet], data: Mapping[str, str]) -> RunSamples:
    """Samples of the main table's rows, written; queries are the units, each set has its own."""
    stage = run.each(sample_set, ranked, version=1)
    write_samples(run, ranked, stage)
    return RunSamples("queries", (stage,), data=data)


def sample_set(ranked: RankedSet) -> Arrays:
    """What the figures of one set are drawn from: those of each query that has a positive."""
    values = score_set(ranked)["values"]
    figures = tuple(FigureOf(row_name(ranked.set_name, setup), figure.name) for setup in SETUPS for figure in FIGURES)
    by_query = values.reshape(len(figures), -1).T
    units = Units.plain(ranked.labelled.queries)
    return MeanSample(figures, units, np.arange(ranked.queries, dtype=np.int32), by_query).to_arrays()


def set_ties(ranked: RankedSet) -> Arrays:
    """The figures of one set, by row and figure, if negatives (`worst`) or positives (`best`) led among equal scores.

    `tied` are positives that stand with a negative.
    """
    ends: dict[str, list[float]] = {"worst": [], "best": []}
    tied: list[int] = []
    for setup in SETUPS:
        for name, ranks in zip(ends, extreme_ranks(ranked, setup), strict=True):
            figures = means(query_figures(ranks, ranked.queries))
            ends[name] += [float("nan") if value is None else value for value in figures]
        worst, best = extreme_ranks(ranked, setup)
        tied += [int(np.count_nonzero(worst.rank != best.rank))] * len(FIGURES)
    return {**{name: np.array(values) for name, values in ends.items()}, "tied": np.array(tied, np.int64)}


def extreme_ranks(ranked: RankedSet, setup: str) -> tuple[QueryRanks, QueryRanks]:
    """Ranks of positives with negatives first, and with positives first, among equal scores; junk is in neither."""
    found, query = ranked.read(), ranked.labelled.pairs.query
    right, junk = flags(ranked.labelled, setup)
    labelled = right | junk
    order = np.lexsort((found.distance, query))  # by query, then distance
    step = np.ones(len(order), np.bool_)
    step[1:] = (np.diff(query[order]) != 0) | (np.diff(found.distance[order]) != 0)
    group = np.empty(len(order), np.int64)  # of pairs of one query with equal scores, which also count on
    group[order] = np.cumsum(step) - 1
    size = np.bincount(group[labelled], minlength=int(step.sum()))  # labelled pairs in each group
    passed = np.cumsum(size) - size  # labelled pairs before each group, of this query and those before it
    first = np.searchsorted(query[order], query)  # pairs of queries before
    closer = passed[group] - _labelled_before(labelled[order])[first]
    negatives = found.fewest - closer  # strictly closer, neither positive nor junk
    shared = found.most + 1 - found.fewest - size[group]  # as near, neither positive nor junk
    turn = np.empty(len(order), np.int64)  # of each positive among those of its query
    chosen = order[right[order]]
    turn[chosen] = np.arange(len(chosen)) - np.searchsorted(query[chosen], query[chosen])
    ranks = []
    for before in (negatives + shared, negatives):
        ranks.append(QueryRanks(query[chosen], (before + turn)[chosen], turn[chosen], chosen))
    return ranks[0], ranks[1]


def _labelled_before(labelled: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many labelled pairs stand before each place."""
    return np.concatenate([[0], np.cumsum(labelled)]).astype(np.int64)


def revisited_ties(
    ranked: Sequence[RankedSet], scores: Sequence[Arrays], ties: Sequence[Arrays]
) -> Iterator[TiedFigure]:
    """Each figure of the main table with its worst and best case."""
    for one, scored, extremes in zip(ranked, scores, ties, strict=True):
        places = [FigureOf(row_name(one.set_name, setup), figure.name) for setup in SETUPS for figure in FIGURES]
        found = [value for number in range(len(SETUPS)) for value in means(scored["values"][number])]
        values = [float("nan") if value is None else value for value in found]
        yield from tied_figures(places, values, extremes)
