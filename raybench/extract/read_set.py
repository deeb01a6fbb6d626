"""Named vectors on disk -> VectorSet: shards follow the files, `index` is the place in name order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.extract.vector_set import VectorSet, vector_arrays
from raybench.formats.shardfile import Arrays
from raybench.sources.named_vectors import NamedVectors, VectorRows

SHARD_BYTES = 2**24


@dataclass(frozen=True)
class ReadSet:
    """The stage that reads ranges of rows. It carries places, not names."""

    source: VectorRows

    name = "read-set"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.source.digest)

    def load(self, shard: Shard) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self.source.read(shard.start, shard.stop)

    def compute(self, payload: tuple[NDArray[np.int64], NDArray[np.float32]]) -> Arrays:
        return vector_arrays(*payload)

    def keys(self, shard: Shard) -> str:
        return f"{self.source.where(shard.start)} … {self.source.where(shard.stop - 1)}"


def read_set(run: Run, source: NamedVectors, what: str, shard_size: int | None = None) -> VectorSet:
    """The vectors of a source in shards; by default as many rows a shard as 16 MB hold."""
    size = shard_size or max(SHARD_BYTES // (4 * source.dimension), 1)
    return VectorSet(what, run.map(ReadSet(source.rows), len(source.rows), size), len(source))
