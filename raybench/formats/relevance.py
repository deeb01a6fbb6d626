"""Truth of one's own data: which references are relevant to which queries, and how much; CSV or Parquet.

Columns are `query`, `reference` and, if there is more to say, `grade`: `positive`, `hard` (relevant, and hard to find),
`junk` (neither right nor wrong), or a number from 0 (not relevant) upwards. Other columns are passed over. A CSV file
without names of columns has them in this order. An empty reference lists a query without match.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList, blamed_on_file, quoted, suggestion
from raybench.formats.disc import HEADINGS, MOST_HEADING_BYTES
from raybench.formats.grades import Grades, read_grades
from raybench.formats.limits import USUAL, Limits
from raybench.formats.names import Names, Strings, name_order, strings, without_suffix
from raybench.formats.parquet_vectors import open_parquet
from raybench.formats.text_rows import OTHER_MARKS, SHOWN, csv_rows, first_cells

COLUMNS = ("query", "reference", "grade")
NAMED = {heading: column for column in COLUMNS[:2] for heading in HEADINGS[column]} | {
    "grade": "grade",
    "label": "grade",
    "relevance": "grade",
}
PARQUET = ".parquet"
MOST_FOLDERS = 100  # of a name that are left out one by one


@dataclass(frozen=True)
class Table:
    """Columns of text, and the line (of CSV) or row (of Parquet) of each of their rows."""

    columns: list[Strings]
    line: NDArray[np.int64]
    unit: str

    def place(self, row: int) -> str:
        return f"{self.unit} {self.line[row]}"


@dataclass(frozen=True)
class Relevance:
    """Pairs by name with their grades; `unmatched` are queries that are listed without a reference."""

    name: str
    pairs: Table
    grades: Grades
    unmatched: Strings

    def __len__(self) -> int:
        return len(self.pairs.line)

    def indices(
        self, queries: Names, references: Names, problems: ProblemList
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Query and reference of every pair as indices into these sets; names of none and double pairs are noted."""
        query, reference = (
            matched_indices(*both) for both in zip((queries, references), self.pairs.columns, strict=False)
        )
        header = self._note_header(query, reference, problems)
        for what, known, wanted, index in zip(
            COLUMNS, (queries, references), self.pairs.columns, (query, reference), strict=False
        ):
            unknown = np.flatnonzero(index < 0)[header:]
            lines = [
                f"{self.name}: {self.pairs.place(row)}: {what} {wanted[row].as_py()!r} is not among the "
                f"{what.replace('query', 'querie')}s{_nearest(wanted[row].as_py(), known)}; "
                "mend the file or bring the image"
                for row in unknown[:SHOWN].tolist()
            ]
            problems.add_first(lines, len(unknown), self.name, f"lines name an unknown {what}")
        lone = matched_indices(queries, self.unmatched)
        if np.any(lone < 0):
            first = self.unmatched[int(np.flatnonzero(lone < 0)[0])].as_py()
            problems.add(
                f"{self.name}: query {first!r}, listed without a reference, is not among the queries "
                f"({np.count_nonzero(lone < 0):,} such)"
            )
        self._note_twice(query, reference, problems)
        return query, reference

    def _note_header(self, query: NDArray[np.int64], reference: NDArray[np.int64], problems: ProblemList) -> int:
        """Note a first line that seems to name columns, by other names than ours; whether it does, 1 or 0."""
        known = (query >= 0) & (reference >= 0)
        if not known.any() or self.pairs.place(0) != "line 1" or query[0] >= 0 or reference[0] >= 0:
            return 0
        cells = ",".join(column[0].as_py() for column in self.pairs.columns if column[0].as_py())
        problems.add(
            f"{self.name}: line 1: {quoted(cells)} names no query and no reference; if it names the columns, call them "
            "query,reference or query,reference,grade"
        )
        return 1

    def _note_twice(self, query: NDArray[np.int64], reference: NDArray[np.int64], problems: ProblemList) -> None:
        """Note pairs that come twice, perhaps by other spellings of a name."""
        order = np.lexsort((np.arange(len(query)), reference, query))
        one, other = order[:-1], order[1:]
        same = (query[one] == query[other]) & (reference[one] == reference[other])
        same &= (query[one] >= 0) & (reference[one] >= 0)
        lines = [
            f"{self.name}: {self.pairs.place(first)} and {self.pairs.place(second)}: the same pair twice "
            f"({', '.join(repr(column[first].as_py()) for column in self.pairs.columns)}); keep one"
            for first, second in zip(one[same][:SHOWN].tolist(), other[same][:SHOWN].tolist(), strict=True)
        ]
        problems.add_first(lines, int(same.sum()), self.name, "pairs that come twice")


def matched_indices(known: Names, wanted: Strings) -> NDArray[np.int64]:
    """The index of each wanted name: as it is written, else without its image suffix, else also without the first of
    its folders, or more of them.

    An accent may be part of its letter or stand behind it: some systems write file names so, and nobody sees it.

    >>> matched_indices(Names.of(["a", "cat/1"]), strings(["a", "x/a.jpg", "set/cat/1.png", "b"])).tolist()
    [0, 0, 1, -1]
    >>> matched_indices(Names.of(["e\\u0301"]), strings(["\\u00e9", "e"])).tolist()
    [0, -1]
    """
    index = known.indices(wanted)
    if np.any(index < 0) and not pc.all(pc.string_is_ascii(known.array), min_count=0).as_py():
        composed = pc.utf8_normalize(known.array, "NFC")
        if pc.count_distinct(composed).as_py() == len(known):
            known, wanted = Names(composed), pc.utf8_normalize(wanted, "NFC")
            index = known.indices(wanted)
    missing = np.flatnonzero(index < 0)
    spelled = without_suffix(wanted.take(pa.array(missing)))
    for _ in range(MOST_FOLDERS):
        index[missing] = known.indices(spelled)
        may_be_shorter = (index[missing] < 0) & np.asarray(pc.match_substring(spelled, "/"))
        missing, spelled = missing[may_be_shorter], spelled.filter(pa.array(may_be_shorter))
        if not len(missing):
            break
        spelled = pc.replace_substring_regex(spelled, r"(?s)^[^/]*/", "")
    return index


def _nearest(name: str, known: Names) -> str:
    """What such names look like, in words."""
    if not len(known):
        return ", of which there are none"
    near = suggestion(name, known.array.slice(0, 1_000).to_pylist())
    return near or f", which are {known[0]!r} …"


def read_relevance(data: bytes, name: str, problems: ProblemList, limits: Limits = USUAL) -> Relevance:
    """The pairs of a file. What is wrong with lines is noted; names in such lines are still checked later."""
    noted = len(problems.lines)
    table = _parquet(data, name, limits) if name.lower().endswith(PARQUET) else _csv(data, name, problems)
    query, reference, grade = table.columns

    def note(rows: NDArray[np.int64], what: str, words: str) -> None:
        """Note the first of these rows, with its query for `{}`."""
        lines = [
            f"{name}: {table.place(row)}: {words.format(repr(query[row].as_py()))}" for row in rows[:SHOWN].tolist()
        ]
        problems.add_first(lines, len(rows), name, what)

    named, paired = (np.asarray(pc.not_equal(column, "")) for column in (query, reference))
    note(np.flatnonzero(~named), "lines without a query", "no query; expected query,reference")
    grades = read_grades(name, grade, table.place, paired, problems)
    kept, lone = named & paired, np.flatnonzero(named & ~paired)
    unmatched = query.take(pa.array(lone))
    both = np.flatnonzero(np.asarray(pc.is_in(query, value_set=unmatched)) & paired) if len(lone) else lone
    note(both, "such lines", "query {} has a reference here and is elsewhere listed without one")
    _, twice = name_order(unmatched)
    note(lone[np.sort(twice[:, 1])], "such lines", "query {} is listed without a reference once more; keep one line")
    if len(problems.lines) == noted and not np.any(grades.gain[kept] > 0):
        problems.add(f"{name}: no relevant pair; expected lines query,reference, with a grade above 0 if with any")
    chosen = pa.array(kept)
    pairs = Table([query.filter(chosen), reference.filter(chosen)], table.line[kept], table.unit)
    return Relevance(name, pairs, grades.at(kept), unmatched)


def _csv(data: bytes, name: str, problems: ProblemList) -> Table:
    if not data.strip():
        raise DataError(f"{name}: is empty; expected lines query,reference or query,reference,grade")
    first = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:MOST_HEADING_BYTES].decode("utf-8", "replace")
    cells = [re.sub(r"\s", "", cell).lower() for cell in first_cells(first)]
    known = [NAMED.get(cell, "") for cell in cells]
    header = {"query", "reference"} <= set(known)
    if not header and len(cells) not in (2, 3):
        other = next((f", joined by {word}, not by commas" for mark, word in OTHER_MARKS.items() if mark in first), "")
        raise DataError(
            f"{name}: its first line does not name the columns query and reference, and has {len(cells)}{other}; "
            "expected lines query,reference or query,reference,grade"
        )
    if not header and known[2:] == ["grade"]:
        raise DataError(f"{name}: its first line names the columns {first.strip()}; expected query,reference,grade")
    if header and len({column for column in known if column}) < len([column for column in known if column]):
        raise DataError(f"{name}: its first line names a column twice ({first.strip()})")
    columns = [column or f"column {place}" for place, column in enumerate(known)] if header else COLUMNS[: len(cells)]
    wanted = [column for column in COLUMNS if column in columns]
    rows = csv_rows(data, name, columns, wanted, header)
    rows.wrong.note(name, problems)
    found = dict(zip(wanted, rows.columns, strict=True))
    empty = pa.array([""] * len(rows.line), pa.string())
    return Table([found.get(column, empty) for column in COLUMNS], rows.line, "line")


def _parquet(data: bytes, name: str, limits: Limits) -> Table:
    with blamed_on_file(f"{name}: its columns can't be read", "write it again"):
        file, sizes = open_parquet(io.BytesIO(data), name)
        there = file.schema_arrow.names
        known = {NAMED[column.lower()]: column for column in reversed(there) if column.lower() in NAMED}
        if not {"query", "reference"} <= known.keys():
            raise DataError(f"{name}: has the columns {', '.join(there)}; expected query, reference and perhaps grade")
        limits.check_unpacked(sum(sizes.get(column, 0) for column in known.values()), name, "its pairs")
        table = file.read(columns=list(known.values()), use_threads=False)
        columns = {what: _as_text(table[column]) for what, column in known.items()}
    empty = pa.array([""] * len(table), pa.string())
    found = [columns.get(column, empty) for column in COLUMNS]
    return Table(found, np.arange(1, len(table) + 1), "row")


def _as_text(column: pa.ChunkedArray) -> Strings:
    return pc.utf8_trim_whitespace(pc.fill_null(strings(column), ""))
