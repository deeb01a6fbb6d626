"""Vector sets for tests: made-up rows published as a stage's shards, in any order and cut, with places left out."""

from dataclasses import dataclass

import numpy as np

from raybench.digests import digest_of
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.extract.vector_set import VectorSet, vector_arrays
from raybench.formats import shardfile


@dataclass(frozen=True)
class Given:
    """Publishes rows as they are given: `place` of each row, and which are absent (place -1)."""

    place: np.ndarray
    vectors: np.ndarray
    name: str = "given"
    on_device: bool = False

    @property
    def digest(self):
        return digest_of("given", self.place, self.vectors)

    def load(self, shard):
        rows = np.arange(shard.start, shard.stop)
        rows = rows[self.place[rows] >= 0]
        return self.place[rows], self.vectors[rows]

    def compute(self, payload):
        return vector_arrays(*payload)

    def keys(self, shard):
        return f"rows {shard.start}..{shard.stop - 1}"


def vector_set(run, role, vectors, size=100, order=None, absent=()):
    """A set of these vectors in name order; published in another order, of some places only, without some, if asked."""
    place = np.arange(len(vectors)) if order is None else np.asarray(order)
    rows = np.asarray(vectors)[place]
    place = np.where(np.isin(place, np.asarray(absent, np.int64)), -1, place)
    return VectorSet(role, run.map(Given(place, rows), len(rows), size), len(vectors))


def inline_run(folder):
    return Run(f"{folder}/out", f"{folder}/store", InlineExecutor(Observer()), Observer())


def stored(mapped, index=0):
    """The content of a shard as bytes, whatever stage it is of."""
    return shardfile.encode(mapped.read(index))
