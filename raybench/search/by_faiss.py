"""FAISS as a proposer, on CPU or GPU: lists of the nearest, a few more than asked for.

FAISS searches by a threshold on CPUs only, and by one for all queries; pairs within limits are numpy's to propose.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.cuda import give_back_memory
from raybench.errors import ConfigError
from raybench.search.bound import Bound, norms, radius, scale_of, scaled
from raybench.search.by_numpy import ByNumpy
from raybench.search.distances import RowPairs
from raybench.search.proposers import Unsettled, in_question

MOST_ON_GPU = 2_048  # neighbours that FAISS's GPU kernels can select
TEMPORARY_BYTES = 2**29  # of FAISS's working memory on a GPU, else 1.5 GB: networks and references need the rest


class ByFaiss:
    """The proposer. Holds the GPU's working memory of FAISS; on CPU it holds nothing."""

    def __init__(self, gpu: bool, more: int | None = None) -> None:
        import faiss

        faiss.omp_set_num_threads(1)  # shards are the parallelism
        self._faiss: Any = faiss
        self._more = more
        # A grant of Ray may be a logical GPU, and faiss-cpu knows none at all: only FAISS itself can tell.
        self._gpu = gpu and getattr(faiss, "get_num_gpus", lambda: 0)() > 0

    @classmethod
    def on_gpu(cls) -> ByFaiss:
        """The proposer on the GPU, which must be one that FAISS sees."""
        made = cls(gpu=True)
        if not made._gpu:
            raise ConfigError("sees no GPU; is faiss-gpu installed, and faiss-cpu not?")
        return made

    @cached_property
    def _resources(self) -> Any:
        give_back_memory()
        resources = self._faiss.StandardGpuResources()
        resources.setTempMemory(TEMPORARY_BYTES)
        return resources

    def near(
        self, queries: NDArray[np.float32], references: NDArray[np.float32], k: int, distance: str
    ) -> Iterator[tuple[RowPairs, Unsettled]]:
        if not k or not len(queries):
            return
        most = radius(references)
        scale = scale_of(most)
        own, among = scaled(queries, scale), scaled(references, scale)
        count = min(listed_for(k) if self._more is None else k + self._more, len(references))
        errors = Bound(distance, own.shape[1], scale).errors(norms(own, distance), most * scale)
        values, rows = self.lists(own, among, count, distance)
        yield in_question(values, rows, k, 2.0 * errors, is_all=count == len(references))

    def within(
        self, queries: NDArray[np.float32], references: NDArray[np.float32], limits: NDArray[np.float64], distance: str
    ) -> Iterator[RowPairs]:
        return ByNumpy().within(queries, references, limits, distance)

    def lists(
        self, queries: NDArray[np.float32], references: NDArray[np.float32], count: int, distance: str
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Values, rising, and rows of the `count` nearest of each query, as FAISS finds them."""
        kinds = {"squared_L2": self._faiss.METRIC_L2, "ip": self._faiss.METRIC_INNER_PRODUCT}
        if self._gpu and count <= MOST_ON_GPU:
            values, rows = self._faiss.knn_gpu(self._resources, queries, references, count, metric=kinds[distance])
        else:
            values, rows = self._faiss.knn(queries, references, count, metric=kinds[distance])
        return (-values if distance == "ip" else values), rows


def listed_for(k: int) -> int:
    """How many are listed to find k, so that rounding seldom leaves a search open."""
    return k + max(8, k // 4)
