"""Drawing figures again: µAP of 500,000 predictions, and the pairs of a full HPatches task, a thousand draws each.

The baseline writes out the list that a draw stands for and ranks it, for a few draws only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybench.metrics.draws import sample_draws
from raybench.metrics.pooled_items import pooled_items
from raybench.metrics.samples import FigureOf, RankedSample, Units, ranked_figure
from tests.perf.figures import Figure, best_of_each
from tests.perf.pooled import QUERIES, made

ROUNDS, DRAWS, PLAIN_DRAWS = 3, 1_000, 10
PAIRS, POSITIVES, SEQUENCES = 1_000_000, 0.3, 100
TARGET = 2.0


def figures(folder: Path) -> Iterator[Figure]:
    """Both kinds of rankings, by as many threads as there are cores."""
    threads = len(os.sched_getaffinity(0))
    for what, sample in (("µAP, 500,000 predictions", pool()), ("AP and AUC, 1,000,000 pairs", pairs())):
        np.testing.assert_array_equal(plain(sample)[-1], [draws[-1] for draws in drawn(sample, PLAIN_DRAWS, 1)])
        ours, baseline = best_of_each(
            lambda sample=sample: drawn(sample, DRAWS, threads), lambda sample=sample: plain(sample), ROUNDS
        )
        note = f"{threads} threads; the baseline has {PLAIN_DRAWS} draws, times {DRAWS // PLAIN_DRAWS}"
        yield Figure(f"{what}, {DRAWS:,} draws", ours, "lists", baseline * (DRAWS // PLAIN_DRAWS), TARGET, note)


def drawn(sample: RankedSample, draws: int, threads: int) -> list[np.ndarray]:
    """The figures of every draw."""
    return list(sample_draws(sample, draws, 0, threads).values())


def plain(sample: RankedSample) -> list[list[float]]:
    """The same for a few draws, from lists written out."""
    found = []
    for times in sample.units.draws(PLAIN_DRAWS, 0):
        within = sample.first == sample.second
        weights = np.where(within, times[sample.first], times[sample.first] * times[sample.second])
        ranked = np.repeat(sample.positive, weights)
        missed = int((sample.missed * times).sum())
        found.append([ranked_figure(flavour, ranked, missed) for flavour in sample.flavours])
    return found


def pool() -> RankedSample:
    """The predictions of `tests.perf.pooled`."""
    truth, predictions = made()
    items = pooled_items(truth, lambda: [predictions])
    positive, query = items.ranked()
    missed = np.bincount(truth.query, minlength=QUERIES) - np.bincount(items.query, minlength=QUERIES)
    return sample_of(("step_ap", "recall_at_p90"), QUERIES, positive, query, query, missed)


def pairs() -> RankedSample:
    """Positives within sequences, mostly on top; negatives between them."""
    random = np.random.default_rng(0)
    positive = random.random(PAIRS) < POSITIVES
    positive = positive[np.argsort(-random.normal(size=PAIRS) - 2.5 * positive)]
    first, other = random.integers(0, SEQUENCES, (2, PAIRS)).astype(np.int32)
    second = np.where(positive, first, other)
    return sample_of(("step_ap", "roc_auc"), SEQUENCES, positive, first, second, np.zeros(SEQUENCES, np.int64))


def sample_of(flavours: tuple[str, ...], units: int, *arrays: np.ndarray) -> RankedSample:
    """A sample with made-up names."""
    names = tuple(FigureOf("row", flavour) for flavour in flavours)
    return RankedSample(names, flavours, Units.plain([str(number) for number in range(units)]), *arrays)
