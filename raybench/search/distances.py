"""The row-wise distances that decide: float64 on differences, equal for every cut of the rows and every device.

GEMM and FAISS may propose; only these routines give values that are ordered, written and compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError

EINSUM_DIMENSION = 4_096
DISTANCES = ("L2", "L1", "hamming")
MASKED_DISTANCES = ("L2", "L1", "masked_L1", "hamming")  # those of the 2017 HPatches protocol


def row_distances(a: NDArray[Any], b: NDArray[Any], distance: str) -> NDArray[np.float64]:
    """The distance of each row of `a` to the same row of `b`, both (n, d).

    Hamming counts differing bits of uint8 rows (bytes of packed bits, or 0/1 values). masked_L1 is L1 of `masked` rows.

    >>> row_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), "L2").tolist()
    [5.0]
    """
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rows of shapes {a.shape} and {b.shape} can't be compared")
    if distance == "hamming":
        bits: NDArray[np.int64] = np.bitwise_count(a ^ b).sum(axis=1, dtype=np.int64)
        return bits.astype(np.float64)
    if distance == "masked_L1":
        return row_distances(masked(a), masked(b), "L1")
    # Rows in one piece, whatever the order of `a` and `b`: sums run along memory, and their last bits with it.
    difference: NDArray[np.float64] = np.subtract(a, b, dtype=np.float64, order="C")
    if distance == "L1":
        sums: NDArray[np.float64] = np.abs(difference, out=difference).sum(axis=1)
        return sums
    if distance == "L2":
        # einsum is fastest, but cuts rows longer than its buffer (8,192 values) where the block's size says.
        wide = difference.shape[1] > EINSUM_DIMENSION
        squares: NDArray[np.float64] = (
            np.square(difference, out=difference).sum(axis=1) if wide else np.einsum("ij,ij->i", difference, difference)
        )
        return np.sqrt(squares)
    raise ValueError(f"unknown distance {distance!r}")


def as_compared(a: NDArray[Any], b: NDArray[Any], distance: str) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Rows to search with and among, and their distance, once masks are applied; others stay as they are."""
    return (masked(a), masked(b), "L1") if distance == "masked_L1" else (a, b, distance)


def masked(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """What masked_L1 compares: the first half of each row, each value times its own mask in the second half.

    This is the rule of the HPatches toolbox (python/utils/tasks.py): a value that is masked in one patch only is
    compared as 0, not left out.

    >>> masked(np.array([[3.0, 4.0, 1.0, 0.0]])).tolist()
    [[3.0, 0.0]]
    """
    half, odd = divmod(vectors.shape[1], 2)
    if odd:
        raise DataError(
            f"masked_L1 needs rows of values and as many mask values; the descriptors have dimension {vectors.shape[1]}"
        )
    products: NDArray[np.float64] = np.multiply(vectors[:, :half], vectors[:, half:], dtype=np.float64)
    return products
