"""hpatches-verification of 3 x 200,000 pairs at 3 levels on one core, against scipy pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybench.benchmarks.hpatches.inputs import NOISE_LEVELS
from raybench.benchmarks.hpatches.verification import (
    NEGATIVES,
    PAIR_FILES,
    Ranking,
    rank_lists,
    score_ranking,
)
from raybench.benchmarks.pair_groups import PairSequences
from raybench.benchmarks.samples import write_samples
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.metrics.partials import Rows
from raybench.search.pairs import Pairs, pair_distances
from tests.perf import levels, published
from tests.perf.figures import Figure, best_of_each

ROUNDS = 3
PATCHES, PER_LIST = 600, 200_000
SAMPLE = 20_000  # pairs that the baseline is timed on
TARGET = 15.0


def figures(folder: Path) -> Iterator[Figure]:
    """Distances alone, as the baseline computes them; then with fold, ranking and curves."""
    stored = levels.features(_run(folder, "features"), PATCHES)
    pairs = levels.verification(PATCHES, PER_LIST)
    rows = np.stack([pairs.a_image * PATCHES + pairs.a_patch, pairs.b_image * PATCHES + pairs.b_patch], 1)
    chosen = np.random.default_rng(1).choice(len(rows), SAMPLE, replace=False)
    every = np.concatenate([stored.mapped.read(shard.index)["vectors"] for shard in stored.mapped.shards])
    fresh = (_run(folder, f"round-{number}") for number in range(2 * ROUNDS + 1))

    distances = verify(next(fresh), stored, pairs).read(0)["values"]
    np.testing.assert_allclose(distances[chosen], published.verification(every, rows[chosen]), rtol=1e-5)
    scale = len(pairs) / SAMPLE
    alone, baseline = best_of_each(
        lambda: measure(next(fresh), stored, pairs), lambda: published.verification(every, rows[chosen]), ROUNDS
    )
    what = f"3 x {PER_LIST:,} pairs x 3 levels, {levels.DIMENSION}-d"
    note = "distances, order and publishing included"
    yield Figure(what, alone, "scipy a pair", baseline * scale, TARGET, note)
    ours, baseline = best_of_each(
        lambda: verify(next(fresh), stored, pairs), lambda: published.verification(every, rows[chosen]), ROUNDS
    )
    note = "with fold, ranking, curves and samples, which the baseline does not do"
    yield Figure("the same to its table's figures", ours, "scipy a pair", baseline * scale, None, note)


def measure(run: Run, stored: Features, pairs: Pairs) -> Mapped:
    """Distances of all pairs, with features that nobody has opened yet."""
    features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
    return pair_distances(run, features, pairs, "L2", None)


def verify(run: Run, stored: Features, pairs: Pairs) -> Mapped:
    """Distances of all pairs, once every ranking is scored from them."""
    distances = run.fold(measure(run, stored, pairs), Rows)
    ranked = run.each(rank_lists, rankings(), sequences(), distances, version=1)
    write_samples(run, rankings(), ranked)
    run.each(score_ranking, rankings(), ranked, version=1)
    return distances


def sequences() -> dict[str, PairSequences]:
    """Pairs of each list, within one of as many sequences as the published set has."""
    within = np.arange(PER_LIST) % 116
    made = PairSequences.of([f"s{number}" for number in range(116)], within, within)
    return {stem.format("made"): made for stem in PAIR_FILES.values()}


def rankings() -> tuple[Ranking, ...]:
    """What the benchmark ranks: at each level positives with either kind of negatives, balanced and not."""
    made = []
    for level, noise in enumerate(NOISE_LEVELS):
        start = 3 * level * PER_LIST
        for place, kind in enumerate(NEGATIVES, 1):
            positives = slice(start, start + PER_LIST)
            negatives = slice(start + place * PER_LIST, start + (place + 1) * PER_LIST)
            made += [Ranking("made", noise, kind, balanced, positives, negatives) for balanced in (True, False)]
    return tuple(made)


def _run(folder: Path, name: str) -> Run:
    return Run(f"{folder}/{name}/out", f"{folder}/{name}/store", InlineExecutor(Observer()), Observer())
