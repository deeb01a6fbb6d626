"""The tables of DISC2021, as the ISC 2021 tools read and write them: rows of text, ground truth, written predictions.

Ground truth is one pair `query,reference` per line, with an empty reference for a query without match; predictions are
`query,reference,score`, which `disc_predictions` reads. A first line with the columns' names is optional, and with it
columns may stand in any order. All problems of a file are raised together.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from raybench.errors import ProblemList
from raybench.formats.names import Names, Strings, stems
from raybench.formats.text_rows import SHOWN, Noted, TextRows, csv_rows

MOST_HEADING_BYTES = 1_024
COLUMNS = ("query", "reference", "score")
HEADINGS = {  # under which columns are known
    "query": ("query", "query_id", "queryid", "query_name", "query_image"),
    "reference": (
        "reference",
        "reference_id",
        "referenceid",
        "ref",
        "ref_id",
        "refid",
        "reference_name",
        "db",
        "db_id",
    ),
    "score": ("score", "similarity", "sim", "confidence"),
}


@dataclass(frozen=True)
class GroundTruth:
    """True pairs by name, with the line of each; `unmatched` are queries that are listed as without match."""

    name: str
    query: Strings
    reference: Strings
    line: NDArray[np.int64]
    unmatched: Strings

    def __len__(self) -> int:
        return len(self.query)

    def indices(
        self, queries: Names, references: Names, problems: ProblemList
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Query and reference of every pair as indices into these sets; a name that is in none is noted."""
        query, reference = queries.indices(self.query), references.indices(self.reference)
        for what, indices, names in (("query", query, self.query), ("reference", reference, self.reference)):
            unknown = np.flatnonzero(indices < 0)
            known = queries if what == "query" else references
            lines = [
                f"{self.name}: line {self.line[row]}: {what} {names[int(row)].as_py()!r} is not among the "
                f"{what.replace('query', 'querie')}s; {_advice(names[int(row)].as_py(), known)}"
                for row in unknown[:SHOWN].tolist()
            ]
            problems.add_first(lines, len(unknown), self.name, f"lines name an unknown {what}")
        there = (query >= 0) & (reference >= 0)
        return query[there], reference[there]


def _advice(name: str, known: Names) -> str:
    """What to do about a name of the truth that no image has."""
    bare = stems(pa.array([name]))
    if bare[0].as_py() != name and known.indices(bare)[0] >= 0:
        return f"{bare[0].as_py()!r} is: names are without folder and suffix, leave these out in the file"
    return f"those are {known[0]!r} …; mend the file or bring the image" if len(known) else "there are none"


def read_ground_truth(data: bytes, name: str) -> GroundTruth:
    """The true pairs of a file; raises Problems."""
    problems = ProblemList()
    rows = read_columns(data, name, 2, header=True)
    (query, reference), line = rows.columns, rows.line
    rows.wrong.note(name, problems)
    rows.nameless.note(name, problems)
    paired = pc.not_equal(reference, "")
    flags = np.asarray(paired)
    note_twice(name, query, reference, line, problems, "the same pair")
    lone = query.filter(pc.invert(paired))
    both = np.flatnonzero(np.asarray(pc.is_in(query, value_set=lone)) & flags) if len(lone) else np.zeros(0, np.int64)
    lines = [
        f"{name}: line {line[row]}: query {query[row].as_py()!r} has a match here and is elsewhere listed without one"
        for row in both[:SHOWN].tolist()
    ]
    problems.add_first(lines, len(both), name, "such lines")
    if not problems.lines and not flags.any():
        problems.add(f"{name}: no pair; expected lines query,reference")
    problems.check()
    return GroundTruth(name, query.filter(paired), reference.filter(paired), line[flags], lone)


def write_predictions(query: Strings, reference: Strings, score: NDArray[Any]) -> bytes:
    """A predictions file in the order given (in ISC files by query, then falling score), scores at full precision.

    Names stand in quotes only where one of them has a comma, a quote or a line end.
    """
    sink = io.BytesIO()
    sink.write(b"query_id,reference_id,score\n")
    table = pa.table({"query": query, "reference": reference, "score": score.astype(np.float64)})
    odd = any(pc.any(pc.match_substring_regex(names, '[,"\r\n]')).as_py() for names in (query, reference))
    options = pacsv.WriteOptions(include_header=False, quoting_style="needed" if odd else "none")
    pacsv.write_csv(table, sink, options)
    return sink.getvalue()


@dataclass(frozen=True)
class NamedRows(TextRows):
    """Rows of a table of DISC2021, of which each has a query; those without are counted."""

    nameless: Noted


def read_columns(
    data: bytes, name: str, width: int, header: bool, first_line: int = 1, heading: bytes = b""
) -> NamedRows:
    """The rows of a whole file, or of some of its lines, of which the first has this number and may be a header.

    `heading` is the first line of the file, by which columns are told apart; of a whole file it is its own.
    """
    order = column_order(data if header else heading, width)
    named = [COLUMNS[place] for place in order or range(width)]
    rows = csv_rows(data, name, named, COLUMNS[:width], header and order is not None, first_line)
    nameless = Noted("lines without a query")
    bare = np.flatnonzero(np.asarray(pc.equal(rows.columns[0], "")))
    expected = ",".join(COLUMNS[:width])
    nameless.add((f"{name}: line {rows.line[row]}: no query; expected {expected}" for row in bare), len(bare))
    return NamedRows(rows.columns, rows.line, rows.wrong, rows.lines, nameless)


def column_order(data: bytes, width: int) -> tuple[int, ...] | None:
    """Which of COLUMNS stands where, by a first line that names each of them once; None if it does not.

    >>> column_order(b"score,Query_ID,reference", 3), column_order(b"Q1,R1", 2)
    ((2, 0, 1), None)
    """
    first = (
        data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:MOST_HEADING_BYTES].decode("utf-8", "replace").lower()
    )
    names = re.sub(r'[\s"]', "", first).split(",")
    known = {heading: place for place, column in enumerate(COLUMNS[:width]) for heading in HEADINGS[column]}
    order = tuple(known.get(name, -1) for name in names)
    return order if sorted(order) == list(range(width)) else None


def note_twice(
    name: str, query: Strings, reference: Strings, line: NDArray[np.int64], problems: ProblemList, what: str
) -> None:
    codes = [np.asarray(column.dictionary_encode().indices, np.int64) for column in (query, reference)]
    keys = codes[0] * (int(codes[1].max(initial=0)) + 1) + codes[1]
    ordered = np.sort(keys)
    if not np.any(ordered[1:] == ordered[:-1]):
        return
    order = np.argsort(keys, kind="stable")
    at = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    again = np.sort(order[at + 1])
    first = {int(keys[row]): row for row in order[at][::-1].tolist()}
    lines = [
        f"{name}: lines {line[first[int(keys[row])]]} and {line[row]}: {what} twice "
        f"({query[row].as_py()!r}, {reference[row].as_py()!r}); keep one"
        for row in again[:SHOWN].tolist()
    ]
    problems.add_first(lines, len(again), name, "lines that repeat an earlier one")
