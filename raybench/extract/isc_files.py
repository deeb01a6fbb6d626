"""VectorSet -> ISC files in HDF5, rows in name order: a descriptor file, or a submission of queries and references.

A file is filled shard by shard in a temporary file that is mapped, so that no set is ever held whole.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.extract.vector_set import VectorSet
from raybench.formats.hdf5_vectors import VectorRoom, begin_isc_vectors
from raybench.formats.names import Names


@dataclass(frozen=True)
class IscPart:
    """A set of vectors, the names of its images, and what both are called in the file."""

    vectors: VectorSet
    names: Names
    vectors_key: str = "vectors"
    names_key: str = "image_names"


@dataclass(frozen=True)
class IscFile:
    """A file by its name without suffix, and the sets in it."""

    name: str
    parts: tuple[IscPart, ...]


def descriptor_file(name: str, vectors: VectorSet, names: Names) -> IscFile:
    """One set, as the ISC tools read it."""
    return IscFile(name, (IscPart(vectors, names),))


def submission_file(
    name: str, queries: VectorSet, query_names: Names, references: VectorSet, reference_names: Names
) -> IscFile:
    """Both sets in one file, as the descriptor track took them."""
    query = IscPart(queries, query_names, "query", "query_ids")
    return IscFile(name, (query, IscPart(references, reference_names, "reference", "reference_ids")))


def isc_content(file: IscFile) -> NDArray[np.uint8]:
    """The bytes of a file, mapped; an image without vector (one that was skipped) is not in it."""
    present = [_present(part.vectors) for part in file.parts]
    rooms = [
        VectorRoom(part.vectors_key, part.names_key, part.names.array.filter(pa.array(there)), dimension)
        for part, (there, dimension) in zip(file.parts, present, strict=True)
    ]
    with tempfile.TemporaryFile(prefix="raybench-export-") as written:
        offsets = begin_isc_vectors(written, rooms)
        for part, (there, dimension), room, offset in zip(file.parts, present, rooms, offsets, strict=True):
            rows = np.memmap(written, np.float32, "r+", offset, (len(room.names), dimension))
            _fill(rows, part.vectors, np.cumsum(there) - 1)
        return np.memmap(written, np.uint8, "r")


def _present(vectors: VectorSet) -> tuple[NDArray[np.bool_], int]:
    """Which images have a vector, and the dimension."""
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
