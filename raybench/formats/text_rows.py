"""Rows of text in CSV files, as the published tools and users write them: columns of strings, and the line of each row.

What is wrong with lines is counted and shown by its first few; whoever reads decides what columns mean.
"""

from __future__ import annotations

import codecs
import csv
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList
from raybench.formats.names import Strings

SHOWN = 10  # problems of one kind that are listed; the rest are counted
DECODED_BYTES = 2**20  # looked at once
OTHER_MARKS = {"\t": "tabs", ";": "semicolons"}


class Noted:
    """Problems of one kind: the first few, in words, and how many there are."""

    def __init__(self, what: str) -> None:
        self._what, self._lines, self._count = what, list[str](), 0

    def add(self, lines: Iterable[str], count: int) -> None:
        """Some more; of the lines only those that are still shown are made."""
        self._lines += itertools.islice(lines, SHOWN - len(self._lines))
        self._count += count

    def join(self, others: Noted) -> None:
        """Those of a later part of the file."""
        self.add(others._lines, others._count)

    def note(self, name: str, problems: ProblemList) -> None:
        problems.add_first(self._lines, self._count, name, self._what)


@dataclass(frozen=True)
class TextRows:
    """Rows as text without surrounding blanks, the line of each (blank lines aside), what is wrong, and all lines."""

    columns: list[Strings]
    line: NDArray[np.int64]
    wrong: Noted
    lines: int


def first_cells(first: str) -> list[str]:
    """The cells of a first line, without blanks around them; a comma between quotes is part of a cell.

    >>> first_cells('query, reference,"note, by whom"')
    ['query', 'reference', 'note, by whom']
    """
    try:
        cells = next(csv.reader([first], skipinitialspace=True), [])
    except csv.Error:  # a cell beyond all measure
        cells = first.split(",")
    return [cell.strip() for cell in cells] or [""]


def csv_rows(
    data: bytes, name: str, columns: Sequence[str], wanted: Sequence[str], header: bool, first_line: int = 1
) -> TextRows:
    """The wanted columns of lines that have these; a header is passed over. The first line has this number."""
    wrong = Noted("lines with a wrong number of columns")
    if not data.strip():
        return TextRows([pa.array([], pa.string())] * len(wanted), np.zeros(0, np.int64), wrong, data.count(b"\n"))
    _check_text(data, name)
    skipped: list[int] = []

    def odd_row(row: Any) -> str:
        skipped.append(row.number)
        if row.text.strip():
            found, number = f"{row.actual_columns} columns", row.number + first_line - 1
            other = next((word for mark, word in OTHER_MARKS.items() if row.text.count(mark) == len(columns) - 1), "")
            advice = f"; they are joined by {other}, expected commas" if other else ""
            expected = f"expected {len(columns)} ({','.join(columns)})"
            wrong.add([f"{name}: line {number}: {found}, {expected}{advice}"], 1)
        return "skip"

    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(use_threads=False, column_names=list(columns)),
            parse_options=pacsv.ParseOptions(invalid_row_handler=odd_row, ignore_empty_lines=False),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"{name}: no CSV file of UTF-8 text ({' '.join(str(error).split())})") from None
    lines = len(table) + len(skipped)
    line = np.delete(np.arange(first_line, first_line + lines), np.array(skipped, np.int64) - 1)
    found = [pc.utf8_trim_whitespace(table[column].combine_chunks()) for column in wanted]
    written = np.any([np.asarray(pc.not_equal(column, "")) for column in found], axis=0)
    written[np.flatnonzero(written)[: int(header)]] = False  # blank lines may stand above it
    return TextRows([column.filter(pa.array(written)) for column in found], line[written], wrong, lines)


def _check_text(data: bytes, name: str) -> None:
    """Refuse bytes that are no UTF-8 before Arrow sees them: its own complaint goes straight to the screen."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), DECODED_BYTES):
            decoder.decode(data[start : start + DECODED_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: no CSV file of UTF-8 text ({error.reason})") from None
