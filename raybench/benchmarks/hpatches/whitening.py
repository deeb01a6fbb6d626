"""`pcapl`, the post-processing of the 2017 HPatches paper (section 7): ZCA whitening, power law, L2 norm.

Sums run by einsum, not by GEMM, so that they are the same however many threads a process has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError

CLIP_POSITION = 0.6  # of the sorted eigenvalues: smaller ones count as this one


def covariance(images: Iterable[NDArray[Any]]) -> NDArray[np.float64]:
    """The covariance (d, d) of all rows, divided by their number. `images` are walked twice, one at a time.

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
