"""Lists of images by URI: CSV or Parquet with a column `uri`, and perhaps `name`; other columns are let pass."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList, blamed_on_file
from raybench.formats.limits import USUAL, Limits
from raybench.formats.names import Strings, stems, strings
from raybench.formats.parquet_vectors import open_parquet
from raybench.formats.text_rows import SHOWN, csv_rows, first_cells
from raybench.formats.vector_columns import vector_columns

URI, NAME = "uri", "name"
PARQUET = ".parquet"
MOST_HEADING_BYTES, MOST_COLUMNS = 2**16, 1_000


@dataclass(frozen=True)
class ImageList:
    """The images of a list: where each is, its name, and the line or row that says so."""

    uris: Strings
    names: Strings
    line: NDArray[np.int64]
    unit: str

    def place(self, row: int) -> str:
        return f"{self.unit} {self.line[row]:,}"


def read_image_list(data: bytes, name: str, problems: ProblemList, limits: Limits = USUAL) -> ImageList:
    """The images of a file, each named, if not otherwise by its URI's stem. Wrong lines are noted and left out."""
    noted = len(problems.lines)
    found = _parquet(data, name, limits) if name.lower().endswith(PARQUET) else _csv(data, name, problems)
    empty = np.flatnonzero(np.asarray(pc.equal(found.uris, ""), np.bool_))
    lines = [f"{name}: {found.place(row)}: no uri; expected the place of an image" for row in empty[:SHOWN].tolist()]
    problems.add_first(lines, len(empty), name, "lines without a uri")
    if len(problems.lines) == noted and not len(found.uris):
        problems.add(f"{name}: lists no image; expected lines under the column uri")
    given = np.asarray(pc.not_equal(found.uris, ""), np.bool_)
    uris, names = (column.filter(pa.array(given)) for column in (found.uris, found.names))
    named = pc.if_else(pc.equal(names, ""), stems(uris), names)
    return ImageList(uris, named, found.line[given], found.unit)


def lists_images(file: BinaryIO, name: str) -> bool:
    """Whether a Parquet file lists images by URI, rather than vectors; raises DataError if it has neither."""
    columns = open_parquet(file, name)[0].schema_arrow.names
    vectors = vector_columns(columns)
    if URI not in columns and not vectors:
        raise DataError(f"{name}: {_no_uri(columns)}, or vectors and image_names")
    return not vectors


def _csv(data: bytes, name: str, problems: ProblemList) -> ImageList:
    body = data.removeprefix(b"\xef\xbb\xbf")
    first = body.split(b"\n", 1)[0][:MOST_HEADING_BYTES].decode("utf-8", "replace")
    columns = [cell.lower() for cell in first_cells(first)]
    _check_columns(columns, name)
    # A column that is not read may have any name, or that of another.
    labels = [cell if cell in (URI, NAME) else f"column {place}" for place, cell in enumerate(columns)]
    wanted = [cell for cell in (URI, NAME) if cell in columns]
    rows = csv_rows(body, name, labels, wanted, header=True)
    rows.wrong.note(name, problems)
    names = rows.columns[1] if NAME in wanted else pa.array([""] * len(rows.line), pa.string())
    return ImageList(rows.columns[0], names, rows.line, "line")


def _parquet(data: bytes, name: str, limits: Limits) -> ImageList:
    with blamed_on_file(f"{name}: its columns can't be read", "write it again"):
        file, sizes = open_parquet(io.BytesIO(data), name)
        _check_columns(file.schema_arrow.names, name)
        wanted = [cell for cell in (URI, NAME) if cell in file.schema_arrow.names]
        limits.check_unpacked(sum(sizes.get(column, 0) for column in wanted), name, "its list")
        table = file.read(columns=wanted, use_threads=False)
        for column in wanted:
            kind = table[column].type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
            if not any(is_one(kind) for is_one in kinds):
                raise DataError(f"{name}: its column {column} is {kind}, expected text")
        texts = [pc.utf8_trim_whitespace(pc.fill_null(strings(table[column]), "")) for column in wanted]
        for text in texts:
            text.validate(full=True)  # a file may say text of any bytes
    names = texts[1] if NAME in wanted else pa.array([""] * len(table), pa.string())
    return ImageList(texts[0], names, np.arange(1, len(table) + 1), "row")


def _check_columns(columns: Sequence[str], name: str) -> None:
    for column in (URI, NAME):
        if columns.count(column) > 1:
            raise DataError(f"{name}: has the column {column} twice; expected uri and perhaps name")
    if len(columns) > MOST_COLUMNS:
        raise DataError(f"{name}: has {len(columns):,} columns; expected uri and perhaps name")
    if URI not in columns:
        raise DataError(f"{name}: {_no_uri(columns)}")


def _no_uri(columns: Sequence[str]) -> str:
    shown = ", ".join(cell for cell in columns if cell) or "none"
    return f"no column uri (it has: {shown[:200]}); expected uri and perhaps name"
