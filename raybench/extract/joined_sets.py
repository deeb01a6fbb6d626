"""Small shards of a VectorSet put together into files that are worth a request each.

How many pictures are described in one shard is bounded by the bytes of pixels that wait for a device, some 400 pictures
of 288 x 384, whose vectors are less than 1 MB. Whoever reads a set reads all of it, some of them many times: codecs and
searches would make 2,500 requests for a million images where 120 do, and check sums of as many files again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.extract.vector_set import SHARD_BYTES, VectorSet, vector_arrays
from raybench.formats.shardfile import Arrays


@dataclass(frozen=True)
class JoinShards:
    """The stage over the planned rows of a set: each of its shards holds the rows of several shards of the set."""

    vectors: VectorSet

    name = "join-shards"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.vectors.digest)

    def load(self, shard: Shard) -> list[Arrays]:
        mapped = self.vectors.mapped
        size = len(mapped.shards[0])
        return [mapped.read(index) for index in range(shard.start // size, -(-shard.stop // size))]

    def compute(self, payload: list[Arrays]) -> Arrays:
        index, vectors = (np.concatenate([arrays[key] for arrays in payload]) for key in ("index", "vectors"))
        return vector_arrays(index, vectors)

    def keys(self, shard: Shard) -> str:
        return f"{len(shard):,} of the {self.vectors.role}"


def join_shards(run: Run, vectors: VectorSet) -> VectorSet:
    """The same set in files of at most 16 MB, whole shards in each; itself where its shards are as large already."""
    shards = vectors.mapped.shards
    if len(shards) == 1:
        return vectors
    first = run.read(vectors.mapped, 0)["vectors"]
    size = len(shards[0])
    together = SHARD_BYTES // max(size * first.shape[1] * first.itemsize, 1)
    if together <= 1:
        return vectors
    return VectorSet(vectors.role, run.map(JoinShards(vectors), shards[-1].stop, together * size), len(vectors))
