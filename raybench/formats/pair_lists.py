"""Lists of patch pairs: `a,b,label` lines, or PhotoTour's `m50_*.txt`. Bytes to names and labels; no patches.

CSV has one pair per line, with or without a first line that names the columns (then in any order, and others are passed
over). A PhotoTour line is `patch point unused patch point unused …`, whole numbers between blanks, of which the first
and fourth are patches, the second and fifth the 3D points that these show: a match where the points are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList, quoted
from raybench.formats.names import Strings
from raybench.formats.pair_labels import as_numbers, read_labels
from raybench.formats.text_rows import SHOWN, csv_rows, first_cells

COLUMNS = ("a", "b", "label")
NAMED = {"a": "a", "patch_a": "a", "b": "b", "patch_b": "b", "label": "label", "labels": "label"}
MOST_FIRST_BYTES = 10_000
PHOTOTOUR_LINE = re.compile(rb"\s*[-+]?\d+(?:[ \t]+[-+]?\d+){4,}\s*")
PHOTOTOUR = ("patch_a", "point_a", "unused_a", "patch_b", "point_b")


@dataclass(frozen=True)
class PairList:
    """The pairs of one file: names of patches (numbers, of PhotoTour), which are matches, and the line of each.

    `points` are the 3D points of both patches, where the file says them.
    """

    name: str
    a: Strings
    b: Strings
    positive: NDArray[np.bool_]
    line: NDArray[np.int64]
    points: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.positive)

    def place(self, row: int) -> str:
        return f"line {self.line[row]}"


def read_pair_list(data: bytes, name: str, problems: ProblemList) -> PairList:
    """The pairs of a file, at least one. What is wrong with lines is noted; those that name two patches still count."""
    first = first_line(data)
    if not first:
        raise DataError(f"{name}: empty; expected a,b,label lines, or PhotoTour's m50_….txt")
    is_phototour = PHOTOTOUR_LINE.fullmatch(first) is not None
    found = _phototour(data, name, problems) if is_phototour else _csv(data, name, problems)
    if not len(found):
        problems.check()
        raise DataError(f"{name}: no pairs; expected a,b,label lines below its first")
    return found


def first_line(data: bytes) -> bytes:
    """The first line with something in it, cut where it is too long for a heading."""
    return data[: 2 * MOST_FIRST_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0][:MOST_FIRST_BYTES]


def column_names(first: bytes, named: dict[str, str], name: str) -> list[str]:
    """What each cell of a first line says its column is, by these spellings; empty where it is none of them."""
    text = first.decode("utf-8", "replace")
    known = [named.get(re.sub(r"\s", "", cell).lower(), "") for cell in first_cells(text)]
    there = [column for column in known if column]
    if len(set(there)) < len(there):
        raise DataError(f"{name}: its first line names a column twice ({quoted(text.strip())})")
    return known


def _csv(data: bytes, name: str, problems: ProblemList) -> PairList:
    known = column_names(first_line(data), NAMED, name)
    header = set(COLUMNS) <= set(known)
    if not header and len(known) != len(COLUMNS):
        raise DataError(
            f"{name}: its first line has {len(known)} columns and does not name them; expected a,b,label, a first line "
            "with these names, or PhotoTour's patch point unused patch point …"
        )
    columns = [column or f"column {place}" for place, column in enumerate(known)] if header else list(COLUMNS)
    rows = csv_rows(data, name, columns, COLUMNS, header)
    rows.wrong.note(name, problems)
    a, b, label = rows.columns
    found = PairList(name, a, b, np.zeros(len(a), np.bool_), rows.line)
    nameless = [row for row in range(len(a)) if not (a[row].as_py() and b[row].as_py())] if _has_empty(a, b) else []
    lines = [f"{name}: {found.place(row)}: no name of a patch; expected a,b,label" for row in nameless[:SHOWN]]
    problems.add_first(lines, len(nameless), name, "lines without two names")
    positive = read_labels(label, name, found.place, problems)
    return _without(PairList(name, a, b, positive, rows.line), nameless)


def _has_empty(*columns: Strings) -> bool:
    return any("" in column.dictionary_encode().dictionary.to_pylist() for column in columns)


def _phototour(data: bytes, name: str, problems: ProblemList) -> PairList:
    width = len(first_line(data).split())
    single = re.sub(rb"[ \t]+", b" ", data.removeprefix(b"\xef\xbb\xbf"))  # or what follows would take minutes
    bare = re.sub(rb"(?m)^ | (?=\r?$)", b"", single)
    columns = [*PHOTOTOUR, *(f"unused {place}" for place in range(len(PHOTOTOUR), width))]
    rows = csv_rows(bare.replace(b" ", b","), name, columns, ("patch_a", "point_a", "patch_b", "point_b"), False)
    rows.wrong.note(name, problems)
    numbers, odd = [], set[int]()
    for column in rows.columns:
        values, bad = as_numbers(column, pa.int64())
        bad = np.union1d(bad, np.flatnonzero(values < 0))
        lines = [
            f"{name}: line {rows.line[row]}: {quoted(column[row].as_py())} is no number of a patch or point"
            for row in bad[:SHOWN].tolist()
        ]
        problems.add_first(lines, len(bad), name, "such numbers")
        numbers.append(values.astype(np.int64))
        odd.update(bad.tolist())
    _, point_a, _, point_b = numbers
    found = PairList(name, rows.columns[0], rows.columns[2], point_a == point_b, rows.line, (point_a, point_b))
    return _without(found, sorted(odd))


def _without(pairs: PairList, rows: Sequence[int]) -> PairList:
    """The pairs but for these rows."""
    if not rows:
        return pairs
    kept = np.delete(np.arange(len(pairs)), rows)
    points = pairs.points and (pairs.points[0][kept], pairs.points[1][kept])
    a, b = (side.take(pa.array(kept)) for side in (pairs.a, pairs.b))
    return PairList(pairs.name, a, b, pairs.positive[kept], pairs.line[kept], points)
