"""Confidence intervals of pooled figures by drawing queries, not predictions, with replacement.

A query that is drawn twice brings its predictions and its true pairs twice, and copies of equal score follow the tie
rule (wrong first). Draws depend on the seed and the number of queries alone, so two runs over the same queries are
drawn alike, and the differences of their draws are those of a paired test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.micro_ap import PRECISIONS, Blocks, TruePairs
from raybench.metrics.pooled_items import pooled_items
from raybench.metrics.samples import unit_draws

RESAMPLES = 1_000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """Where a figure lies in the middle share of the draws; None for an end that does not exist (no threshold)."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class PooledDraws:
    """The figures of every draw; nan where none of the drawn queries has a true pair.

    A threshold is inf where no score is precise enough.
    """

    micro_ap: NDArray[np.float64]  # (draws,)
    recall: NDArray[np.float64]  # (draws, precisions)
    threshold: NDArray[np.float64]  # (draws, precisions)


def pooled_draws(
    truth: TruePairs,
    blocks: Blocks,
    queries: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PooledDraws:
    """Figures of `resamples` draws of `queries` queries, which are numbered from 0; some may have no prediction."""
    items = pooled_items(truth, blocks)
    ranking = items.ranking(queries)
    micro_ap = np.full(resamples, np.nan)
    recall, threshold = (np.full((resamples, len(PRECISIONS)), np.nan) for _ in range(2))
    for draw, times in enumerate(unit_draws(np.zeros(queries, np.int32), resamples, seed)):
        pairs = int(times[truth.query].sum())
        if pairs:
            drawn = ranking.ranks(times)
            precision, score = drawn.precision, np.repeat(items.score, drawn.copies)
            micro_ap[draw] = precision.sum() / pairs
            for column, least in enumerate(PRECISIONS):
                good = np.flatnonzero(precision >= least)
                recall[draw, column] = (good[-1] + 1) / pairs if len(good) else 0.0
                threshold[draw, column] = score[good[-1]] if len(good) else np.inf
    return PooledDraws(micro_ap, recall, threshold)


def interval(draws: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """The middle share of the draws, nan ones aside; ends are draws themselves, as many beyond one as beyond the other.

    >>> interval(np.arange(1000.0), 0.95)
    Interval(low=25.0, high=974.0)
    """
    there = np.sort(draws[~np.isnan(draws)])
    if not len(there):
        return Interval(None, None)
    beyond = int(round((1 - confidence) / 2 * len(there), 9))
    low, high = (float(end) if np.isfinite(end) else None for end in (there[beyond], there[len(there) - 1 - beyond]))
    return Interval(low, high)
