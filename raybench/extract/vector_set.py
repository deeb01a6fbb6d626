"""A set of image vectors in published shards: what extraction and reading leave, and what codecs and search take.

A shard has `index`, the places of its rows in the set's name order, and `vectors`. Rows may stand in any order and a
place may be absent (an image that was skipped), so whoever reads goes by `index`, never by a row's position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.engine.stages import Mapped
from raybench.formats.shardfile import Arrays


@dataclass(frozen=True)
class VectorSet:
    """Vectors of `count` named images, cut into shards; `what` they are (queries, references …) for messages."""

    what: str
    mapped: Mapped
    count: int

    @property
    def digest(self) -> str:
        return self.mapped.digest

    def __len__(self) -> int:
        return self.count

    def read(self, shard: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Places and float vectors of one shard, as mapped views where they are stored as floats."""
        arrays = self.mapped.read(shard)
        return arrays["index"], as_floats(arrays["vectors"])


def vector_arrays(index: NDArray[np.int64], vectors: NDArray[Any]) -> Arrays:
    """The arrays of one shard of a VectorSet."""
    return {"index": index, "vectors": vectors}


def as_floats(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors as search takes them: packed bits (uint8) become -1 and 1, so that L2² is four times Hamming.

    >>> as_floats(np.array([[0b10000001]], np.uint8)).tolist()
    [[1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0]]
    """
    if vectors.dtype == np.uint8:
        return np.unpackbits(vectors, axis=1).astype(np.float32) * 2 - 1
    return np.ascontiguousarray(vectors, np.float32)
