"""Figures of image-retrieval, from where each query's labelled references stand among all; and the tables of them.

Every reference is ranked, by distance, then by index; junk is taken out first. `metrics.query_figures` has the figures
of one query; those here are means over the queries that have a relevant reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.images.figures import HEADLINE, Variant
from raybench.benchmarks.images.labelled_sets import Labels
from raybench.engine.stages import Mapped
from raybench.formats.names import Names
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics.query_figures import query_ndcg, query_precision, query_recall, query_trec_ap
from raybench.metrics.query_ranks import QueryRanks
from raybench.search.set_standings import PairStandings
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of

KEYS = ("codec", "score_norm")
COUNT = "queries"
CUTS = (1, 5, 10)
MEANS = (
    Figure(
        "mAP",
        "mean over queries of trec_eval's AP (precision at each relevant reference in the ranking of all, over all "
        "that are relevant)",
    ),
    *(
        Figure(f"mAP_at_{cut}", f"the same of the first {cut} alone, still over all relevant ones" if cut == 10 else "")
        for cut in CUTS
    ),
    *(
        Figure(f"precision_at_{cut}", f"relevant ones among the first {cut}, over {cut}" if cut == 10 else "")
        for cut in CUTS
    ),
    *(
        Figure(f"recall_at_{cut}", f"relevant ones among the first {cut}, over all relevant ones" if cut == 10 else "")
        for cut in CUTS
    ),
    Figure("nDCG", "gain: the number that the truth gives, else 1; divided by log2(rank + 1), over the best order's"),
    Figure("nDCG_at_10"),
)
UAP = HEADLINE[0]
IN_MAIN = ("mAP", "mAP_at_10", "precision_at_1", "precision_at_10", "recall_at_1", "recall_at_10")
MAIN_MEANS = tuple(figure for figure in MEANS if figure.name in IN_MAIN)
MAIN_FIGURES = (UAP, *MAIN_MEANS)
IN_MAIN_PLACES = [columns_of(MEANS).index(name) for name in IN_MAIN]
RETRIEVAL_FRACTIONS = fractions_of((*MEANS, UAP))
SHORT = (("mAP", "ap"), ("precision", "p"), ("recall", "r"), ("nDCG", "ndcg"))  # in the file of single queries


@dataclass(frozen=True)
class Ranking:
    """A row of the main table, and the standings of the pairs of `Labels.counted` in it: one shard, a PairStandings."""

    variant: Variant
    standings: Mapped

    @property
    def name(self) -> str:
        return self.variant.name

    def read(self) -> PairStandings:
        return PairStandings.from_arrays(self.standings.read(0))


def main_note(k: int, by_query: bool) -> str:
    """The main figures in words, with how many candidates uAP is over."""
    pool = (
        f"the {k:,} best candidates of each query"
        if by_query
        else f"the best pairs of all, {k:,} times as many as queries,"
    )
    words = f"step AP over {pool} in one pool, wrong ones first among equal scores"
    return note_of((replace(UAP, words=words), *MAIN_MEANS))


def measure_queries(ranking: Ranking, labels: Labels, queries: int) -> Arrays:
    """The figures of every query (queries, MEANS), nan of one without relevant references; its positives, its junk."""
    counted = labels.counted
    is_junk = counted.gain == 0
    ranks = QueryRanks.of(counted.pairs.query, ranking.read().before, ~is_junk, is_junk)
    return {
        "values": query_values(ranks, counted.gain, queries),
        "positives": ranks.positives(queries),
        "junk": np.bincount(labels.junk.query, minlength=queries),
    }


def query_values(ranks: QueryRanks, gain: NDArray[np.float64], queries: int) -> NDArray[np.float64]:
    """The figures of every query, (queries, MEANS)."""
    columns = (
        query_trec_ap(ranks, queries),
        *(query_trec_ap(ranks, queries, cut) for cut in CUTS),
        *(query_precision(ranks, queries, cut) for cut in CUTS),
        *(query_recall(ranks, queries, cut) for cut in CUTS),
        query_ndcg(ranks, gain, queries),
        query_ndcg(ranks, gain, queries, CUTS[-1]),
    )
    return np.stack(columns, axis=1)


def query_means(_: Ranking, measured: Arrays) -> Arrays:
    """The means over the queries that count, and how many they are."""
    values = measured["values"][measured["positives"] > 0]
    means = values.mean(axis=0) if len(values) else np.full(len(MEANS), np.nan)
    return {"means": means, "queries": np.array([len(values)])}


def retrieval_table(
    order: Iterable[Variant],
    scored: Mapping[Variant, Arrays],
    means: Mapping[Variant, Arrays],
    metadata: str | None,
    notes: Iterable[str],
) -> Table:
    """The main table; a codec that failed has empty cells."""
    extra, last = ((), ()) if metadata is None else ((metadata,), ("metadata",))
    rows = []
    for one in order:
        measured = means.get(one)
        count = None if measured is None else int(measured["queries"][0])
        uap = _cell(scored[one]["uAP"][0]) if one in scored else None
        cells = [_cell(measured["means"][place]) if measured else None for place in IN_MAIN_PLACES]
        rows.append((one.codec, one.score_norm, count, uap, *cells, *extra))
    columns = (*KEYS, COUNT, *columns_of(MAIN_FIGURES), *last)
    return Table("image_retrieval", columns, tuple(rows), RETRIEVAL_FRACTIONS, tuple(notes))


def all_means_table(order: Iterable[Variant], means: Mapping[Variant, Arrays], note: str) -> Table:
    """Every mean over queries."""
    rows = []
    for one in order:
        measured = means.get(one)
        cells = [_cell(value) for value in measured["means"]] if measured else [None] * len(MEANS)
        rows.append((one.codec, one.score_norm, int(measured["queries"][0]) if measured else None, *cells))
    return Table("retrieval_figures", (*KEYS, COUNT, *columns_of(MEANS)), tuple(rows), RETRIEVAL_FRACTIONS, (note,))


def graded_notes(labels: Labels, order: Iterable[Variant], means: Mapping[Variant, Arrays]) -> Iterator[str]:
    """nDCG of the first row, where grades are numbers: what such a truth is for stands in a further table."""
    first = next((one for one in order if one in means), None)
    if first is None or not np.any((labels.gain != 0) & (labels.gain != 1)):
        return
    whole, cut = (100 * float(value) for value in means[first]["means"][-2:])
    yield (
        f"By numeric grades: nDCG {whole:.2f}, nDCG_at_10 {cut:.2f} ({first.codec}, {first.score_norm}); "
        "tables/retrieval_figures.csv has both for every row."
    )


def per_query_file(_: str, rankings: Sequence[Ranking], measured: Mapped, queries: Names) -> bytes:
    """The figures of every query by every row of the main table, as Parquet; there is one such file."""
    parts = list(_per_query(rankings, measured, queries))
    return write_parquet({name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {})


def _per_query(rankings: Sequence[Ranking], measured: Mapped, queries: Names) -> Iterator[Arrays]:
    names = np.array(queries.array.to_pylist(), np.object_)
    for number, ranking in enumerate(rankings):
        arrays = measured.read(number)
        yield {
            "codec": np.full(len(names), ranking.variant.codec, np.object_),
            "score_norm": np.full(len(names), ranking.variant.score_norm, np.object_),
            "query": names,
            "positives": arrays["positives"],
            "junk": arrays["junk"],
            **{_short(name): values for name, values in zip(columns_of(MEANS), arrays["values"].T, strict=True)},
        }


def _short(name: str) -> str:
    """The column of one query's figure.

    >>> _short("mAP_at_10"), _short("precision_at_1")
    ('ap_at_10', 'p_at_1')
    """
    for long, short in SHORT:
        name = name.replace(long, short)
    return name


def _cell(value: float) -> Cell:
    return None if np.isnan(value) else float(value)
