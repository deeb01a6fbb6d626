"""torch as a proposer: matrix products on a GPU, or on a CPU in tests. In full float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.by_numpy import ByNumpy, limits_of
from raybench.search.distances import RowPairs
from raybench.search.products import Factors, Margins
from raybench.search.proposers import Proposer, Unsettled, in_question
from raybench.search.tiles import even_size

GPU_CELLS = 1 << 24  # products looked at once: a GPU wants more than a CPU


@dataclass(frozen=True)
class ByTorch:
    """The proposer, on a device of torch."""

    device: str
    cells: int = GPU_CELLS

    def near(
        self, queries: NDArray[Any], references: NDArray[Any], k: int, distance: str
    ) -> Iterator[tuple[RowPairs, Unsettled]]:
        import torch

        count = min(k + 1, len(references)) if k else 0
        for at, values, margins in self.tiles(queries, references, distance) if count else ():
            lowest, rows = (found.cpu().numpy() for found in torch.topk(values, count, dim=1, largest=False))
            (query, reference), left = in_question(lowest, rows, k, margins.width, is_all=count == len(references))
            yield (query + at.start, reference), left + at.start

    def within(
        self, queries: NDArray[Any], references: NDArray[Any], limits: NDArray[np.float64], distance: str
    ) -> Iterator[RowPairs]:
        import torch

        for at, values, margins in self.tiles(queries, references, distance):
            most = torch.from_numpy(limits_of(margins, limits[at])).to(self.device)
            found = torch.nonzero(~(values > most[:, None])).cpu().numpy()
            yield found[:, 0] + at.start, found[:, 1]

    def tiles(
        self, queries: NDArray[Any], references: NDArray[Any], distance: str
    ) -> Iterator[tuple[slice, Any, Margins]]:
        """Consecutive queries, their values on the device, and where the exact ones lie."""
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        factors = Factors(references, distance)
        right = torch.from_numpy(factors.right).to(self.device)
        height = even_size(len(queries), self.cells // max(len(references), 1))
        for start in range(0, len(queries), height):
            left, margins = factors.left(queries[start : start + height])
            values = torch.from_numpy(left).to(self.device) @ right.T
            yield slice(start, start + height), values, margins


def multiplier(gpu: bool) -> Proposer:
    """The proposer by matrix products: torch where a GPU was granted and torch sees it, else numpy."""
    if gpu:
        import torch

        if torch.cuda.is_available():
            return ByTorch("cuda")
    return ByNumpy()
