"""Descriptors of one patch image on disk: CSV, `.npy`, Parquet or HDF5, one descriptor a row.

Numbers keep their kind: bytes of packed bits stay bytes, what is float64 in the file stays float64.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raybench.errors import DataError
from raybench.formats import hbench

NAMES = ("vectors", "embeddings", "descriptors")  # of the column or data set that holds the rows
Rows = NDArray[Any]


def read_vectors(data: bytes, name: str, suffix: str) -> Rows:
    """The rows of a file of this kind, (n, dim), all finite."""
    rows = _numbers(READERS[suffix](data, name), name)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1)) if rows.dtype.kind == "f" else np.zeros(0, np.int64)
    if len(bad):
        what = "line" if suffix == ".csv" else "row"
        raise DataError(f"{name}: {what} {bad[0] + 1}: NaN or infinite value ({len(bad):,} such {what}s)")
    return rows


def vectors_shape(data: bytes, name: str, suffix: str) -> tuple[int, int]:
    """Rows and dimension, with as little decoding as that needs; what shows on the way is an error already."""
    if suffix == ".csv":
        return hbench.descriptors_shape(data, name)
    rows = _numbers(READERS[suffix](data, name), name)
    return len(rows), rows.shape[1]


def _numbers(rows: Rows, name: str) -> Rows:
    if rows.ndim != 2 or not len(rows) or rows.dtype.kind not in "biuf":
        found = f"an array of shape {rows.shape} and type {rows.dtype}"
        raise DataError(f"{name}: {found}; expected numbers, one row a patch")
    return rows


def _read_npy(data: bytes, name: str) -> Rows:
    try:
        rows: Rows = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{name}: no .npy array ({error})") from None
    return rows


def _read_parquet(data: bytes, name: str) -> Rows:
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{name}: no Parquet file ({' '.join(str(error).split())})") from None
    column = next((table[known] for known in NAMES if known in table.column_names), None)
    if column is None:
        return np.stack([np.asarray(column) for column in table.columns], axis=1)
    lists = column.combine_chunks()
    kind = pa.types
    if not (kind.is_list(lists.type) or kind.is_large_list(lists.type) or kind.is_fixed_size_list(lists.type)):
        raise DataError(f"{name}: its vectors are {lists.type}; expected a list of numbers a row")
    lengths = np.unique(lists.value_lengths().to_numpy(zero_copy_only=False)) if len(lists) else np.array([0])
    if len(lengths) != 1 or lists.null_count:
        raise DataError(f"{name}: rows of different lengths; all descriptors must have the same dimension")
    return np.asarray(lists.flatten()).reshape(len(lists), -1)


def _read_hdf5(data: bytes, name: str) -> Rows:
    import h5py

    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            found = [known for known in NAMES if known in file] or list(file)
            if len(found) != 1 or not isinstance(file[found[0]], h5py.Dataset):
                raise DataError(f"{name}: holds {', '.join(found) or 'nothing'}; expected one data set `vectors`")
            rows: Rows = file[found[0]][()]
            return rows
    except OSError as error:
        raise DataError(f"{name}: no HDF5 file ({error})") from None


READERS: dict[str, Callable[[bytes, str], Rows]] = {
    ".csv": hbench.read_descriptors,
    ".npy": _read_npy,
    ".parquet": _read_parquet,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
