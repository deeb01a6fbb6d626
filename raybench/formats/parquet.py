"""Columns to Parquet bytes and back.

Read in the calling thread: shards are the parallelism, and Arrow's threads have aborted processes that ended while one
of them still let go of a Python buffer (apache/arrow issues 34314 and 39862, python/cpython issue 87135).
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import blamed_on_file
from raybench.formats.limits import check_ratio
from raybench.formats.parquet_headers import column_parts


def write_parquet(columns: dict[str, NDArray[Any]]) -> bytes:
    """A Parquet file with these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # brings Arrow's S3, 50 ms that only stages of curves should pay

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, metadata={}), sink)
    return bytes(sink.getvalue())


def read_parquet(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    """The columns of a Parquet file; raises DataError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with blamed_on_file(f"{name}: no Parquet file that can be read"):
        check_ratio(sum(part.unpacked_bytes for part in column_parts(io.BytesIO(data))), len(data), name)
        table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)
        return {column: np.asarray(table[column]) for column in table.column_names}
