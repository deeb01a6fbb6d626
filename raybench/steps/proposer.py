"""FAISS as it proposes neighbours: exact search in float32, on a GPU where the process has one, else on one core."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
