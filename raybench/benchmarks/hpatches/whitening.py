"""`pcapl`, the post-processing of the 2017 HPatches paper (section 7): ZCA whitening, power law, L2 norm.

Each train set has its own whitened copy of the features. Copies lie one behind the other: image i of copy s is image
`s * stride + i`, where the stride is the number of images rounded up to whole shards, so that a shard of a copy needs
one shard of the features. Sums run by einsum, not by GEMM, so that they are the same however many threads there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.patches import IMAGES_PER_SHARD, Features
from raybench.formats.shardfile import Arrays

CLIP_POSITION = 0.6  # of the sorted eigenvalues: smaller ones count as this one


@dataclass(frozen=True)
class TrainSet:
    """The images from which one whitening is learnt."""

    name: str
    images: NDArray[np.int32]


def copy_stride(images: int, shard_size: int | None) -> int:
    """How far the images of one whitened copy are from those of the next."""
    size = shard_size or IMAGES_PER_SHARD
    return -(-images // size) * size


def whitened(run: Run, features: Features, train: Sequence[TrainSet], wanted: list[int]) -> Features:
    """A whitened copy of the features for each train set; the module says how its images are counted."""
    size = features.images_per_shard
    stride = copy_stride(len(features.images), size)
    matrices = run.each(learn_whitening, train, features, version=1)
    mapped = run.map(Whiten(features, matrices), len(train) * stride, size, wanted)
    padding = ("",) * (stride - len(features.images))
    return Features(mapped, features.root, (*features.images, *padding) * len(train), size)


def learn_whitening(train: TrainSet, features: Features) -> Arrays:
    """The whitening matrix of one train set."""
    images = [features.whole(image) for image in train.images.tolist()]
    return {"matrix": whitening_matrix(covariance(images))}


def covariance(images: Iterable[NDArray[Any]]) -> NDArray[np.float64]:
    """The covariance (d, d) of all rows, divided by their number.

    >>> covariance([np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]])]).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    rows = [image for image in images if len(image)]
    count = sum(len(image) for image in rows)
    mean = np.sum([image.sum(axis=0, dtype=np.float64) for image in rows], axis=0) / count
    total = np.zeros((len(mean), len(mean)))
    for image in rows:
        centred = image.astype(np.float64) - mean
        total += np.einsum("ki,kj->ij", centred, centred)
    return total / count


def whitening_matrix(covariance: NDArray[np.float64]) -> NDArray[np.float32]:
    """The ZCA matrix (d, d) of a covariance, with small eigenvalues clipped up.

    float32, since the last bits of float64 eigenvectors vary with the threads of LAPACK.
    """
    values, vectors = np.linalg.eigh(covariance)  # values rise
    clip = values[int(CLIP_POSITION * len(values))]
    if clip <= np.finfo(np.float64).eps * len(values) * values[-1]:
        raise DataError(
            f"pcapl: the train descriptors vary in fewer than {1 - CLIP_POSITION:.0%} of their {len(values)} "
            "dimensions; they can't be whitened"
        )
    scaled = vectors / np.sqrt(np.maximum(values, clip))
    matrix: NDArray[np.float32] = (scaled @ vectors.T).astype(np.float32)
    return matrix


@dataclass(frozen=True)
class Whiten:
    """The stage that whitens: one shard of a copy per shard of the features."""

    features: Features
    matrices: Mapped

    name = "whiten"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features, self.matrices)

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


def pcapl(image: NDArray[Any], matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows of one patch-image post-processed: centred by its own mean, whitened, signed square root, L2 norm.

    A row that becomes 0 stays 0. float32, as the toolbox reads descriptors.
    """
    rows = image.astype(np.float64)
    if not len(rows):
        return rows.astype(np.float32)
    white = np.einsum("ij,jk->ik", rows - rows.mean(axis=0), matrix.astype(np.float64))
    rooted = np.sign(white) * np.sqrt(np.abs(white))
    norms = np.sqrt(np.einsum("ij,ij->i", rooted, rooted))
    scaled: NDArray[np.float32] = (rooted / np.where(norms > 0, norms, 1.0)[:, None]).astype(np.float32)
    return scaled
