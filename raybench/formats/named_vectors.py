"""Files of named vectors by suffix: HDF5 as ISC 2021 has it, `.npz`, Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from raybench.formats.hdf5_vectors import Hdf5Vectors
from raybench.formats.npz_vectors import NpzVectors
from raybench.formats.parquet_vectors import ParquetVectors
from raybench.formats.vector_columns import VectorReader

READERS: dict[str, Callable[[BinaryIO, str], VectorReader]] = {
    ".h5": Hdf5Vectors,
    ".hdf5": Hdf5Vectors,
    ".npz": NpzVectors,
    ".parquet": ParquetVectors,
}
