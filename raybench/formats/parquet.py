"""Columns to Parquet bytes and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray


def write_parquet(columns: dict[str, NDArray[Any]], notes: dict[str, str] | None = None) -> bytes:
    """A Parquet file with these columns; `notes` go into its metadata."""
    table = pa.table(columns).replace_schema_metadata(notes or {})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def read_parquet(data: bytes) -> dict[str, NDArray[Any]]:
    """The columns of a Parquet file."""
    table = pq.read_table(pa.BufferReader(data))
    return {name: np.asarray(table[name]) for name in table.column_names}
