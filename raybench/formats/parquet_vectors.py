"""Vectors in Parquet: a column of lists of floats, and one of text for names. Rows are decoded batch by batch."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raybench.errors import DataError, Problems, blamed_on_file
from raybench.formats.limits import MOST_DIMENSION, USUAL, Limits, check_ratio
from raybench.formats.names import Strings, strings
from raybench.formats.parquet_headers import column_parts
from raybench.formats.vector_columns import NAMES, ForwardRows, pick_columns, rows_at_once, vector_columns

READ_BUFFER_BYTES = 2**22  # without one, a whole column chunk is read at once, however large its row group is


def open_parquet(file: BinaryIO, name: str) -> tuple[pq.ParquetFile, dict[str, int]]:
    """The file, read through a small buffer, and what each column unpacks to; a DataError if it is none.

    Text is left in dictionaries, where a file has it so: a long one may stand for thousands of rows.
    """
    with blamed_on_file(f"{name}: no Parquet file, or cut short", "write it again"):
        columns: dict[str, int] = {}
        for part in column_parts(file):
            columns[part.column] = columns.get(part.column, 0) + part.unpacked_bytes
        check_ratio(sum(columns.values()), file.seek(0, io.SEEK_END), name)
        in_dictionaries = [column for column in NAMES if column in columns]
        options = {"buffer_size": READ_BUFFER_BYTES, "pre_buffer": False, "read_dictionary": in_dictionaries}
        return pq.ParquetFile(file, **options), columns


def read_parquet_rows(data: bytes, name: str, limits: Limits = USUAL) -> NDArray[Any]:
    """The vectors without names: a column of lists under a known name, or all columns side by side."""
    with blamed_on_file(f"{name}: its rows can't be read"):
        opened, columns = open_parquet(io.BytesIO(data), name)
        limits.check_unpacked(sum(columns.values()), name, "its rows")
        return _plain_rows(opened.read(use_threads=False), name)


def _plain_rows(table: pa.Table, name: str) -> NDArray[Any]:
    found = vector_columns(table.column_names)
    if not found:
        return np.stack([np.asarray(column) for column in table.columns], axis=1)
    lists = table[found[0]].combine_chunks()
    if not _is_list(lists.type):
        raise DataError(f"{name}: its vectors are {lists.type}; expected a list of numbers a row")
    lengths = np.unique(lists.value_lengths().to_numpy(zero_copy_only=False)) if len(lists) else np.array([0])
    if len(lengths) != 1 or lists.null_count:
        raise DataError(f"{name}: rows of different lengths; all descriptors must have the same dimension")
    return np.asarray(lists.flatten()).reshape(len(lists), -1)


class ParquetVectors:
    """An open Parquet file; a range begins at its row group."""

    def __init__(self, file: BinaryIO, name: str, limits: Limits = USUAL) -> None:
        self._name, self._limits = name, limits
        self._file, self._columns = open_parquet(file, name)
        with blamed_on_file(f"{name}: its columns can't be opened"):
            self._open(name)

    def _open(self, name: str) -> None:
        schema = self._file.schema_arrow
        self._vectors, self._names = pick_columns(schema.names, name)
        lines = []
        found = schema.field(self._vectors).type
        if not (_is_list(found) and pa.types.is_floating(found.value_type)):
            lines.append(f"{name}: {self._vectors} is {found}, expected a list of float32 a row")
        if not _is_text(schema.field(self._names).type):
            lines.append(f"{name}: {self._names} is {schema.field(self._names).type}, expected text")
        self.count = self._file.metadata.num_rows
        if not self.count:
            lines.append(f"{name}: no row")
        if lines:
            raise Problems(lines)
        groups = [self._file.metadata.row_group(group).num_rows for group in range(self._file.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(groups)[:-1]]).astype(np.int64)
        self.dimension = self._first_length()
        self._stream = ForwardRows(lambda row: int(self._starts[self._group(row)]), self._batches)

    def names(self) -> Strings:
        with blamed_on_file(f"{self._name}: {self._names} can't be read"):
            self._limits.check_unpacked(self._columns[self._names], self._name, "its names")
            column = self._file.read([self._names], use_threads=False)[self._names]
            if column.null_count:
                raise DataError(f"{self._name}: {column.null_count:,} rows without a name")
            if len(column) != self.count:
                raise DataError(f"{self._name}: {len(column):,} names, its header says {self.count:,} rows")
            lengths = [_text_bytes(chunk) for chunk in column.chunks]
            self._limits.check_unpacked(sum(lengths), self._name, "its names")
            return strings(column)

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        with blamed_on_file(f"{self._name}: rows {start}..{stop - 1} can't be read"):
            return self._stream.rows(start, stop)

    def _group(self, row: int) -> int:
        return int(np.searchsorted(self._starts, row, side="right")) - 1

    def _first_length(self) -> int:
        batch = next(self._file.iter_batches(1, columns=[self._vectors], use_threads=False))
        first = batch.column(0)[0].as_py()
        if not first:
            raise DataError(f"{self._name}: row 0 has no vector")
        if len(first) > MOST_DIMENSION:
            raise DataError(f"{self._name}: dimension {len(first):,}, expected at most {MOST_DIMENSION:,}")
        return len(first)

    def _batches(self, origin: int) -> Iterator[NDArray[np.float32]]:
        groups = list(range(self._group(origin), self._file.num_row_groups))
        at = origin
        batches = self._file.iter_batches(rows_at_once(self.dimension), groups, [self._vectors], use_threads=False)
        for batch in batches:
            yield self._as_rows(batch.column(0), at)
            at += len(batch)

    def _as_rows(self, lists: Any, at: int) -> NDArray[np.float32]:
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(lengths != self.dimension)
        if len(odd):
            found = f"dimension {lengths[odd[0]]}" if lengths[odd[0]] else "no vector"
            raise DataError(f"{self._name}: row {at + odd[0]} has {found}, row 0 has dimension {self.dimension}")
        values = np.asarray(lists.flatten().fill_null(float("nan")), np.float32)
        return values.reshape(len(lists), self.dimension)


def _text_bytes(chunk: Any) -> int:
    """The letters of all rows of text in a dictionary."""
    lengths = pc.binary_length(chunk.dictionary)
    return int(pc.sum(lengths.take(chunk.indices), min_count=0).as_py())


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_text(kind) for is_text in texts)
