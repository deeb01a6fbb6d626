"""Some rows of a vector set as a set of their own, renumbered in the order of their places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.extract.vector_set import VectorSet, vector_arrays
from raybench.formats.shardfile import Arrays

ROWS_PER_SHARD = 4_096


@dataclass(frozen=True)
class TakeRows:
    """The stage that takes the rows at these places (rising) out of a set; each shard looks through the whole set."""

    vectors: VectorSet
    places: NDArray[np.int64]

    name = "take-rows"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.vectors.digest, self.places)

    def load(self, shard: Shard) -> Arrays:
        wanted = self.places[shard.start : shard.stop]
        index, rows = [], []
        for source in self.vectors.mapped.shards:
            arrays = self.vectors.mapped.read(source.index)
            rank = np.searchsorted(wanted, arrays["index"])
            hit = wanted[np.minimum(rank, len(wanted) - 1)] == arrays["index"]
            index.append(rank[hit] + shard.start)
            rows.append(arrays["vectors"][hit])
        return vector_arrays(np.concatenate(index), np.concatenate(rows))

    def compute(self, payload: Arrays) -> Arrays:
        return payload

    def keys(self, shard: Shard) -> str:
        return f"{len(shard):,} of the {self.vectors.what}"


def take_rows(run: Run, vectors: VectorSet, places: NDArray[np.int64], what: str) -> VectorSet:
    """The rows at these places, which must rise; the first of them has place 0 in the new set."""
    mapped = run.map(TakeRows(vectors, places), len(places), min(max(len(places), 1), ROWS_PER_SHARD))
    return VectorSet(what, mapped, len(places))
