"""Vectors in HDF5, with names as ISC 2021 has them: `vectors` and `image_names`.

A submission to its descriptor track is one file with `query`, `query_ids`, `reference` and `reference_ids`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, Problems, blamed_on_file
from raybench.formats.hdf5_checks import check_chunks, longest_string, own_dataset
from raybench.formats.limits import USUAL, Limits, check_ratio
from raybench.formats.names import Strings, strings
from raybench.formats.vector_columns import count_problems, pick_columns, shape_problems, vector_columns

NAME_BYTES_AT_ONCE = 2**26  # at most, while names are read


def open_hdf5(file: BinaryIO, name: str) -> h5py.File:
    """The file; a DataError if it is none."""
    with blamed_on_file(f"{name}: no HDF5 file, or cut short", "write it again"):
        return h5py.File(file, "r")


def read_hdf5_rows(data: bytes, name: str, limits: Limits = USUAL) -> NDArray[Any]:
    """The vectors without names: those under a known name, or the only data set there is."""
    with blamed_on_file(f"{name}: its rows can't be read"), open_hdf5(io.BytesIO(data), name) as file:
        found = vector_columns(file) or list(file)
        if len(found) != 1:
            raise DataError(f"{name}: holds {', '.join(found) or 'nothing'}; expected one data set `vectors`")
        dataset = own_dataset(file, found[0], name, limits)
        if dataset.dtype.kind not in "biuf" or dataset.ndim != 2:
            described = f"an array of shape {dataset.shape} and type {dataset.dtype}"
            raise DataError(f"{name}: {described}; expected numbers, one row a patch")
        _check_sizes([dataset], len(data), name)
        limits.check_unpacked(_size_bytes(dataset), name, found[0])
        check_chunks(dataset, 0, len(dataset), name)
        rows: NDArray[Any] = dataset[()]
        return rows


class Hdf5Vectors:
    """An open HDF5 file; a range of rows is one slice."""

    def __init__(self, file: BinaryIO, name: str, limits: Limits = USUAL) -> None:
        self._name, self._limits = name, limits
        self._bytes, self._file = file, open_hdf5(file, name)
        with blamed_on_file(f"{name}: its arrays can't be opened"):
            vectors, names = pick_columns(list(self._file), name)
            self._vectors: Any = own_dataset(self._file, vectors, name, limits)
            self._names: Any = own_dataset(self._file, names, name, limits)
            lines = shape_problems(name, vectors, self._vectors.shape, self._vectors.dtype)
            lines += count_problems(name, vectors, int((*self._vectors.shape, 0)[0]), names, self._names.shape)
            if self._names.dtype.kind != "S" and h5py.check_string_dtype(self._names.dtype) is None:
                lines.append(f"{name}: {names} is {self._names.dtype}, expected text")
            if lines:
                raise Problems(lines)
            self.count, self.dimension = (int(size) for size in self._vectors.shape)
            _check_sizes([self._vectors, self._names], file.seek(0, io.SEEK_END), name)

    def names(self) -> Strings:
        with blamed_on_file(f"{self._name}: {self._names.name[1:]} can't be read as UTF-8"):
            self._limits.check_unpacked(_size_bytes(self._names), self._name, "its names")
            longest = 1
            if self._names.dtype.kind == "O":  # strings of any length
                longest = longest_string(self._file, self._names, self._bytes, self._name)
            parts, held = [], 0
            size = max(NAME_BYTES_AT_ONCE // max(longest, self._names.dtype.itemsize), 1)
            for start in range(0, self.count, size):
                check_chunks(self._names, start, min(start + size, self.count), self._name)
                parts.append(strings(self._names[start : start + size]))
                held += parts[-1].nbytes
                self._limits.check_unpacked(held, self._name, "its names")
            return pa.concat_arrays(parts)

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        with blamed_on_file(f"{self._name}: rows {start}..{stop - 1} can't be read"):
            check_chunks(self._vectors, start, stop, self._name)
            return np.asarray(self._vectors[start:stop], np.float32)


def _size_bytes(dataset: Any) -> int:
    return int(math.prod(dataset.shape) * dataset.dtype.itemsize)


def _check_sizes(datasets: Sequence[Any], file_bytes: int, name: str) -> None:
    check_ratio(sum(map(_size_bytes, datasets)), file_bytes, name)


@dataclass(frozen=True)
class VectorRoom:
    """A set that goes into a file: the names of its two arrays, its image names and its dimension."""

    vectors: str
    image_names: str
    names: Strings
    dimension: int


def begin_isc_vectors(file: BinaryIO, rooms: Sequence[VectorRoom]) -> list[int]:
    """Write an HDF5 file with all names and room for the vectors; returns the byte at which those of each set begin.

    The caller fills in float32 rows there, in any order: nothing needs to be held whole.
    """
    kind = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    kind.set_layout(h5py.h5d.CONTIGUOUS)
    kind.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    kind.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    kind.set_obj_track_times(False)  # equal sets give equal bytes
    offsets = []
    with h5py.File(file, "w") as out:
        for room in rooms:
            out.create_dataset(room.image_names, data=_fixed_width(room.names))
        for room in rooms:
            space = h5py.h5s.create_simple((len(room.names), room.dimension))
            vectors = h5py.h5d.create(out.id, room.vectors.encode(), h5py.h5t.IEEE_F32LE, space, dcpl=kind)
            offsets.append(int(vectors.get_offset()))
            vectors.close()
    end = max(offset + len(room.names) * room.dimension * 4 for offset, room in zip(offsets, rooms, strict=True))
    file.seek(0, 2)
    if file.tell() < end:
        file.truncate(end)
    return offsets


def _fixed_width(names: Strings) -> NDArray[np.bytes_]:
    return np.array([name.encode() for name in names.to_pylist()], np.bytes_)
