"""Scores in bfloat16 by torch: half the bytes, and four times the speed of float32 where a CPU or GPU multiplies it.

Rows are rounded to eight bits, products are summed in float32, and a sum is rounded to eight bits when it is stored.
What the rows lost is measured, not guessed: with q', r' for rounded rows,

    |q.r - q'.r'| <= |q - q'| |r| + |q'| |r - r'|

and the sum adds what any float32 sum may be off (see `bound`). Rounding keeps the order, so a limit is rounded alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.cuda import device_for_torch
from raybench.search.bound import norms, radius
from raybench.search.scores import Reached, product_errors, set_places

if TYPE_CHECKING:
    import torch

OFFSET_PARTS = 3  # of eight bits each: together they are as exact as a float32
OFFSET_COLUMNS = 8  # the parts and zeros: rows of a multiple of 16 bytes are what GPUs multiply fastest
SPARE = 1.0 + 2.0**-10  # for the arithmetic on limits and bounds themselves
SIGN = np.uint16(0x8000)


class CoarseScores:
    """Scores of these queries on a device of torch. On a CPU a bfloat16 is looked at as a whole number of 16 bits."""

    rounding = 2.0**-8 * SPARE

    def __init__(self, queries: NDArray[np.float32], device: str = "cpu") -> None:
        import torch

        if device == "cpu":
            torch.set_num_threads(1)  # shards are the parallelism
        # On a GPU sums of halves may themselves be kept in bfloat16, of which the bound knows nothing.
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        on_cpu = device == "cpu"
        self.block_references = 8_192 if on_cpu else 65_536  # a GPU wants more at once
        self.tile_cells = 1 << 23 if on_cpu else 1 << 27
        self._torch: Any = torch
        self._device = device
        rounded, self._lost = self._rounded(queries)
        self._lengths = norms(queries, "ip") + self._lost
        ones = torch.ones((len(queries), OFFSET_COLUMNS), dtype=torch.bfloat16)
        self._queries: torch.Tensor = torch.cat([rounded, ones], dim=1).to(device)
        self._references: torch.Tensor = self._queries[:0]

    def put(self, references: NDArray[np.float32], offsets: NDArray[np.float32] | None) -> NDArray[np.float64]:
        torch = self._torch
        rounded, lost = self._rounded(references, largest=True)
        if offsets is not None:
            rounded = torch.cat([rounded, self._parts(-offsets)], dim=1)
        self._references = rounded.to(self._device)
        longest = radius(references) + float(lost)
        # A GPU's tensor cores may cut a sum off instead of rounding it: twice the error for each addition.
        roundings = (references.shape[1] + OFFSET_PARTS) * (1 if self._device == "cpu" else 2)
        errors = product_errors(self._lengths, longest, roundings, offsets)
        found: NDArray[np.float64] = SPARE * (self._lost * longest + self._lengths * float(lost) + errors)
        return found

    def values(self, rows: slice) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._products(rows).float().cpu().numpy()
        return found

    def reaching(self, rows: slice, limits: NDArray[np.float64]) -> Reached:
        torch = self._torch
        products = self._products(rows)
        lowest = torch.from_numpy(limits).to(torch.float32).to(torch.bfloat16)  # rounding keeps the order, twice, too
        if self._device == "cpu":
            bits = products.view(torch.int16).numpy()
            query, reference = set_places(reaches(bits, lowest.view(torch.int16).numpy()))
            score = as_floats(bits[query, reference])
        else:
            found = torch.nonzero(products >= lowest.to(self._device)[:, None])
            score = products[found[:, 0], found[:, 1]].float().cpu().numpy()
            query, reference = found.T.cpu().numpy()
        return query + rows.start, reference, score

    def _products(self, rows: slice) -> Any:
        with self._torch.inference_mode():
            return self._torch.mm(self._queries[rows, : self._references.shape[1]], self._references.T)

    def _rounded(self, vectors: NDArray[np.float32], largest: bool = False) -> tuple[Any, Any]:
        """Rows in bfloat16, and how far each (or, by a faster sum, the farthest) is from what it was."""
        torch = self._torch
        exact = torch.from_numpy(
            np.array(vectors, np.float32, copy=None) if vectors.flags.writeable else vectors.copy()
        )
        rounded = exact.to(torch.bfloat16)
        difference = (exact - rounded.float()).numpy()  # exact: it has at most 16 bits
        return rounded, radius(difference) if largest else norms(difference, "ip") * SPARE

    def _parts(self, offsets: NDArray[np.float32]) -> Any:
        """Numbers as sums of bfloat16."""
        parts = self._torch.zeros((len(offsets), OFFSET_COLUMNS), dtype=self._torch.bfloat16)
        left = self._torch.from_numpy(offsets)
        for part in range(OFFSET_PARTS):
            parts[:, part] = left.to(self._torch.bfloat16)
            left = left - parts[:, part].float()
        return parts


def reaches(bits: NDArray[np.int16], limits: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Where scores (queries, references) are at least the queries' limits; both as the bits of bfloat16.

    As whole numbers positive ones have the order of the numbers that they stand for, and negative ones the opposite.
    So above a positive limit the signed bits decide, and above another one the unsigned bits.
    """
    positive = limits > 0
    if positive.all():
        return bits >= limits[:, None]
    unsigned = bits.view(np.uint16) <= (limits.view(np.uint16) | SIGN)[:, None]
    return np.where(positive[:, None], bits >= limits[:, None], unsigned) if positive.any() else unsigned


def as_floats(bits: NDArray[np.int16]) -> NDArray[np.float32]:
    """The numbers whose bfloat16 bits these are."""
    return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def multiplies_coarsely() -> bool:
    """Whether this CPU has instructions for bfloat16: without them torch is slower than float32 is."""
    import torch

    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def sees_gpu() -> bool:
    """Whether torch sees a GPU in this process; Ray's grant may be a logical one. A GPU of no use is refused."""
    return device_for_torch(gpu=True) == "cuda"
