"""VectorSet -> ISC files in HDF5, rows in name order: a descriptor file, or a submission of queries and references.

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
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import FILE_BYTES
from raybench.extract.vector_set import VectorSet
from raybench.formats.hdf5_vectors import VectorRoom, begin_isc_vectors
from raybench.formats.names import Names
from raybench.formats.shardfile import Arrays


@dataclass(frozen=True)
class FilePart:
    """A set of vectors, the names of its places, and what both are called in the file."""

    vectors: VectorSet
    names: Names
    vectors_key: str = "vectors"
    names_key: str = "image_names"


FileParts = tuple[FilePart, ...]


def descriptor_file(vectors: VectorSet, names: Names) -> FileParts:
    """One set, as the ISC tools read it."""
    return (FilePart(vectors, names),)


def submission_file(queries: VectorSet, query_names: Names, references: VectorSet, reference_names: Names) -> FileParts:
    """Both sets in one file, as the descriptor track took them."""
    return (
        FilePart(queries, query_names, "query", "query_ids"),
        FilePart(references, reference_names, "reference", "reference_ids"),
    )


@dataclass(frozen=True)
class ExportSets:
    """The stage that writes files; one a shard."""

    files: tuple[FileParts, ...]

    name = "export-vectors"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        contents = [
            [(part.vectors.digest, part.names.digest, part.vectors_key, part.names_key) for part in parts]
            for parts in self.files
        ]
        return digest_of(self.name, self.version, contents)

    def load(self, shard: Shard) -> FileParts:
        return self.files[shard.start]

    def compute(self, payload: FileParts) -> Arrays:
        return {FILE_BYTES: isc_file(payload)}

    def keys(self, shard: Shard) -> str:
        return ", ".join(part.vectors.what for part in self.files[shard.start])


def isc_file(parts: FileParts) -> NDArray[np.uint8]:
    """The bytes of a file, mapped; an image without vector (one that was skipped) is not in it."""
    present = [_present(part.vectors) for part in parts]
    rooms = [
        VectorRoom(part.vectors_key, part.names_key, part.names.array.filter(pa.array(there)), dimension)
        for part, (there, dimension) in zip(parts, present, strict=True)
    ]
    with tempfile.TemporaryFile(prefix="raybench-export-") as file:
        offsets = begin_isc_vectors(file, rooms)
        for part, (there, dimension), room, offset in zip(parts, present, rooms, offsets, strict=True):
            rows = np.memmap(file, np.float32, "r+", offset, (len(room.names), dimension))
            _fill(rows, part.vectors, np.cumsum(there) - 1)
        return np.memmap(file, np.uint8, "r")


def _present(vectors: VectorSet) -> tuple[NDArray[np.bool_], int]:
    """Which places have a vector, and the dimension."""
    there = np.zeros(len(vectors), np.bool_)
    dimension = 0
    for shard in range(len(vectors.mapped.shards)):
        index, rows = vectors.read(shard)
        there[index], dimension = True, rows.shape[1]
    return there, dimension


def _fill(rows: NDArray[np.float32], vectors: VectorSet, row_of: NDArray[np.int64]) -> None:
    for shard in range(len(vectors.mapped.shards)):
        index, found = vectors.read(shard)
        rows[row_of[index]] = found


def export_sets(run: Run, files: Mapping[str, FileParts]) -> None:
    """Write files, each a path below the run's output."""
    run.export(ExportSets(tuple(files.values())), list(files))
