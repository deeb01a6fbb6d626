"""Named vectors in `.npz`: a zip of `.npy` arrays. Rows of a stored array are read where they lie, compressed ones in
a stream. Pickled arrays are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybench.errors import Problems, blamed_on_file
from raybench.formats.limits import USUAL, Limits
from raybench.formats.names import Strings, strings
from raybench.formats.npy import member_header, open_npz, read_member
from raybench.formats.vector_columns import ForwardRows, count_problems, pick_columns, rows_at_once, shape_problems

LOCAL_HEADER_BYTES = 30


class NpzVectors:
    """An open `.npz`."""

    def __init__(self, file: BinaryIO, name: str, limits: Limits = USUAL) -> None:
        self._file, self._name, self._limits = file, name, limits
        self._zip, members = open_npz(file, name)
        vectors, names = pick_columns(list(members), name)
        self._vectors, self._names = members[vectors], members[names]
        self._header, header = (member_header(self._zip, member, name) for member in (self._vectors, self._names))
        lines = shape_problems(name, vectors, self._header.shape, self._header.dtype)
        lines += count_problems(name, vectors, (*self._header.shape, 0)[0], names, header.shape)
        if header.dtype == np.dtype(object):
            lines.append(f"{name}: {names} holds pickled objects, which are never read; save it as text (dtype U or S)")
        elif header.dtype.kind not in "SU":
            lines.append(f"{name}: {names} is {header.dtype}, expected text")
        if lines:
            raise Problems(lines)
        self.count, self.dimension = self._header.shape
        self._names_bytes = header.body_bytes
        self._stream = ForwardRows(lambda _: 0, self._decompressed)
        self._stored = self._zip.getinfo(self._vectors).compress_type == zipfile.ZIP_STORED
        self._whole: NDArray[np.float32] | None = None

    def names(self) -> Strings:
        self._limits.check_unpacked(self._names_bytes, self._name, "its names")
        with blamed_on_file(f"{self._name}: its names can't be read"):
            return strings(read_member(self._zip, self._names, self._name))

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        with blamed_on_file(f"{self._name}: rows {start}..{stop - 1} can't be read"):
            if self._header.by_columns:  # a row is scattered over such an array, so all of it is held
                return self._all()[start:stop]
            return self._stored_rows(start, stop) if self._stored else self._stream.rows(start, stop)

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
            size = rows_at_once(self.dimension)
            for start in range(origin, self.count, size):
                count = min(size, self.count - start)
                yield self._as_rows(member.read(count * self._row_bytes), count)

    def _all(self) -> NDArray[np.float32]:
        if self._whole is None:
            self._limits.check_unpacked(self._header.body_bytes, self._name, "its vectors, which are saved by columns,")
            self._whole = np.asarray(read_member(self._zip, self._vectors, self._name), np.float32)
        return self._whole

    @property
    def _row_bytes(self) -> int:
        return self.dimension * self._header.dtype.itemsize

    def _as_rows(self, data: bytes, count: int) -> NDArray[np.float32]:
        if len(data) < count * self._row_bytes:
            raise EOFError(f"{len(data):,} bytes instead of {count * self._row_bytes:,}")
        values = np.frombuffer(data, self._header.dtype).reshape(count, self.dimension)
        return np.asarray(values, np.float32)
