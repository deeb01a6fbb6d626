"""Files of vectors by suffix: plain rows, as the descriptors of one patch image, or rows with names, by ranges.

Plain rows keep their kind of number: bytes of packed bits stay bytes, what is float64 in the file stays float64.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError
from raybench.formats import hbench
from raybench.formats.hdf5_vectors import Hdf5Vectors, read_hdf5_rows
from raybench.formats.npz_vectors import NpzVectors
from raybench.formats.parquet_vectors import ParquetVectors, read_parquet_rows
from raybench.formats.vector_columns import VectorReader


def read_npy_rows(data: bytes, name: str) -> NDArray[Any]:
    """The array in a `.npy` file; pickled objects are refused."""
    try:
        rows: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{name}: no .npy array ({error})") from None
    return rows


@dataclass(frozen=True)
class VectorKind:
    """How files of one kind are read: their plain rows from bytes, and a reader of rows with names; None if never."""

    plain: Callable[[bytes, str], NDArray[Any]] | None = None
    named: Callable[[BinaryIO, str], VectorReader] | None = None


HDF5 = VectorKind(read_hdf5_rows, Hdf5Vectors)
VECTOR_KINDS = {
    ".csv": VectorKind(plain=hbench.read_descriptors),
    ".npy": VectorKind(plain=read_npy_rows),
    ".h5": HDF5,
    ".hdf5": HDF5,
    ".npz": VectorKind(named=NpzVectors),
    ".parquet": VectorKind(read_parquet_rows, ParquetVectors),
}
PLAIN_SUFFIXES = tuple(suffix for suffix, kind in VECTOR_KINDS.items() if kind.plain)
NAMED_SUFFIXES = tuple(suffix for suffix, kind in VECTOR_KINDS.items() if kind.named)


def open_named(file: BinaryIO, name: str, suffix: str) -> VectorReader:
    """A reader of a file of named vectors; raises all that is wrong with its header together."""
    reader = VECTOR_KINDS[suffix].named
    assert reader is not None
    return reader(file, name)


def read_plain(data: bytes, name: str, suffix: str) -> NDArray[Any]:
    """The rows of a file of this kind, (n, dim), all finite."""
    rows = _numbers(data, name, suffix)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1)) if rows.dtype.kind == "f" else np.zeros(0, np.int64)
    if len(bad):
        what = "line" if suffix == ".csv" else "row"
        raise DataError(f"{name}: {what} {bad[0] + 1}: NaN or infinite value ({len(bad):,} such {what}s)")
    return rows


def plain_shape(data: bytes, name: str, suffix: str) -> tuple[int, int]:
    """Rows and dimension, with as little decoding as that needs; what shows on the way is an error already."""
    if suffix == ".csv":
        return hbench.descriptors_shape(data, name)
    rows = _numbers(data, name, suffix)
    return len(rows), rows.shape[1]


def _numbers(data: bytes, name: str, suffix: str) -> NDArray[Any]:
    read = VECTOR_KINDS[suffix].plain
    assert read is not None
    rows = read(data, name)
    if rows.ndim != 2 or not len(rows) or rows.dtype.kind not in "biuf":
        found = f"an array of shape {rows.shape} and type {rows.dtype}"
        raise DataError(f"{name}: {found}; expected numbers, one row a patch")
    return rows
