"""Columns to Parquet bytes and back.

Read in the calling thread: shards are the parallelism, and Arrow's threads have aborted processes that ended while one
of them still let go of a Python buffer (apache/arrow issues 34314 and 39862, python/cpython issue 87135).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_parquet(columns: dict[str, NDArray[Any]]) -> bytes:
    """A Parquet file with these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # brings Arrow's S3, 50 ms that only stages of curves should pay

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, metadata={}), sink)
    return bytes(sink.getvalue())


def read_parquet(data: bytes) -> dict[str, NDArray[Any]]:
    """The columns of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)
    return {name: np.asarray(table[name]) for name in table.column_names}
