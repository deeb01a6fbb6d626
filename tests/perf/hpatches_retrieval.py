"""hpatches-retrieval of 2,000 queries, 20,000 distractors, 3 levels, 7 pools on one core, against sorting each list."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybench.benchmarks.hpatches.inputs import NOISE_LEVELS
from raybench.benchmarks.hpatches.retrieval import POOL_SIZES, POSITIVES, SplitQueries, score_queries
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.metrics.partials import Counts, Rows
from raybench.search.count_closer import count_closer
from raybench.search.pairs import Pairs, pair_distances
from tests.perf import levels, published
from tests.perf.figures import Figure, Memory, best_of_each, peak_resident_bytes

ROUNDS = 3
PATCHES, QUERIES, DISTRACTORS = 600, 2_000, 20_000
SAMPLE = 40  # queries that the baseline is timed on
TARGET = 40.0
LARGE_PATCHES, LARGE_QUERIES = 800, 10_000  # for the peak of memory; the published split a has as many queries
MOST_BYTES = 1.5e9


def figures(folder: Path) -> Iterator[Figure | Memory]:
    """From features in a store to the AP of every query; the baseline has its vectors in memory."""
    stored = levels.features(_run(folder, "features"), PATCHES)
    split, views = levels.retrieval(PATCHES, QUERIES, DISTRACTORS)
    fresh = (_run(folder, f"round-{number}") for number in range(ROUNDS + 1))
    ap = retrieve(next(fresh), stored, split, views).read(0)["ap"]
    chosen = np.random.default_rng(1).choice(QUERIES, SAMPLE, replace=False)
    sample = baseline_inputs(stored, split, chosen)
    expected = published.retrieval(*sample)
    for level, noise in enumerate(NOISE_LEVELS):
        np.testing.assert_allclose(ap[chosen, level], expected[noise], atol=1e-9)
    ours, baseline = best_of_each(
        lambda: retrieve(next(fresh), stored, split, views), lambda: published.retrieval(*sample), ROUNDS
    )
    what = f"{QUERIES:,} x {DISTRACTORS:,} x {len(NOISE_LEVELS)} levels x {len(POOL_SIZES)} pools"
    note = f"mean AP {ap.mean():.3f}; distances of views, counts, fold, ranks and publishing included"
    yield Figure(what, ours, "sorted lists", baseline * QUERIES / SAMPLE, TARGET, note)
    command = [sys.executable, "-m", "tests.perf.hpatches_retrieval", f"{folder}/large"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    yield Memory(f"{LARGE_QUERIES:,} x {DISTRACTORS:,}, a process", int(said), MOST_BYTES)


def retrieve(run: Run, stored: Features, split: SplitQueries, views: Pairs) -> Mapped:
    """Scores of one split, with features that nobody has opened yet."""
    features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
    near = run.fold(pair_distances(run, features, views, "L2", None), Rows)
    closer = run.fold(count_closer(run, features, near, [split.search], "L2"), Counts)
    return run.each(score_queries, (split,), near, closer, version=1)


def baseline_inputs(stored: Features, split: SplitQueries, chosen: np.ndarray) -> tuple[object, ...]:
    """Vectors of the chosen queries, of their views by level, of all distractors, and which of these may be used."""
    asked, others = split.search.queries, split.search.references
    rows = [stored.whole(image)[patch] for image, patch in zip(asked.image[chosen], asked.patch[chosen], strict=True)]
    far = np.stack([stored.whole(i)[p] for i, p in zip(others.image.tolist(), others.patch.tolist(), strict=True)])
    views = {
        noise: np.stack(
            [
                [stored.whole(int(image) + 1 + POSITIVES * level + i)[patch] for i in range(POSITIVES)]
                for image, patch in zip(asked.image[chosen], asked.patch[chosen], strict=True)
            ]
        )
        for level, noise in enumerate(NOISE_LEVELS)
    }
    return np.stack(rows), views, far, asked.group[chosen][:, None] != others.group


def _run(folder: Path | str, name: str) -> Run:
    return Run(f"{folder}/{name}/out", f"{folder}/{name}/store", InlineExecutor(Observer()), Observer())


if __name__ == "__main__":
    place = sys.argv[1]
    large, pairs = levels.retrieval(LARGE_PATCHES, LARGE_QUERIES, DISTRACTORS)
    retrieve(_run(place, "run"), levels.features(_run(place, "features"), LARGE_PATCHES), large, pairs)
    print(peak_resident_bytes())
