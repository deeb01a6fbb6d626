"""The tables of DISC2021, as the ISC 2021 tools read and write them: ground truth and predictions.

Ground truth is one pair `query,reference` per line, with an empty reference for a query without match; predictions are
`query,reference,score`. A first line with the columns' names is optional. All problems of a file are raised together.
"""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList
from raybench.formats.names import Names, Strings

MOST_PREDICTIONS = 500_000  # of a submission
SHOWN = 10  # problems of one kind that are listed; the rest are counted
DECODED_BYTES = 2**20  # looked at once
COLUMNS = ("query", "reference", "score")


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
            lines = [
                f"{self.name}: line {self.line[row]}: {what} {names[int(row)].as_py()!r} is not among the "
                f"{what.replace('query', 'querie')}s; mend the file or bring the image"
                for row in unknown[:SHOWN].tolist()
            ]
            problems.add_first(lines, len(unknown), self.name, f"lines name an unknown {what}")
        there = (query >= 0) & (reference >= 0)
        return query[there], reference[there]


@dataclass(frozen=True)
class PredictionTable:
    """Predictions by name, in the order of the file."""

    name: str
    query: Strings
    reference: Strings
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True)
class MatchedTables:
    """All names that predictions or true pairs have, and the true pairs as indices into them."""

    queries: Names
    references: Names
    true_query: NDArray[np.int64]
    true_reference: NDArray[np.int64]


def read_ground_truth(data: bytes, name: str) -> GroundTruth:
    """The true pairs of a file; raises Problems."""
    problems = ProblemList()
    (query, reference), line = _columns(data, name, 2, problems)
    paired = pc.not_equal(reference, "")
    flags = np.asarray(paired)
    _check_twice(name, query, reference, line, problems, "the same pair")
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


def read_predictions(data: bytes, name: str, most: int | None = MOST_PREDICTIONS) -> PredictionTable:
    """The predictions of a file, of which there may be at most so many (None: any number); raises Problems."""
    problems = ProblemList()
    (query, reference, text), line = _columns(data, name, 3, problems)
    score = _scores(text, line, name, problems)
    empty = np.flatnonzero(np.asarray(pc.equal(reference, "")))
    lines = [f"{name}: line {line[row]}: no reference; expected query,reference,score" for row in empty[:SHOWN]]
    problems.add_first(lines, len(empty), name, "such lines")
    if most is not None and len(query) > most:
        problems.add(f"{name}: {len(query):,} predictions, at most {most:,} are taken; keep those with the best scores")
    if not problems.lines and not len(query):
        problems.add(f"{name}: no prediction; expected lines query,reference,score")
    _check_twice(name, query, reference, line, problems, "the same prediction")
    problems.check()
    return PredictionTable(name, query, reference, score)


def match_tables(truth: GroundTruth, predictions: PredictionTable) -> MatchedTables:
    """The names of both tables; that no query of the predictions stands in the ground truth is an error."""
    listed = pa.concat_arrays([truth.query, truth.unmatched])
    if not pc.any(pc.is_in(predictions.query, value_set=listed)).as_py():
        raise DataError(
            f"{predictions.name}: none of its queries ({predictions.query[0].as_py()!r} …) stands in {truth.name} "
            f"({listed[0].as_py()!r} …); names must be the same in both"
        )
    queries = Names.of(pa.concat_arrays([listed, predictions.query]).unique())
    references = Names.of(pa.concat_arrays([truth.reference, predictions.reference]).unique())
    return MatchedTables(
        queries,
        references,
        queries.indices(truth.query),
        references.indices(truth.reference),
    )


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


def _columns(data: bytes, name: str, width: int, problems: ProblemList) -> tuple[list[Strings], NDArray[np.int64]]:
    """The columns as text without surrounding blanks, and the line of each row; blank lines aside."""
    if not data.strip():
        return [pa.array([], pa.string())] * width, np.zeros(0, np.int64)
    _check_text(data, name)
    skipped: list[int] = []
    wrong: list[str] = []

    def odd_row(row: Any) -> str:
        skipped.append(row.number)
        if row.text.strip():
            found = f"{row.actual_columns} columns"
            wrong.append(f"{name}: line {row.number}: {found}, expected {width} ({','.join(COLUMNS[:width])})")
        return "skip"

    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(use_threads=False, column_names=COLUMNS[:width]),
            parse_options=pacsv.ParseOptions(invalid_row_handler=odd_row, ignore_empty_lines=False),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(COLUMNS[:width], pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"{name}: no CSV file of UTF-8 text ({' '.join(str(error).split())})") from None
    problems.add_first(wrong[:SHOWN], len(wrong), name, "lines with a wrong number of columns")
    line = np.delete(np.arange(1, len(table) + len(skipped) + 1), np.array(skipped, np.int64) - 1)
    columns = [pc.utf8_trim_whitespace(table[column].combine_chunks()) for column in COLUMNS[:width]]
    written = np.any([np.asarray(pc.not_equal(column, "")) for column in columns], axis=0)
    written[: int(_has_header(data, width))] = False
    columns, line = [column.filter(pa.array(written)) for column in columns], line[written]
    nameless = np.flatnonzero(np.asarray(pc.equal(columns[0], "")))
    lines = [f"{name}: line {line[row]}: no query; expected {','.join(COLUMNS[:width])}" for row in nameless[:SHOWN]]
    problems.add_first(lines, len(nameless), name, "lines without a query")
    return columns, line


def _check_text(data: bytes, name: str) -> None:
    """Refuse bytes that are no UTF-8 before Arrow sees them: its own complaint goes straight to the screen."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), DECODED_BYTES):
            decoder.decode(data[start : start + DECODED_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: no CSV file of UTF-8 text ({error.reason})") from None


def _has_header(data: bytes, width: int) -> bool:
    first = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace").lower()
    names = re.sub(r'[\s"]', "", first).split(",")
    return names in ([f"{column}_id" for column in COLUMNS[:2]] + ["score"] * (width - 2), list(COLUMNS[:width]))


def _scores(text: Strings, line: NDArray[np.int64], name: str, problems: ProblemList) -> NDArray[np.float64]:
    try:
        score = np.asarray(text.cast(pa.float64()), np.float64)
    except pa.ArrowInvalid:
        score = np.array([_number(value) for value in text.to_pylist()], np.float64)
    bad = np.flatnonzero(np.isnan(score))
    lines = [f"{name}: line {line[row]}: score {text[row].as_py()!r} is no number" for row in bad[:SHOWN].tolist()]
    problems.add_first(lines, len(bad), name, "scores that are no numbers")
    return score


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _check_twice(
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
        f"({query[row].as_py()}, {reference[row].as_py()}); keep one"
        for row in again[:SHOWN].tolist()
    ]
    problems.add_first(lines, len(again), name, "lines that repeat an earlier one")
