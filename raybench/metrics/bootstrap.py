"""Confidence intervals of pooled figures by drawing queries, not predictions, with replacement.

A query that is drawn twice brings its predictions and its true pairs twice, and copies of equal score follow the tie
rule (wrong first). Draws depend on the seed and the number of queries alone, so two runs over the same queries are
drawn alike, and the differences of their draws are those of a paired test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.micro_ap import PRECISIONS, Predictions, TruePairs

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
    predictions: Predictions,
    queries: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PooledDraws:
    """Figures of `resamples` draws of `queries` queries, which are numbered from 0; some may have no prediction."""
    places = truth.places(predictions.query, predictions.reference)
    hit = places >= 0
    found = _by_falling_score(predictions.query[hit], predictions.score[hit])
    wrong = _by_falling_score(predictions.query[~hit], predictions.score[~hit])
    ahead = np.searchsorted(-wrong[1], -found[1], side="right")  # wrong ones with at least a found pair's score
    random = np.random.default_rng(seed)
    micro_ap = np.full(resamples, np.nan)
    recall, threshold = (np.full((resamples, len(PRECISIONS)), np.nan) for _ in range(2))
    for draw in range(resamples):
        times = np.bincount(random.integers(0, queries, queries), minlength=queries)
        pairs = int(times[truth.query].sum())
        if pairs:
            precision, score = _points(times, found, wrong[0], ahead)
            micro_ap[draw] = precision.sum() / pairs
            for column, least in enumerate(PRECISIONS):
                good = np.flatnonzero(precision >= least)
                recall[draw, column] = (good[-1] + 1) / pairs if len(good) else 0.0
                threshold[draw, column] = score[good[-1]] if len(good) else np.inf
    return PooledDraws(micro_ap, recall, threshold)


def _by_falling_score(
    query: NDArray[np.int64], score: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    order = np.argsort(-score, kind="stable")
    return query[order], score[order].astype(np.float64)


def _points(
    times: NDArray[np.int64],
    found: tuple[NDArray[np.int64], NDArray[np.float64]],
    wrong: NDArray[np.int64],
    ahead: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and score at each copy of a found pair, where each query counts so many times."""
    weight = np.concatenate([[0], np.cumsum(times[wrong])])
    copies = times[found[0]]
    rank = np.arange(1, int(copies.sum()) + 1)
    return rank / (rank + np.repeat(weight[ahead], copies)), np.repeat(found[1], copies)


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
