"""Files of vectors by suffix: plain rows, as the descriptors of one patch image, or rows with names, by ranges.

Plain rows keep their kind of number: bytes of packed bits stay bytes, what is float64 in the file stays float64.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError
from raybench.formats import hbench
from raybench.formats.limits import USUAL, Limits
from raybench.formats.vector_columns import VectorReader


@dataclass(frozen=True)
class VectorKind:
    """How files of one kind are read, as `module:name`, imported when the first such file is there; "" if never.

    `plain` makes rows of bytes and a name, `named` a reader of rows with names of an open file and its name. What is
    packed may unpack to more than its size, so its readers take limits, too.
    """

    plain: str = ""
    named: str = ""
    is_packed: bool = False


HDF5 = VectorKind("raybench.formats.hdf5_vectors:read_hdf5_rows", "raybench.formats.hdf5_vectors:Hdf5Vectors", True)
VECTOR_KINDS = {
    ".csv": VectorKind(plain="raybench.formats.hbench:read_descriptors"),
    ".npy": VectorKind(plain="raybench.formats.npy:read_npy"),
    ".h5": HDF5,
    ".hdf5": HDF5,
    ".npz": VectorKind("", "raybench.formats.npz_vectors:NpzVectors", True),
    ".parquet": VectorKind(
        "raybench.formats.parquet_vectors:read_parquet_rows", "raybench.formats.parquet_vectors:ParquetVectors", True
    ),
}
PLAIN_SUFFIXES = tuple(suffix for suffix, kind in VECTOR_KINDS.items() if kind.plain)
NAMED_SUFFIXES = tuple(suffix for suffix, kind in VECTOR_KINDS.items() if kind.named)


def open_named(file: BinaryIO, name: str, suffix: str, limits: Limits = USUAL) -> VectorReader:
    """A reader of a file of named vectors; raises all that is wrong with its header together."""
    reader: VectorReader = _imported(VECTOR_KINDS[suffix].named)(file, name, limits)
    return reader


def read_plain(data: bytes, name: str, suffix: str, limits: Limits = USUAL) -> NDArray[Any]:
    """The rows of a file of this kind, (n, dim), all finite."""
    rows = _numbers(data, name, suffix, limits)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1)) if rows.dtype.kind == "f" else np.zeros(0, np.int64)
    if len(bad):
        what = "line" if suffix == ".csv" else "row"
        raise DataError(f"{name}: {what} {bad[0] + 1}: NaN or infinite value ({len(bad):,} such {what}s)")
    return rows


def plain_shape(data: bytes, name: str, suffix: str, limits: Limits = USUAL) -> tuple[int, int]:
    """Rows and dimension, with as little decoding as that needs; what shows on the way is an error already."""
    if suffix == ".csv":
        return hbench.descriptors_shape(data, name)
    rows = _numbers(data, name, suffix, limits)
    return len(rows), rows.shape[1]


def _numbers(data: bytes, name: str, suffix: str, limits: Limits) -> NDArray[Any]:
    kind = VECTOR_KINDS[suffix]
    rows: NDArray[Any] = _imported(kind.plain)(data, name, *([limits] if kind.is_packed else []))
    if rows.ndim != 2 or not len(rows) or rows.dtype.kind not in "biuf":
        found = f"an array of shape {rows.shape} and type {rows.dtype}"
        raise DataError(f"{name}: {found}; expected numbers, one row a patch")
    return rows


def _imported(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)
