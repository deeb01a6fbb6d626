"""The row-wise distances that decide: float64 on differences, equal for every cut of the rows and every device.

Matrix products and FAISS may propose; only these routines give values that are ordered, written and compared. All
fall as things get closer: `L2` is rooted, `squared_L2` is not, `ip` is minus the inner product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError

DISTANCES = ("L2", "L1", "hamming")  # those of the 2016 HPatches protocol
MASKED_DISTANCES = ("L2", "L1", "masked_L1", "hamming")  # those of the 2017 HPatches protocol
SET_DISTANCES = ("squared_L2", "ip")  # those by which sets of images are searched
EINSUM_DIMENSION = 4_096
VALUES_AT_ONCE = 1 << 18  # of gathered rows: their 2 MB of float64 differences stay in the cache

RowPairs = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows of queries, rows of references


def row_distances(a: NDArray[Any], b: NDArray[Any], distance: str) -> NDArray[np.float64]:
    """The distance of each row of `a` to the same row of `b`, both (n, d).

    Hamming counts differing bits of uint8 rows (bytes of packed bits, or 0/1 values). masked_L1 is L1 of `masked` rows.

    >>> a, b = np.array([[1.0, 2.0]]), np.array([[4.0, 6.0]])
    >>> [row_distances(a, b, distance).tolist() for distance in ("L2", "squared_L2", "ip", "L1")]
    [[5.0], [25.0], [-16.0], [7.0]]
    """
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rows of shapes {a.shape} and {b.shape} can't be compared")
    if distance == "hamming":
        bits: NDArray[np.int64] = np.bitwise_count(a ^ b).sum(axis=1, dtype=np.int64)
        return bits.astype(np.float64)
    if distance == "masked_L1":
        return row_distances(masked(a), masked(b), "L1")
    # Rows in one piece, whatever the order of `a` and `b`: sums run along memory, and their last bits with it.
    if distance == "ip":
        return row_sums(np.negative(a, dtype=np.float64, order="C"), b.astype(np.float64, order="C")) + 0.0  # no -0
    difference: NDArray[np.float64] = np.subtract(a, b, dtype=np.float64, order="C")
    if distance == "L1":
        sums: NDArray[np.float64] = np.abs(difference, out=difference).sum(axis=1)
        return sums
    if distance == "squared_L2":
        return row_sums(difference, difference)
    if distance == "L2":
        return np.sqrt(row_sums(difference, difference))
    raise ValueError(f"unknown distance {distance!r}")


def row_sums(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of products along each row, equal to the bit for every cut of the rows; both in C order."""
    # einsum is fastest, but cuts rows longer than its buffer (8,192 values) where the block's size says.
    wide = left.shape[1] > EINSUM_DIMENSION
    sums: NDArray[np.float64] = (left * right).sum(axis=1) if wide else np.einsum("ij,ij->i", left, right)
    return sums


def measured(queries: NDArray[Any], references: NDArray[Any], pairs: RowPairs, distance: str) -> NDArray[np.float64]:
    """The deciding distances of pairs of rows."""
    found: NDArray[np.float64] = measured_by(queries, references, pairs, [distance])[0]
    return found


def measured_by(
    queries: NDArray[Any], references: NDArray[Any], pairs: RowPairs, distances: Sequence[str]
) -> NDArray[np.float64]:
    """The same by several distances, (distances, pairs), for which rows are gathered once."""
    found = np.empty((len(distances), len(pairs[0])), np.float64)
    step = min(max(VALUES_AT_ONCE // max(queries.shape[1], 1), 1), max(len(pairs[0]), 1))
    # Fresh memory for every block would cost a fifth of the time.
    left, right = (np.empty((step, rows.shape[1]), rows.dtype) for rows in (queries, references))
    for start in range(0, len(pairs[0]), step):
        query, reference = (column[start : start + step] for column in pairs)
        own, other = left[: len(query)], right[: len(query)]
        np.take(queries, query, axis=0, out=own, mode="clip")  # "raise" would copy twice
        np.take(references, reference, axis=0, out=other, mode="clip")
        for by_distance, distance in zip(found, distances, strict=True):
            by_distance[start : start + step] = row_distances(own, other, distance)
    return found


def as_compared(a: NDArray[Any], b: NDArray[Any], distance: str) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Rows to search with and among, and their distance, once masks are applied; others stay as they are."""
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"queries have dimension {a.shape[1]}, references {b.shape[1]}")
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
