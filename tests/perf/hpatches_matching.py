"""hpatches-matching of 75 image pairs of 1,500 patches on one core, against full distance matrices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybench.benchmarks.hpatches.matching import SEQUENCE_PAIRS, MatchImages
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.metrics.partials import Rows
from tests.perf import levels, published
from tests.perf.figures import Figure, best_of_each

ROUNDS = 3
PATCHES, SEQUENCES = 1_500, 5
SAMPLE = 5  # image pairs that the baseline is timed on
TARGET = 8.0


def figures(folder: Path) -> Iterator[Figure]:
    """From features in a store to AP and success rate of every pair; the baseline has its vectors in memory."""
    stored = levels.features(_run(folder, "features"), PATCHES, SEQUENCES)
    reference = np.repeat(np.arange(SEQUENCES, dtype=np.int32) * levels.IMAGES, levels.IMAGES - 1)
    target = reference + np.tile(np.arange(1, levels.IMAGES, dtype=np.int32), SEQUENCES)
    fresh = (_run(folder, f"round-{number}") for number in range(ROUNDS + 1))
    ap = match(next(fresh), stored, reference, target).read(0)["values"][:SAMPLE, 0]
    sample = stored.whole(0), [stored.whole(image) for image in range(1, SAMPLE + 1)]
    np.testing.assert_allclose(ap, published.matching(*sample), atol=1e-9)
    ours, baseline = best_of_each(
        lambda: match(next(fresh), stored, reference, target), lambda: published.matching(*sample), ROUNDS
    )
    what = f"{len(reference)} image pairs of {PATCHES:,} patches, {levels.DIMENSION}-d"
    yield Figure(
        what, ours, "cdist, argmin", baseline * len(reference) / SAMPLE, TARGET, "fold and publishing included"
    )


def match(run: Run, stored: Features, reference: np.ndarray, target: np.ndarray) -> Mapped:
    """Figures of all pairs, with features that nobody has opened yet."""
    features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
    stage = MatchImages(features, reference, target, "L2", on_device=False)
    return run.fold(run.map(stage, len(reference), SEQUENCE_PAIRS), Rows)


def _run(folder: Path, name: str) -> Run:
    return Run(f"{folder}/{name}/out", f"{folder}/{name}/store", InlineExecutor(Observer()), Observer())
