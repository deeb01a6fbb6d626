"""hbench-classification of 1.2 M pairs on one core, from vectors in a store to figures, against scipy pair by pair."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from raybench.benchmarks.hbench.classification import TaskRanking, rank_pairs, score_task
from raybench.benchmarks.hbench.pairs import PairTask, Segment
from raybench.benchmarks.pair_groups import PairSequences
from raybench.benchmarks.samples import write_samples
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.metrics.partials import Rows
from raybench.search.distances import row_distances
from raybench.search.pairs import Pairs, pair_distances
from tests.perf import published, scene
from tests.perf.figures import Figure, best_of_each

ROUNDS = 5
SAMPLE = 20_000  # pairs that the baseline is timed on
TARGET = 15.0


def figures(folder: Path) -> Iterator[Figure]:
    """Distances, fold and scores of one task; the baseline computes distances alone."""
    stored = scene.features(_run(folder, "features"))
    pairs = scene.pairs()
    task = _task(len(pairs))
    rows = np.stack([pairs.a_image * scene.PATCHES + pairs.a_patch, pairs.b_image * scene.PATCHES + pairs.b_patch], 1)
    chosen = np.random.default_rng(1).choice(len(rows), SAMPLE, replace=False)
    sample = rows[chosen]
    every = np.concatenate([stored.mapped.read(shard.index)["vectors"] for shard in stored.mapped.shards])
    fresh = (_run(folder, f"round-{number}") for number in range(2 * ROUNDS + 2))

    distances = classify(next(fresh), stored, pairs, task).read(0)["values"]
    np.testing.assert_allclose(distances[chosen], published.verification(every, sample), rtol=1e-5)
    scale = len(pairs) / SAMPLE
    alone, baseline = best_of_each(
        lambda: measure(next(fresh), stored, pairs), lambda: published.verification(every, sample), ROUNDS
    )
    what = "distances, order and publishing included"
    yield Figure(
        f"{len(pairs):,} pairs, {scene.DIMENSION}-d, one core", alone, "scipy a pair", baseline * scale, TARGET, what
    )
    ours, baseline = best_of_each(
        lambda: classify(next(fresh), stored, pairs, task), lambda: published.verification(every, sample), ROUNDS
    )
    shares = _shares(next(fresh), stored, pairs, task)
    shares = f"with fold, ranking, curves and samples, which the baseline does not do; {shares}"
    yield Figure("the same to its table's figures", ours, "scipy a pair", baseline * scale, None, shares)


def measure(run: Run, stored: Features, pairs: Pairs) -> Mapped:
    """Distances of all pairs, with features that nobody has opened yet."""
    features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
    return pair_distances(run, features, pairs, "L2", None)


def classify(run: Run, stored: Features, pairs: Pairs, task: PairTask) -> Mapped:
    """Distances of all pairs, once the task is scored from them; with features that nobody has opened yet."""
    distances = run.fold(measure(run, stored, pairs), Rows)
    sequences = PairSequences.of(
        [f"s{number}" for number in range(scene.SEQUENCES)],
        pairs.a_image // scene.IMAGES,
        pairs.b_image // scene.IMAGES,
    )
    rankings = [(TaskRanking(task, sequences, balanced),) for balanced in (False, True)]
    ranked = [run.each(rank_pairs, own, distances, version=1) for own in rankings]
    for own, stage in zip(rankings, ranked, strict=True):
        write_samples(run, own, stage)
    run.each(score_task, (task,), *ranked, version=1)
    return distances


def _task(count: int) -> PairTask:
    return PairTask("made", (Segment("made", (count,), None, 0, np.arange(count) < scene.POSITIVES),))


def _run(folder: Path, name: str) -> Run:
    return Run(f"{folder}/{name}/out", f"{folder}/{name}/store", InlineExecutor(Observer()), Observer())


def _shares(run: Run, stored: Features, pairs: Pairs, task: PairTask) -> str:
    """Where the time of one more round goes, in words."""
    spent: defaultdict[str, float] = defaultdict(float)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args)
            finally:
                spent[part] += time.perf_counter() - started

        return call

    with (
        mock.patch.object(Features, "gather", timed("gather", Features.gather)),
        mock.patch("raybench.search.pairs.row_distances", timed("distance", row_distances)),
    ):
        timed("all", classify)(run, stored, pairs, task)
    whole = spent.pop("all")
    stages: defaultdict[str, float] = defaultdict(float)
    for record in run.records:
        stages[record.name] += record.seconds
    spent["rest of pairs (sort, publish)"] = stages["pairs"] - sum(spent.values())
    spent["fold"], spent["ranking"], spent["scoring"], spent["samples"] = (
        stages[name] for name in ("pairs-fold", "rank-pairs", "score-task", "sample-file")
    )
    spent["order, digest"] = whole - sum(spent.values())
    return "of one round: " + ", ".join(f"{part} {seconds / whole:.0%}" for part, seconds in spent.items())
