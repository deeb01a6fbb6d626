"""Columns to Parquet bytes and back.

Read in the calling thread: shards are the parallelism, and Arrow's threads have aborted processes that ended while one
of them still let go of a Python buffer (apache/arrow issues 34314 and 39862, python/cpython issue 87135).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import blamed_on_file
from raybench.formats.limits import check_ratio


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
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        check_ratio(said_bytes(file.metadata), len(data), name)
        table = file.read(use_threads=False)
        return {column: np.asarray(table[column]) for column in table.column_names}


def said_bytes(metadata: Any, columns: Container[str] | None = None) -> int:
    """What a file says that these columns (None: all) take when they are unpacked, at least 4 bytes for a value."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    wanted = [one for one in chunks if columns is None or one.path_in_schema.split(".")[0] in columns]
    return sum(max(one.total_uncompressed_size, 4 * abs(one.num_values)) for one in wanted)
