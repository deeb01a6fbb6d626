"""What the headers of a Parquet file say that it unpacks to, read without Arrow (Parquet format 2.10, compact Thrift).

Arrow takes memory by what a page's header says before it sees the page, and pyarrow ends the process if it is asked for
some of what a damaged footer says. So footer and page headers are walked here first.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

MAGIC = b"PAR1"
MOST_PAGE_HEADER_BYTES, MOST_PAGE_BYTES = 2**16, 2**31
MOST_DEPTH = 16
BOOLEANS, BYTE, INTEGERS, DOUBLE, BINARY, LISTS, STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
VALUE_BYTES = 4  # at least, of a value that was unpacked
# Numbers of fields in the format's definition.
ROW_GROUPS, COLUMNS, COLUMN_META = 4, 1, 3
PATH, VALUES, PACKED_SIZE, DATA_PAGE, DICTIONARY_PAGE = 3, 5, 7, 9, 11
UNPACKED_PAGE, PACKED_PAGE, DATA_HEADERS = 2, 3, (5, 8)

Struct = dict[int, Any]


@dataclass(frozen=True)
class ColumnPart:
    """A column in one row group: its name, and the bytes that its values take at least once they are unpacked."""

    column: str
    unpacked_bytes: int


def column_parts(file: BinaryIO) -> list[ColumnPart]:
    """Every column of every row group; raises ValueError where headers make no sense."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(end - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > end - 12:
        raise ValueError("no footer")
    file.seek(end - 8 - length)
    footer, _ = _struct(file.read(length), 0)
    metas = [column[COLUMN_META] for group in footer[ROW_GROUPS] for column in group.get(COLUMNS, [])]
    return [ColumnPart(meta[PATH][0].decode(), _unpacked_bytes(file, meta)) for meta in metas]


def _unpacked_bytes(file: BinaryIO, meta: Struct) -> int:
    """Of one column in one row group, by its pages."""
    wanted, seen, total = meta[VALUES], 0, 0
    for values, size in _pages(file, meta):
        seen, total = seen + values, total + size
        if seen >= wanted:
            break
    if wanted < 0 or seen > wanted:
        raise ValueError(f"pages of {seen:,} values in a column of {wanted:,}")
    return max(total, int(wanted) * VALUE_BYTES)


def _pages(file: BinaryIO, meta: Struct) -> Iterator[tuple[int, int]]:
    """Values and unpacked bytes of each page."""
    # A column without values has no data page, and 0 for its offset, where every file has its magic.
    at = min((offset for offset in (meta.get(DICTIONARY_PAGE) or 0, meta[DATA_PAGE]) if offset > 0), default=0)
    end = at + meta[PACKED_SIZE]
    while 0 < at < end:
        file.seek(at)
        header, size = _struct(file.read(MOST_PAGE_HEADER_BYTES), 0)
        # A size beyond 32 bits, which the format has here, Arrow would cut to another one.
        if not (0 <= header[PACKED_PAGE] < MOST_PAGE_BYTES and 0 <= header[UNPACKED_PAGE] < MOST_PAGE_BYTES):
            raise ValueError("a page of a size that no page has")
        values = sum(header[number][1] for number in DATA_HEADERS if number in header)
        if values < 0:
            raise ValueError("a page of less than no values")
        yield values, header[UNPACKED_PAGE]
        at += size + header[PACKED_PAGE]


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[Struct, int]:
    """Fields by number, and where the struct ends."""
    if depth > MOST_DEPTH:
        raise ValueError("structs in structs without end")
    fields: Struct = {}
    number = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        fields[number], at = (kind == 1, at) if kind in BOOLEANS else _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in INTEGERS:
        return _integer(data, at)
    if kind == BINARY:
        size, at = _unsigned(data, at)
        if size > len(data) - at:
            raise ValueError("text beyond the end")
        return data[at : at + size], at + size
    if kind in LISTS:
        return _list(data, at, depth)
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind == DOUBLE:
        return None, at + 8
    if kind == BYTE or kind in BOOLEANS:  # a byte of a list is one; a field's own is in its kind
        return data[at], at + 1
    raise ValueError(f"kind {kind}, which Parquet does not use")


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    kind, count = data[at] & 15, data[at] >> 4
    at += 1
    if count == 15:
        count, at = _unsigned(data, at)
    if count > len(data) - at:
        raise ValueError("a list beyond the end")
    values = []
    for _ in range(count):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return values, at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        octet = data[at]
        at += 1
        value |= (octet & 127) << shift
        if octet < 128:
            return value, at
        shift += 7
    raise ValueError("a number without end")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at
