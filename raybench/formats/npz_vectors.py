"""Named vectors in `.npz`: a zip of `.npy` arrays. Rows of a stored array are read where they lie, compressed ones in
a stream. Pickled arrays are refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

from raybench.errors import DataError, Problems
from raybench.formats.names import Strings, strings
from raybench.formats.vector_columns import ForwardRows, count_problems, pick_columns, shape_problems

LOCAL_HEADER_BYTES = 30
ROWS_PER_BLOCK = 4_096
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError)


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    size_bytes: int


class NpzVectors:
    """An open `.npz`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        try:
            self._zip = zipfile.ZipFile(file)
        except BROKEN as error:
            raise DataError(f"{name}: no .npz file, or cut short ({error})") from None
        members = {member.removesuffix(".npy"): member for member in self._zip.namelist() if member.endswith(".npy")}
        vectors, names = pick_columns(list(members), name)
        self._vectors, self._names = members[vectors], members[names]
        self._header, header = self._read_header(self._vectors), self._read_header(self._names)
        lines = shape_problems(name, vectors, self._header.shape, self._header.dtype)
        lines += count_problems(name, vectors, (*self._header.shape, 0)[0], names, header.shape)
        if header.dtype == np.dtype(object):
            lines.append(f"{name}: {names} holds pickled objects, which are never read; save it as text (dtype U or S)")
        elif header.dtype.kind not in "SU":
            lines.append(f"{name}: {names} is {header.dtype}, expected text")
        if lines:
            raise Problems(lines)
        self.count, self.dimension = self._header.shape
        self._stream = ForwardRows(lambda _: 0, self._decompressed)
        self._stored = self._zip.getinfo(self._vectors).compress_type == zipfile.ZIP_STORED
        self._whole: NDArray[np.float32] | None = None

    def names(self) -> Strings:
        try:
            with self._zip.open(self._names) as member:
                return strings(npy.read_array(member, allow_pickle=False))
        except (*BROKEN, pa.ArrowInvalid) as error:
            raise DataError(f"{self._name}: its names can't be read ({error})") from None

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        try:
            if self._header.by_columns:  # a row is scattered over such an array, so all of it is held
                return self._all()[start:stop]
            return self._stored_rows(start, stop) if self._stored else self._stream.rows(start, stop)
        except BROKEN as error:
            raise DataError(
                f"{self._name}: rows {start}..{stop - 1} can't be read ({error}); is it cut short?"
            ) from None

    def _read_header(self, member: str) -> _Header:
        try:
            with self._zip.open(member) as opened:
                version = npy.read_magic(opened)
                read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
                if read is None:
                    raise ValueError(f"version {version} of the format")
                shape, by_columns, dtype = read(opened)
                return _Header(shape, by_columns, dtype, opened.tell())
        except BROKEN as error:
            raise DataError(f"{self._name}: {member} is no array ({error})") from None

    def _stored_rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Rows of a stored array, from where they are in the file."""
        info = self._zip.getinfo(self._vectors)
        self._file.seek(info.header_offset)
        local = self._file.read(LOCAL_HEADER_BYTES)
        lengths = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")  # of name and extras
        begin = info.header_offset + LOCAL_HEADER_BYTES + lengths + self._header.size_bytes
        self._file.seek(begin + start * self._row_bytes)
        return self._as_rows(self._file.read((stop - start) * self._row_bytes), stop - start)

    def _decompressed(self, origin: int) -> Iterator[NDArray[np.float32]]:
        with self._zip.open(self._vectors) as member:
            member.read(self._header.size_bytes)
            for start in range(origin, self.count, ROWS_PER_BLOCK):
                count = min(ROWS_PER_BLOCK, self.count - start)
                yield self._as_rows(member.read(count * self._row_bytes), count)

    def _all(self) -> NDArray[np.float32]:
        if self._whole is None:
            with self._zip.open(self._vectors) as member:
                self._whole = np.asarray(npy.read_array(member, allow_pickle=False), np.float32)
        return self._whole

    @property
    def _row_bytes(self) -> int:
        return self.dimension * self._header.dtype.itemsize

    def _as_rows(self, data: bytes, count: int) -> NDArray[np.float32]:
        if len(data) < count * self._row_bytes:
            raise EOFError(f"{len(data):,} bytes instead of {count * self._row_bytes:,}")
        values = np.frombuffer(data, self._header.dtype).reshape(count, self.dimension)
        return np.asarray(values, np.float32)
