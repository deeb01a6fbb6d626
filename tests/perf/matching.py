"""hbench-matching of 75 image pairs of 1,500 patches on one core, from vectors in a store to figures, against cdist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.image_pairs import MatchingTask
from raybench.benchmarks.hbench.matching import score_matches
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.extract.patches import IMAGES_PER_SHARD, Features
from raybench.formats.hbench_matching import ImagePair
from raybench.formats.shardfile import Arrays
from raybench.search.neighbours import ImagePairs, Matches, match_images
from tests.perf import published
from tests.perf.figures import Figure, best_of_each

ROUNDS = 3
SEQUENCES, IMAGES, PATCHES, DIMENSION = 5, 16, 1_500, 128
TARGET = 8.0


@dataclass(frozen=True)
class MadeVectors:
    """A stage in place of extraction: patches of one scene point are noisy copies of one random vector."""

    name = "extract"
    digest = "made-vectors-for-matching-1"
    on_device = False

    def load(self, shard: Shard) -> Shard:
        return shard

    def compute(self, payload: Shard) -> Arrays:
        vectors = []
        for image in range(payload.start, payload.stop):
            scene = np.random.default_rng([1, image // IMAGES]).standard_normal((PATCHES, DIMENSION), np.float32)
            noise = np.random.default_rng([2, image]).standard_normal((PATCHES, DIMENSION), np.float32)
            vectors.append(scene + noise)
        return {"vectors": np.concatenate(vectors), "counts": np.full(len(payload), PATCHES, np.int64)}

    def keys(self, shard: Shard) -> str:
        return f"images {shard.start}..{shard.stop - 1}"


def figures(folder: Path) -> Iterator[Figure]:
    """Two neighbours, the rank of the true one and all figures; the baseline finds one neighbour and one AP."""
    run = _run(folder, "features")
    images = tuple(f"s{image // IMAGES}/{image % IMAGES:02d}" for image in range(SEQUENCES * IMAGES))
    mapped = run.map(MadeVectors(), len(images), IMAGES_PER_SHARD)
    stored = Features(mapped, run.store, images, IMAGES_PER_SHARD)
    every = [stored.whole(image) for image in range(len(images))]
    fresh = (_run(folder, f"round-{number}") for number in range(ROUNDS + 1))

    _check(match(next(fresh), stored), baseline(every))
    ours, theirs = best_of_each(lambda: match(next(fresh), stored), lambda: baseline(every), ROUNDS)
    what = f"{len(_pairs())} image pairs, {PATCHES:,} patches, one core"
    note = f"{ours / len(_pairs()) * 1_000:.1f} ms per pair, ranks, scores and published shards included"
    yield Figure(what, ours, "cdist", theirs, TARGET, note)


def match(run: Run, stored: Features) -> Matches:
    """The matches of all pairs, once they are scored; with features that nobody has opened yet."""
    features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
    pairs = _pairs()
    matches = match_images(run, features, pairs, 2, "L2", None)
    listed = tuple(ImagePair(stored.images[a], stored.images[b]) for a, b in zip(pairs.a, pairs.b, strict=True))
    task = MatchingTask("made", listed, pairs.truth, tuple(range(len(listed))))
    run.each(score_matches, (task,), matches, version=1)
    return matches


def baseline(every: list[NDArray[np.float32]]) -> list[float]:
    """The AP of every pair, a sequence at a time, as the published loop does it."""
    aps: list[float] = []
    for start in range(0, len(every), IMAGES):
        aps += published.matching(every[start], every[start + 1 : start + IMAGES])
    return aps


def _pairs() -> ImagePairs:
    """The first image of each sequence with each of the others."""
    b = np.array([image for image in range(SEQUENCES * IMAGES) if image % IMAGES], np.int32)
    return ImagePairs(b // IMAGES * IMAGES, b, (None,) * len(b))


def _check(matches: Matches, expected: list[float]) -> None:
    truth = np.arange(PATCHES)
    for found, ap in zip(matches.read(range(len(expected))), expected, strict=True):
        right = (found["index"][:, 0] == truth).astype(int)
        assert published.trapezoid_ap(-found["distance"][:, 0], right, PATCHES) == ap


def _run(folder: Path, name: str) -> Run:
    return Run(f"{folder}/{name}/out", f"{folder}/{name}/store", InlineExecutor(Observer()), Observer())
