"""Columns of text as arrays of given types, parsed at once by Arrow: what lists of both HPatches protocols share."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pa_csv


def typed_columns(text: bytes, types: dict[str, pa.DataType], delimiter: str = ",") -> list[pa.ChunkedArray] | None:
    """The columns of a CSV without header and quotes, or None if it does not parse as these types."""
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(text),
            pa_csv.ReadOptions(column_names=list(types), use_threads=False),
            pa_csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            pa_csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return None
    columns: list[pa.ChunkedArray] = table.columns
    return columns
