"""Vectors in HDF5, with names as ISC 2021 has them: `vectors` and `image_names`.

A submission to its descriptor track is one file with `query`, `query_ids`, `reference` and `reference_ids`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, Problems
from raybench.formats.names import Strings, strings
from raybench.formats.vector_columns import count_problems, pick_columns, shape_problems, vector_columns


def open_hdf5(file: BinaryIO, name: str) -> h5py.File:
    """The file; a DataError if it is none."""
    try:
        return h5py.File(file, "r")
    except OSError as error:
        raise DataError(f"{name}: no HDF5 file, or cut short ({error})") from None


def read_hdf5_rows(data: bytes, name: str) -> NDArray[Any]:
    """The vectors without names: those under a known name, or the only data set there is."""
    with open_hdf5(io.BytesIO(data), name) as file:
        found = vector_columns(file) or list(file)
        if len(found) != 1 or not isinstance(file[found[0]], h5py.Dataset):
            raise DataError(f"{name}: holds {', '.join(found) or 'nothing'}; expected one data set `vectors`")
        try:
            rows: NDArray[Any] = file[found[0]][()]
        except OSError as error:
            raise DataError(f"{name}: its rows can't be read ({error}); is it cut short?") from None
        return rows


class Hdf5Vectors:
    """An open HDF5 file; a range of rows is one slice."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self._file = open_hdf5(file, name)
        there = [key for key in self._file if isinstance(self._file[key], h5py.Dataset)]
        vectors, names = pick_columns(there, name)
        self._vectors: Any = self._file[vectors]
        self._names: Any = self._file[names]
        lines = shape_problems(name, vectors, self._vectors.shape, self._vectors.dtype)
        lines += count_problems(name, vectors, int((*self._vectors.shape, 0)[0]), names, self._names.shape)
        text = self._names.dtype.kind == "S" or h5py.check_string_dtype(self._names.dtype) is not None
        if not text:
            lines.append(f"{name}: {names} is {self._names.dtype}, expected text")
        if lines:
            raise Problems(lines)
        self.count, self.dimension = (int(size) for size in self._vectors.shape)

    def names(self) -> Strings:
        try:
            return strings(self._names[()])
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self._name}: {self._names.name[1:]} can't be read as UTF-8 ({error})") from None

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        try:
            return np.asarray(self._vectors[start:stop], np.float32)
        except OSError as error:
            raise DataError(
                f"{self._name}: rows {start}..{stop - 1} can't be read ({error}); is it cut short?"
            ) from None


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
