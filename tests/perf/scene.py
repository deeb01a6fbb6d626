"""A made set in the shape of HPatches: patch images in sequences, vectors in a store on disk, listed pairs.

Full HPatches is 116 sequences x 16 images x about 1,300 patches; this is a smaller whole that fits into a minute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.extract.patches import IMAGES_PER_SHARD, Features
from raybench.formats.shardfile import Arrays
from raybench.search.pairs import Pairs

SEQUENCES, IMAGES, PATCHES, DIMENSION = 20, 16, 600, 128
POSITIVES, NEGATIVES = 200_000, 1_000_000


@dataclass(frozen=True)
class MadeVectors:
    """A stage in place of extraction: patches of one scene point are noisy copies of one random vector."""

    name = "extract"
    digest = "made-vectors-1"
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


def features(run: Run) -> Features:
    """The vectors of every image, published in the run's store."""
    images = tuple(f"s{image // IMAGES:03d}/{image % IMAGES:02d}" for image in range(SEQUENCES * IMAGES))
    return Features(run.map(MadeVectors(), len(images), IMAGES_PER_SHARD), run.store, images, IMAGES_PER_SHARD)


def pairs(positives: int = POSITIVES, negatives: int = NEGATIVES, seed: int = 0) -> Pairs:
    """Positives first: one scene point in two images of a sequence. Negatives are of two sequences, as in the
    `diffseq` lists, which are harder to gather than those within one.
    """
    rng = np.random.default_rng(seed)
    count = positives + negatives
    first, second = rng.integers(IMAGES * SEQUENCES, size=(2, count), dtype=np.int32)
    a_patch, b_patch = rng.integers(PATCHES, size=(2, count), dtype=np.int32)
    sequence = first // IMAGES
    other = (sequence + rng.integers(1, SEQUENCES, size=count, dtype=np.int32)) % SEQUENCES
    b_image = other * IMAGES + second % IMAGES
    same = slice(0, positives)
    shift = 1 + second[same] % (IMAGES - 1)
    b_image[same] = sequence[same] * IMAGES + (first[same] + shift) % IMAGES
    b_patch[same] = a_patch[same]
    return Pairs(first, a_patch, b_image, b_patch)
