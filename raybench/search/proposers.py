"""What a proposer is: a library that names the pairs of rows in question, and leaves none out. It decides nothing.

Proposers work in float32 within `bound`; numpy, FAISS and torch each have a module. Whatever they differ by in last
bits, the float64 routine measures all that they name, so results are the same for every proposer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.search.distances import RowPairs

Unsettled = NDArray[np.int64]  # queries for which more than the pairs beside may be in question


class Proposer(Protocol):
    """Pairs come whole queries at a time, in order of the queries."""

    def near(
        self, queries: NDArray[Any], references: NDArray[Any], k: int, distance: str
    ) -> Iterator[tuple[RowPairs, Unsettled]]:
        """Pairs with every reference that may be among a query's k nearest; with some if it is unsettled."""
        ...

    def within(
        self, queries: NDArray[Any], references: NDArray[Any], limits: NDArray[np.float64], distance: str
    ) -> Iterator[RowPairs]:
        """Every pair whose distance may be at most its query's limit."""
        ...


def in_question(
    values: NDArray[np.float32], rows: NDArray[np.int64], k: int, width: NDArray[np.float64], is_all: bool
) -> tuple[RowPairs, Unsettled]:
    """What may be among the k nearest, of lists (queries, count) of lowest values, rising, and their references.

    A reference whose value is more than `width` above the k-th is farther than k others. A list that ends before such a
    value is unsettled, unless it has all references. FAISS leaves places empty (-1) where its values overflow.
    """
    with np.errstate(invalid="ignore"):
        limit = values[:, k - 1] + width
    settled = np.isfinite(limit) & (rows.min(axis=1) >= 0)
    settled &= is_all | (values[:, -1] > limit)
    query, column = np.nonzero(np.where(settled[:, None], ~(values > limit[:, None]), rows >= 0))
    return (query, rows[query, column]), np.flatnonzero(~settled)
