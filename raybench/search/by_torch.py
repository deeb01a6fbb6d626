"""torch as a proposer: matrix products on a GPU, or on a CPU in tests. In full float32.

Values stay on the device: what is in question is selected and counted there, and only that comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.by_numpy import ByNumpy, limits_of
from raybench.search.coarse import sees_gpu
from raybench.search.distances import RowPairs
from raybench.search.products import Factors, Margins
from raybench.search.proposers import Proposer, Unsettled
from raybench.search.tiles import even_size
from raybench.search.value_tiles import Groups, Limits, Tiler, Undecided

GPU_CELLS = 1 << 24  # products looked at once: a GPU wants more than a CPU
PRODUCTS = ("L2", "squared_L2", "ip")  # distances that are one


@dataclass(frozen=True)
class DeviceTile:
    """Values of consecutive queries against all references on a device; what `ValueTile` is in numpy."""

    queries: slice
    values: Any  # (queries, references) float32 tensor
    margins: Margins

    def near(self, k: int) -> Iterator[RowPairs]:
        import torch

        if not k:
            return
        lowest = torch.topk(self.values, k, dim=1, largest=False).values[:, -1].cpu().numpy()
        with np.errstate(invalid="ignore", over="ignore"):
            limits = (lowest + self.margins.width).astype(np.float32)
        query, reference = self.up_to(np.nextafter(limits, np.float32(np.inf)))
        yield query + self.queries.start, reference

    def up_to(self, limits: Limits) -> RowPairs:
        """Rows and references of all values that are not above their row's limit, also of those that are no numbers."""
        return self._places(~(self.values > self._there(limits)[:, None]))

    def apart(self, rows: NDArray[np.int64], low: Limits, high: Limits) -> tuple[NDArray[np.int64], RowPairs]:
        values = self.values[self._there(rows)]
        surely = values < self._there(low)[:, None]
        counts: NDArray[np.int64] = surely.sum(dim=1).cpu().numpy()
        return counts, self._places(~(surely | (values > self._there(high)[:, None])))

    def closer(
        self, low: Limits, high: Limits, groups: Groups, cuts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Undecided]:
        import torch

        usable = self._there(groups[0])[:, None] != self._there(groups[1])
        ends = self._there(cuts)
        counts, undecided = [], []
        for t in range(low.shape[1]):
            closer = (self.values < self._there(low[:, t])[:, None]) & usable
            before = torch.nn.functional.pad(closer.cumsum(dim=1), (1, 0))
            counts.append(before.gather(1, ends))
            row, column = self._places(~(closer | (self.values > self._there(high[:, t])[:, None])) & usable)
            if (low[:, t] != high[:, t]).any():
                undecided.append((np.full(len(row), t), row, column))
        surely: NDArray[np.int64] = torch.stack(counts, dim=1).cpu().numpy()
        return surely, iter(undecided)

    def _there(self, array: NDArray[Any]) -> Any:
        import torch

        return torch.from_numpy(np.ascontiguousarray(array)).to(self.values.device)

    def _places(self, mask: Any) -> RowPairs:
        row, column = mask.nonzero().T.cpu().numpy()
        return row, column


@dataclass(frozen=True)
class ByTorch:
    """The proposer, on a device of torch, of distances that are products."""

    device: str
    cells: int = GPU_CELLS

    def near(
        self, queries: NDArray[Any], references: NDArray[Any], k: int, distance: str
    ) -> Iterator[tuple[RowPairs, Unsettled]]:
        for tile in self.tiles(queries, references, distance):
            for pairs in tile.near(k):
                yield pairs, np.zeros(0, np.int64)

    def within(
        self, queries: NDArray[Any], references: NDArray[Any], limits: NDArray[np.float64], distance: str
    ) -> Iterator[RowPairs]:
        for tile in self.tiles(queries, references, distance):
            query, reference = tile.up_to(limits_of(tile.margins, limits[tile.queries]))
            yield query + tile.queries.start, reference

    def tiles(self, queries: NDArray[Any], references: NDArray[Any], distance: str) -> Iterator[DeviceTile]:
        """Tiles of one size, in order."""
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        factors = Factors(references, distance)
        right = torch.from_numpy(factors.right).to(self.device)
        height = even_size(len(queries), self.cells // max(len(references), 1))
        for start in range(0, len(queries), height):
            left, margins = factors.left(queries[start : start + height])
            values = torch.from_numpy(left).to(self.device) @ right.T
            yield DeviceTile(slice(start, start + len(left)), values, margins)


def multiplier(gpu: bool) -> Proposer:
    """The proposer by matrix products: torch where a GPU was granted and torch sees it, else numpy."""
    return ByTorch("cuda") if gpu and sees_gpu() else ByNumpy()


def tiler(gpu: bool, distance: str) -> Tiler | None:
    """What cuts a search into tiles on a GPU that was granted, if torch sees it; None: as is best in numpy."""
    return ByTorch("cuda") if gpu and distance in PRODUCTS and sees_gpu() else None
