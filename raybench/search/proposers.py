"""What proposes: FAISS for neighbours, matrix products for pairs beyond a threshold; on a GPU where there is one.

Both work in float32 and decide nothing (see `metrics.exact_search`), so devices and libraries may differ in last bits.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.exact_search import CELLS, below_by_numpy

MOST_ON_GPU = 2_048  # neighbours that FAISS's GPU kernels can select


class Proposer:
    """Holds the GPU's working memory of FAISS; on CPU it holds nothing."""

    def __init__(self, gpu: bool) -> None:
        import faiss

        faiss.omp_set_num_threads(1)  # shards are the parallelism
        self._faiss: Any = faiss
        # A grant of Ray may be a logical GPU, and faiss-cpu knows none at all: only FAISS itself can tell.
        self._gpu = gpu and getattr(faiss, "get_num_gpus", lambda: 0)() > 0

    @cached_property
    def _resources(self) -> Any:
        return self._faiss.StandardGpuResources()

    def nearest(
        self, queries: NDArray[np.float32], references: NDArray[np.float32], count: int, metric: str
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Values and rows of the `count` nearest of each query: squared distances, rising, or products, falling."""
        kind = self._faiss.METRIC_L2 if metric == "L2" else self._faiss.METRIC_INNER_PRODUCT
        if self._gpu and count <= MOST_ON_GPU:
            values, rows = self._faiss.knn_gpu(self._resources, queries, references, count, metric=kind)
        else:
            values, rows = self._faiss.knn(queries, references, count, metric=kind)
        return values, rows


class Threshold:
    """Products against a threshold: FAISS has no range search on GPUs, so torch multiplies there, numpy elsewhere."""

    def __init__(self, gpu: bool) -> None:
        self._device = ""
        if gpu:
            import torch

            self._device = "cuda" if torch.cuda.is_available() else ""

    @property
    def cells(self) -> int:
        """Products looked at once: a GPU wants more."""
        return 1 << 24 if self._device else CELLS

    def below(
        self, left: NDArray[np.float32], right: NDArray[np.float32], limits: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the products do not exceed their row's limit."""
        if not self._device:
            return below_by_numpy(left, right, limits)
        return below_by_torch(left, right, limits, self._device)


def below_by_torch(
    left: NDArray[np.float32], right: NDArray[np.float32], limits: NDArray[np.float32], device: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the products do not exceed their row's limit; what is not a number counts as below. In full float32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    factors = [torch.from_numpy(np.ascontiguousarray(rows)).to(device) for rows in (left, right, limits)]
    found = torch.nonzero(~(factors[0] @ factors[1].T > factors[2][:, None])).cpu().numpy()
    return found[:, 0], found[:, 1]
