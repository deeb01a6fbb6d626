"""The best pairs over all queries together, as a mergeable result that never holds more than it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TopPairs:
    """The `most` best pairs so far, by (falling score, reference, query). Merging joins disjoint pairs.

    >>> pairs = TopPairs.of(np.array([1, 0, 0]), np.array([5, 7, 6]), np.array([0.5, 0.5, 0.1]), most=2)
    >>> pairs.query.tolist(), pairs.reference.tolist()
    ([1, 0], [5, 7])
    """

    query: NDArray[np.int64]
    reference: NDArray[np.int64]
    score: NDArray[np.float64]
    most: int

    @classmethod
    def of(cls, query: NDArray[np.int64], reference: NDArray[np.int64], score: NDArray[np.float64], most: int) -> Self:
        """The best of pairs in any order."""
        if len(score) > most:
            kept = _best(query, reference, score, most)
            query, reference, score = query[kept], reference[kept], score[kept]
        order = np.lexsort((query, reference, -score))
        return cls(query[order], reference[order], score[order], most)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        query, reference, score = (
            np.concatenate(columns)
            for columns in zip(*((part.query, part.reference, part.score) for part in parts), strict=True)
        )
        return cls.of(query, reference, score, parts[0].most)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        most = np.array([self.most])
        return {"query": self.query, "reference": self.reference, "score": self.score, "most": most}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        return cls(arrays["query"], arrays["reference"], arrays["score"], int(arrays["most"][0]))


def worst_of_best(score: NDArray[np.float64], most: int) -> float:
    """The score of the last of the `most` (at least 1) best; -inf where there are fewer."""
    if len(score) < most:
        return -np.inf
    return float(np.partition(score, len(score) - most)[len(score) - most])


def _best(
    query: NDArray[np.int64], reference: NDArray[np.int64], score: NDArray[np.float64], most: int
) -> NDArray[np.int64]:
    """Positions of the best: all above the last one's score, and the first of those that equal it."""
    last = worst_of_best(score, most)
    (surely,), (tied,) = np.nonzero(score > last), np.nonzero(score == last)
    first = np.lexsort((query[tied], reference[tied]))[: most - len(surely)]
    return np.concatenate([surely, tied[first]])
