"""Figures of copy detection, each beside the function that computes it, and the tables that show them.

DISC2021 (ISC 2021 metrics): all candidates of all queries in one pool, by falling score. Copydays (SSCD tools): AP by
trapezoids over the k nearest: the n-th (from 0) true result at rank r (from 0) adds the mean of n / r (1 if r is 0) and
(n + 1) / (r + 1), divided by the number of positives; positives beyond the k nearest add nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.engine.stages import Mapped
from raybench.formats.copydays import STRONG
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics.bootstrap import CONFIDENCE, RESAMPLES, interval, pooled_draws
from raybench.metrics.micro_ap import PRECISIONS, Predictions, TruePairs, count_blocks, measure, pooled_curve
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.metrics.ranking import negatives_first, trapezoid_ap
from raybench.table import Cell, Figure, Table, columns_of, fractions_of

VARIANT_COLUMNS = ("codec", "score_norm", "candidates")
CURVE = ("rank", "recall", "precision", "score")


@dataclass(frozen=True)
class Variant:
    """One row of figures: by which codec and normalisation, of which kind of candidates."""

    codec: str
    score_norm: str
    candidates: str

    @property
    def name(self) -> str:
        """A name for a file, another for each variant.

        >>> Variant("PCAW24,L2norm,Flat", "-1.00[0,2]", "knn").name
        'PCAW24-L2norm-Flat_minus1.00-0-2_knn'
        """
        parts = (self.codec, self.score_norm.replace("-", "minus"), self.candidates)
        return "_".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)

    @property
    def row(self) -> str:
        """The key cells of its row of the main table, as `table.figure_cells` joins them."""
        return f"{self.codec} | {self.score_norm}"

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.codec, self.score_norm, self.candidates


@dataclass(frozen=True)
class Candidates:
    """The pairs that a variant proposes for scoring, as published shards of query, reference and score."""

    variant: Variant
    mapped: Mapped

    @property
    def name(self) -> str:
        return self.variant.name

    def blocks(self) -> Iterator[Predictions]:
        """Shard by shard, so that one at a time is held."""
        for shard in self.mapped.shards:
            arrays = self.mapped.read(shard.index)
            yield Predictions(arrays["query"], arrays["reference"], arrays["score"])

    def read(self) -> Predictions:
        """All of them, where a search made them: one shard."""
        (pairs,) = self.blocks()
        return pairs


HEADLINE = (
    Figure("uAP", "step AP over all predictions in one pool, wrong ones first among equal scores"),
    Figure("accuracy-at-1", "share of true pairs whose reference stands alone at the top of its query"),
    Figure("recall-at-p90", "highest recall at precision >= 0.9"),
)
FURTHER = (
    *(Figure(name) for name in ("recall_at_10", "recall_at_p95", "recall_at_p99")),
    *(Figure(name, is_fraction=False) for name in ("threshold_at_p90", "threshold_at_p95", "threshold_at_p99")),
)
OF_UAP = tuple(Figure(name) for name in ("uAP", "uAP_low", "uAP_high"))
OF_PRECISION = (
    *(Figure(name) for name in ("precision", "recall", "recall_low", "recall_high")),
    *(Figure(name, is_fraction=False) for name in ("threshold", "threshold_low", "threshold_high")),
)
DISC_FRACTIONS = fractions_of((*HEADLINE, *FURTHER, *OF_UAP, *OF_PRECISION))
DRAWN = f"low, high: the middle {CONFIDENCE:.0%} of {RESAMPLES:,} draws of queries with replacement."


def score_candidates(candidates: Candidates, truth: TruePairs, queries: int, seed: int) -> Arrays:
    """Figures, their intervals (low, high; nan for an end that does not exist) and points of the curve.

    Recall and threshold are by precision, as in PRECISIONS.
    """
    found, counts = count_blocks(truth, candidates.blocks)
    figures, curve = measure(truth, found, counts), pooled_curve(truth, found, counts).thinned()
    draws = pooled_draws(truth, candidates.blocks, queries, seed=seed)
    return {
        "uAP": np.array([figures.micro_ap]),
        "accuracy_at_1": np.array([figures.accuracy_at_1]),
        "recall_at_10": np.array([figures.recall_at_10]),
        "recall_at": np.array([point.recall for point in figures.at_precision]),
        "threshold_at": np.array([point.threshold for point in figures.at_precision], np.float64),
        "uAP_interval": _intervals(draws.micro_ap[:, np.newaxis]),
        "recall_interval": _intervals(draws.recall),
        "threshold_interval": _intervals(draws.threshold),
        **{name: getattr(curve, name) for name in CURVE},
    }


def _intervals(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Low and high of each column."""
    ends = [interval(column) for column in draws.T]
    return np.array([(one.low, one.high) for one in ends], np.float64)


def pooled_curve_file(_: Candidates, scores: Arrays) -> bytes:
    """The points of a precision-recall curve."""
    return write_parquet({name: scores[name] for name in CURVE})


def disc_table(
    scored: Mapping[Variant, Arrays], chosen: Iterable[Variant], metadata: str | None, notes: Iterable[str]
) -> Table:
    """The published table; a variant without figures has empty cells."""
    extra, last = ((), ()) if metadata is None else ((metadata,), ("metadata",))
    rows = [(one.codec, one.score_norm, *_figures(scored.get(one))[: len(HEADLINE)], *extra) for one in chosen]
    columns = (*VARIANT_COLUMNS[:2], *columns_of(HEADLINE), *last)
    return Table("disc_metrics", columns, tuple(rows), DISC_FRACTIONS, tuple(notes))


def candidate_tables(family: str, scored: Mapping[Variant, Arrays], order: Sequence[Variant]) -> tuple[Table, ...]:
    """Every variant with all its figures; a card of thresholds; the intervals of µAP. `family` begins their names."""
    variants = tuple((*one.cells, *_figures(scored.get(one))) for one in order)
    thresholds = tuple(row for one, scores in scored.items() for row in _threshold_rows(one, scores))
    intervals = tuple(
        (*one.cells, *_cells(scores["uAP"]), *_cells(scores["uAP_interval"][0])) for one, scores in scored.items()
    )
    kinds = "knn: k candidates per query; global: the best k x queries pairs over all. Thresholds are scores."
    use = f"Take what scores at least `threshold` for that precision on data like this. {DRAWN}"
    return (
        _candidate_table(f"{family}_variants", (*HEADLINE, *FURTHER), variants, kinds),
        _candidate_table(f"{family}_thresholds", OF_PRECISION, thresholds, use),
        _candidate_table(f"{family}_intervals", OF_UAP, intervals, DRAWN),
    )


def _candidate_table(name: str, figures: Sequence[Figure], rows: tuple[tuple[Cell, ...], ...], note: str) -> Table:
    return Table(name, (*VARIANT_COLUMNS, *columns_of(figures)), rows, DISC_FRACTIONS, (note,))


def _figures(scores: Arrays | None) -> tuple[Cell, ...]:
    """The cells of HEADLINE and FURTHER; empty ones of a codec that failed."""
    if scores is None:
        return (None,) * len((*HEADLINE, *FURTHER))
    recall = _cells(scores["recall_at"])
    first = (*_cells(scores["uAP"]), *_cells(scores["accuracy_at_1"]), recall[0])
    return (*first, *_cells(scores["recall_at_10"]), *recall[1:], *_cells(scores["threshold_at"]))


def _threshold_rows(variant: Variant, scores: Arrays) -> Iterable[tuple[Cell, ...]]:
    for number, precision in enumerate(PRECISIONS):
        cells = [
            _cells(scores[f"{name}_{kind}"][number]) for name in ("recall", "threshold") for kind in ("at", "interval")
        ]
        yield (*variant.cells, precision, *(cell for some in cells for cell in some))


def _cells(values: Any) -> tuple[Cell, ...]:
    """Numbers for a table; nan becomes none."""
    return tuple(None if np.isnan(value) else float(value) for value in np.atleast_1d(values))


COPYDAYS_FIGURES = (
    Figure("strong_mAP", "mean trapezoid AP of the queries of block strong"),
    Figure(
        "overall_uAP",
        "trapezoid AP over all results of all queries in one pool (the originals are queries, too), wrong ones first "
        "at equal distance; the published tool calls it macro AP",
    ),
)
BLOCK_FIGURES = (Figure("mAP"),)
COPYDAYS_FRACTIONS = fractions_of((*COPYDAYS_FIGURES, *BLOCK_FIGURES))


@dataclass(frozen=True)
class CodecResults:
    """What a search by one codec (`name`) found for all queries: one shard, a TopK."""

    name: str
    nearest: Mapped

    def read(self) -> TopK:
        return TopK.from_arrays(self.nearest.read(0))


def score_blocks(results: CodecResults, truth: TruePairs, blocks: Mapping[str, NDArray[np.int64]]) -> Arrays:
    """Overall uAP, and the mAP of each block, of whose queries the index is given; nan for one without queries."""
    found = asked_results(results.read(), truth)
    each = found.average_precision
    maps = [each[np.searchsorted(found.query, own)].mean() if len(own) else np.nan for own in blocks.values()]
    overall = overall_micro_ap(found.relevant, found.distance, found.reference, len(found.query))
    return {"overall_uAP": np.array([overall]), "mAP": np.array(maps)}


@dataclass(frozen=True)
class AskedResults:
    """What was found for the queries that have a true original: (queries, k), nearest first."""

    query: NDArray[np.int64]  # (queries,)
    distance: NDArray[Any]
    reference: NDArray[np.int64]
    relevant: NDArray[np.bool_]
    positives: NDArray[np.int64]  # (queries,)

    @property
    def average_precision(self) -> NDArray[np.float64]:
        return query_ap(self.relevant, self.positives)


def asked_results(top: TopK, truth: TruePairs) -> AskedResults:
    """The results of the queries that have a true original."""
    asked = np.isin(top.query, truth.query)
    query, distance, reference = top.query[asked], top.distance[asked], top.reference[asked]
    positives = np.bincount(truth.query, minlength=int(query[-1]) + 1)[query]
    return AskedResults(query, distance, reference, relevant_results(truth, query, reference), positives)


def relevant_results(truth: TruePairs, query: NDArray[np.int64], reference: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which results are true: query (n,), reference (n, k)."""
    flat = truth.places(np.repeat(query, reference.shape[1]), reference.reshape(-1))
    relevant: NDArray[np.bool_] = (flat >= 0).reshape(reference.shape)
    return relevant


def query_ap(relevant: NDArray[np.bool_], positives: NDArray[np.int64]) -> NDArray[np.float64]:
    """AP of each query, from the truth of its results in order (n, k) and the number of its positives (n,), at least 1.

    >>> query_ap(np.array([[True, False, True], [False, True, False]]), np.array([2, 1])).tolist()
    [0.7916666666666666, 0.25]
    """
    found = np.cumsum(relevant, axis=1, dtype=np.int64)
    rank = np.arange(relevant.shape[1])
    before = np.where(rank > 0, (found - 1) / np.maximum(rank, 1), 1.0)
    here = found / (rank + 1)
    areas: NDArray[np.float64] = np.where(relevant, (before + here) / 2, 0.0).sum(axis=1) / positives
    return areas


def overall_micro_ap(
    relevant: NDArray[np.bool_], distance: NDArray[Any], reference: NDArray[np.int64], queries: int
) -> float:
    """All results in one pool by rising distance, divided by the number of queries; the tools call it "macro AP".

    At equal distance wrong ones stand first; the published sort leaves that to chance.

    >>> relevant, reference = np.array([[True, False], [True, False]]), np.array([[0, 1], [1, 0]])
    >>> overall_micro_ap(relevant, np.array([[0.0, 0.2], [0.1, 0.3]]), reference, 2)
    1.0
    """
    there = reference != NO_REFERENCE
    ranked = negatives_first(distance[relevant & there], distance[~relevant & there])
    return trapezoid_ap(ranked, queries)


def copydays_table(
    codecs: Iterable[str],
    scored: Mapping[str, Arrays],
    blocks: Sequence[str],
    metadata: str | None,
    notes: Iterable[str],
) -> Table:
    """The published table; a codec that failed has empty cells."""
    extra, last = ((), ()) if metadata is None else ((metadata,), ("metadata",))
    rows = []
    for codec in codecs:
        scores = scored.get(codec)
        overall = None if scores is None else float(scores["overall_uAP"][0])
        rows.append((codec, _block_maps(scores, blocks).get(STRONG), overall, *extra))
    columns = ("codec", *columns_of(COPYDAYS_FIGURES), *last)
    return Table("copydays_metrics", columns, tuple(rows), COPYDAYS_FRACTIONS, tuple(notes))


def blocks_table(codecs: Iterable[str], scored: Mapping[str, Arrays], blocks: Sequence[str]) -> Table:
    """The mAP of every block, by every codec."""
    rows = [(codec, *row) for codec in codecs for row in _block_maps(scored.get(codec), blocks).items()]
    return Table("blocks", ("codec", "block", *columns_of(BLOCK_FIGURES)), tuple(rows), COPYDAYS_FRACTIONS)


def _block_maps(scores: Arrays | None, blocks: Sequence[str]) -> dict[str, Cell]:
    return dict(zip(blocks, [None] * len(blocks) if scores is None else _cells(scores["mAP"]), strict=True))
