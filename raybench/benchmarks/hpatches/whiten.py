"""Features -> Features whitened by a train set: statistics in one stage, their application in another.

Each train set has its own whitened copy of the features. Copies lie one behind the other: image i of copy s is image
`s * stride + i`, where the stride is the number of images rounded up to whole shards, so that a shard of a copy needs
one shard of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hpatches.whitening import covariance, pcapl, whitening_matrix
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.extract.patches import IMAGES_PER_SHARD, Features
from raybench.formats.shardfile import Arrays


@dataclass(frozen=True)
class TrainWhitening:
    """The stage that learns a whitening matrix, a train set a shard."""

    features: Features
    train: tuple[NDArray[np.int32], ...]

    name = "train-whitening"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features.mapped.digest, list(self.train))

    def load(self, shard: Shard) -> NDArray[np.int32]:
        return self.train[shard.start]

    def compute(self, payload: NDArray[np.int32]) -> Arrays:
        images = [self.features.whole(image) for image in payload.tolist()]
        return {"matrix": whitening_matrix(covariance(images))}

    def keys(self, shard: Shard) -> str:
        return f"train set {shard.start}"


@dataclass(frozen=True)
class Whiten:
    """The stage that whitens, a shard of features a shard."""

    features: Features
    matrices: Mapped

    name = "whiten"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features.mapped.digest, self.matrices.digest)

    def load(self, shard: Shard) -> tuple[NDArray[np.float32], range]:
        shards = len(self.features.mapped.shards)
        copy, own = divmod(shard.index, shards)
        images = self.features.mapped.shards[own]
        return self.matrices.read(copy)["matrix"], range(images.start, images.stop)

    def compute(self, payload: tuple[NDArray[np.float32], range]) -> Arrays:
        matrix, images = payload
        white = [pcapl(self.features.whole(image), matrix) for image in images]
        counts = np.array([len(rows) for rows in white], np.int64)
        return {"vectors": np.concatenate([rows.reshape(-1, len(matrix)) for rows in white]), "counts": counts}

    def keys(self, shard: Shard) -> str:
        copy, own = divmod(shard.index, len(self.features.mapped.shards))
        return f"shard {own} of the features by train set {copy}"


def copy_stride(images: int, shard_size: int | None) -> int:
    """How far the images of one whitened copy are from those of the next."""
    size = shard_size or IMAGES_PER_SHARD
    return -(-images // size) * size


def whitened(run: Run, features: Features, train: Sequence[NDArray[np.int32]], wanted: list[int]) -> Features:
    """A whitened copy of the features for each train set (the images it is learnt from); see the module for images."""
    size = features.images_per_shard
    stride = copy_stride(len(features.images), size)
    matrices = run.map(TrainWhitening(features, tuple(train)), len(train), 1)
    mapped = run.map(Whiten(features, matrices), len(train) * stride, size, wanted)
    padding = ("",) * (stride - len(features.images))
    return Features(mapped, features.root, (*features.images, *padding) * len(train), size)
