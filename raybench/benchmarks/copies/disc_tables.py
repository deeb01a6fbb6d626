"""The tables of DISC2021: the published one, every headline variant side by side, thresholds and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raybench.benchmarks.copies.scores import Scored, Variant
from raybench.metrics.bootstrap import CONFIDENCE, RESAMPLES
from raybench.metrics.micro_ap import PRECISIONS, PooledFigures
from raybench.table import Cell, Table

COLUMNS = ("codec", "score_norm", "uAP", "accuracy-at-1", "recall-at-p90")
VARIANT = ("codec", "score_norm", "candidates")
VARIANT_COLUMNS = (
    *VARIANT,
    *("uAP", "accuracy-at-1", "recall-at-p90", "recall_at_10", "recall_at_p95", "recall_at_p99"),
    *("threshold_at_p90", "threshold_at_p95", "threshold_at_p99"),
)
INTERVAL_COLUMNS = (*VARIANT, "uAP", "uAP_low", "uAP_high")
THRESHOLD_COLUMNS = (
    *(*VARIANT, "precision", "recall", "recall_low", "recall_high"),
    *("threshold", "threshold_low", "threshold_high"),
)
FRACTIONS = frozenset(
    (*VARIANT_COLUMNS[3:9], *INTERVAL_COLUMNS[3:], "precision", "recall", "recall_low", "recall_high")
)
DRAWN = f"low, high: the middle {CONFIDENCE:.0%} of {RESAMPLES:,} draws of queries with replacement."


def main_table(scored: Scored, chosen: Iterable[Variant], metadata: str | None, notes: Iterable[str]) -> Table:
    """The published table; a variant without figures has empty cells."""
    extra = () if metadata is None else (metadata,)
    rows = [(one.codec, one.score_norm, *_cells(scored.figures.get(one))[:3], *extra) for one in chosen]
    columns = COLUMNS if metadata is None else (*COLUMNS, "metadata")
    return Table("disc_metrics", columns, tuple(rows), FRACTIONS, tuple(notes))


def further_tables(scored: Scored, order: Sequence[Variant]) -> tuple[Table, ...]:
    """Every variant with all its figures; a card of thresholds; the intervals of µAP."""
    variants = tuple((*_named(one), *_cells(scored.figures.get(one))) for one in order)
    known = [one for one in order if one in scored.figures]
    thresholds = tuple(row for one in known for row in _threshold_rows(scored, one))
    intervals = tuple(
        (*_named(one), scored.figures[one].micro_ap, found[0].low, found[0].high)
        for one in known
        if (found := scored.intervals[one])
    )
    kinds = "knn: k candidates a query; global: the best k x queries pairs over all. Thresholds are scores."
    use = f"Take what scores at least `threshold` for that precision on data like this. {DRAWN}"
    return (
        Table("disc_variants", VARIANT_COLUMNS, variants, FRACTIONS, (kinds,)),
        Table("disc_thresholds", THRESHOLD_COLUMNS, thresholds, FRACTIONS, (use,)),
        Table("disc_intervals", INTERVAL_COLUMNS, intervals, FRACTIONS, (DRAWN,)),
    )


def _threshold_rows(scored: Scored, variant: Variant) -> Iterable[tuple[Cell, ...]]:
    of_recall = scored.intervals[variant][1 : 1 + len(PRECISIONS)]
    of_threshold = scored.intervals[variant][1 + len(PRECISIONS) :]
    points = scored.figures[variant].at_precision
    for point, recall, threshold in zip(points, of_recall, of_threshold, strict=True):
        figures = (point.recall, recall.low, recall.high, point.threshold, threshold.low, threshold.high)
        yield (*_named(variant), point.precision, *figures)


def _named(variant: Variant) -> tuple[str, str, str]:
    return variant.codec, variant.score_norm, variant.candidates


def _cells(found: PooledFigures | None) -> tuple[Cell, ...]:
    """Figures in the order of the variants' columns; nothing of a codec that failed."""
    if found is None:
        return (None,) * len(VARIANT_COLUMNS[3:])
    points = found.at_precision
    return (
        *(found.micro_ap, found.accuracy_at_1, points[0].recall, found.recall_at_10),
        *(point.recall for point in points[1:]),
        *(point.threshold for point in points),
    )
