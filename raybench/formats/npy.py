"""Arrays of numpy: `.npy` bytes, and the members of an `.npz`, which is a zip of those. Pickled objects are never read.

A header is compared with the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from raybench.errors import DataError, blamed_on_file

PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that numpy writes; zipfile does not bound others' output


@dataclass(frozen=True)
class NpyHeader:
    """What an array's header says, and how many bytes it takes itself."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    size_bytes: int

    @property
    def body_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: IO[bytes], name: str) -> NpyHeader:
    """The header at the beginning of a stream."""
    with blamed_on_file(f"{name}: no .npy array"):
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"version {version} of the format")
        shape, by_columns, dtype = read(file)
        if min(shape, default=0) < 0:
            raise ValueError(f"shape {shape}")
        return NpyHeader(shape, by_columns, dtype, file.tell())


def check_body(header: NpyHeader, size_bytes: int, name: str) -> None:
    """Raise DataError unless header and body make up so many bytes; what pickled objects take, nobody knows."""
    expected = header.size_bytes + header.body_bytes
    if size_bytes != expected and not header.dtype.hasobject:
        raise DataError(f"{name}: {size_bytes:,} bytes, its header says {expected:,}; the download may be truncated")


def read_npy(data: bytes, name: str) -> NDArray[Any]:
    """The array in a `.npy` file."""
    header = read_npy_header(io.BytesIO(data), name)
    if header.dtype.hasobject:
        raise DataError(f"{name}: no .npy array that can be read (it holds pickled objects); save numbers")
    check_body(header, len(data), name)
    with blamed_on_file(f"{name}: no .npy array"):
        array: NDArray[Any] = npy.read_array(io.BytesIO(data), allow_pickle=False)
        return array


def open_npz(file: BinaryIO, name: str, advice: str = "write it again") -> tuple[zipfile.ZipFile, dict[str, str]]:
    """The archive, and its members by the name of their array."""
    with blamed_on_file(f"{name}: no .npz file, or cut short", advice):
        archive = zipfile.ZipFile(file)
        return archive, {
            member.removesuffix(".npy"): member for member in archive.namelist() if member.endswith(".npy")
        }


def member_header(archive: zipfile.ZipFile, member: str, name: str) -> NpyHeader:
    """The header of a member, which was found to be as large as it says."""
    info = archive.getinfo(member)
    if info.compress_type not in PACKINGS:
        raise DataError(f"{name}: {member} is packed in a way that numpy does not; save it by numpy.savez")
    with blamed_on_file(f"{name}: {member} can't be read"), archive.open(info) as opened:
        header = read_npy_header(opened, f"{name}: {member}")
    check_body(header, info.file_size, f"{name}: {member}")
    return header


def read_member(archive: zipfile.ZipFile, member: str, name: str) -> NDArray[Any]:
    """The whole array of a member."""
    with blamed_on_file(f"{name}: {member} can't be read"), archive.open(member) as opened:
        array: NDArray[Any] = npy.read_array(opened, allow_pickle=False)
        return array
