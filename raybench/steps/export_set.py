"""VectorSet -> ISC descriptor files (HDF5 with `vectors` and `image_names`), rows in name order, as in a submission.

A file is filled shard by shard in a temporary file that is mapped, so that no set is ever held whole.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.run import Run
from raybench.engine.stage import FILE_BYTES
from raybench.formats.hdf5_vectors import begin_isc_vectors
from raybench.formats.names import Names
from raybench.formats.shardfile import Arrays
from raybench.steps.vector_set import VectorSet


@dataclass(frozen=True)
class NamedSet:
    """A set of vectors with the names of its places."""

    vectors: VectorSet
    names: Names


@dataclass(frozen=True)
class ExportSets:
    """The stage that writes sets; one a shard."""

    sets: tuple[NamedSet, ...]

    name = "export-vectors"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        contents = [(one.vectors.digest, one.names.digest) for one in self.sets]
        return digest_of(self.name, self.version, contents)

    def load(self, shard: Shard) -> NamedSet:
        return self.sets[shard.start]

    def compute(self, payload: NamedSet) -> Arrays:
        return {FILE_BYTES: isc_file(payload)}

    def keys(self, shard: Shard) -> str:
        return self.sets[shard.start].vectors.what


def isc_file(chosen: NamedSet) -> NDArray[np.uint8]:
    """The bytes of a descriptor file, mapped; an image without vector (one that was skipped) is not in it."""
    vectors = chosen.vectors
    shards = range(len(vectors.mapped.shards))
    there = np.zeros(len(vectors), np.bool_)
    dimension = 0
    for shard in shards:
        index, rows = vectors.read(shard)
        there[index], dimension = True, rows.shape[1]
    row_of = np.cumsum(there) - 1
    names = chosen.names.array.filter(pa.array(there))
    with tempfile.TemporaryFile(prefix="raybench-export-") as file:
        offset = begin_isc_vectors(file, names, dimension)
        room = np.memmap(file, np.float32, "r+", offset, (len(names), dimension))
        for shard in shards:
            index, rows = vectors.read(shard)
            room[row_of[index]] = rows
        return np.memmap(file, np.uint8, "r")


def export_sets(run: Run, files: Mapping[str, NamedSet]) -> None:
    """Write each set to its file, a path below the run's output."""
    run.export(ExportSets(tuple(files.values())), list(files))
