"""Predictions of DISC2021, `query,reference,score` lines by the ten million: read in blocks, of which one is held.

What remains of all lines while a file is checked is 8 bytes each, by which one that comes twice is found. Names are
counted as they are first seen; all problems of a file are raised together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from xxhash import xxh3_128

from raybench.errors import DataError, ProblemList
from raybench.formats.disc import (
    COLUMNS,
    HEADINGS,
    MOST_HEADING_BYTES,
    GroundTruth,
    read_columns,
)
from raybench.formats.names import Names, Strings, stems
from raybench.formats.text_rows import SHOWN, Noted, TextRows

MOST_PREDICTIONS = 500_000  # of a submission
BLOCK_BYTES = 2**25  # a million lines and more: some 300 MB while they are parsed


@dataclass(frozen=True)
class LineBlock:
    """Whole lines of a file: the bytes from `start` to `stop`, and the number of the first."""

    start: int
    stop: int
    first_line: int

    def read(self, file: BinaryIO) -> bytes:
        file.seek(self.start)
        return file.read(self.stop - self.start)


@dataclass(frozen=True)
class CheckedPredictions:
    """A file that was found good: the digest of its content, its predictions, its blocks, and every name once."""

    name: str
    digest: str
    count: int
    blocks: tuple[LineBlock, ...]
    queries: Strings  # in the order in which they are first seen
    references: Strings


@dataclass(frozen=True)
class MatchedTables:
    """All names that predictions or true pairs have, and the true pairs as indices into them."""

    queries: Names
    references: Names
    true_query: NDArray[np.int64]
    true_reference: NDArray[np.int64]


def check_predictions(
    file: BinaryIO, name: str, most: int | None = MOST_PREDICTIONS, block_bytes: int = BLOCK_BYTES
) -> CheckedPredictions:
    """What a file holds, of whose predictions there may be at most so many (None: any number); raises Problems."""
    digest, blocks = xxh3_128(), list[LineBlock]()
    kinds = [Noted(what) for what in ("lines with a wrong number of columns", "lines without a query")]
    kinds += [Noted("scores that are no numbers"), Noted("such lines")]
    pairs = PairsSeen()
    line, heading = 1, b""
    for start, data in _cut_at_lines(file, block_bytes):
        digest.update(data)
        blocks.append(LineBlock(start, start + len(data), line))
        heading = heading or data[:MOST_HEADING_BYTES]
        rows = read_columns(data, name, 3, header=not start, first_line=line, heading=heading)
        line += rows.lines
        _, no_numbers = scores_of(rows, name)
        for kind, found in zip(kinds, (rows.wrong, rows.nameless, no_numbers, _no_reference(rows, name)), strict=True):
            kind.join(found)
        pairs.add(rows)
    problems = ProblemList()
    for kind in kinds:
        kind.note(name, problems)
    if most is not None and pairs.count > most:
        problems.add(
            f"{name}: {pairs.count:,} predictions, at most {most:,} are taken; keep those with the best scores"
        )
    if not problems.lines and not pairs.count:
        problems.add(f"{name}: no prediction; expected lines query,reference,score")
    pairs.note_repeated(name, problems)
    problems.check()
    return CheckedPredictions(
        name, digest.hexdigest(), pairs.count, tuple(blocks), pairs.queries.names, pairs.references.names
    )


def read_block(file: BinaryIO, block: LineBlock, name: str) -> tuple[Strings, Strings, NDArray[np.float64]]:
    """Query, reference and score of the lines of one block of a file that was found good."""
    file.seek(0)
    heading = file.read(MOST_HEADING_BYTES)
    rows = read_columns(block.read(file), name, 3, header=not block.start, heading=heading)
    score, _ = scores_of(rows, name)
    return rows.columns[0], rows.columns[1], score


def match_tables(truth: GroundTruth, predictions: CheckedPredictions) -> MatchedTables:
    """The names of both tables; that no query of the predictions stands in the ground truth is an error."""
    listed = pa.concat_arrays([truth.query, truth.unmatched])
    if not pc.any(pc.is_in(predictions.queries, value_set=listed)).as_py():
        swapped = pc.any(pc.is_in(predictions.references, value_set=listed)).as_py()
        bare = pc.any(pc.is_in(stems(predictions.queries), value_set=stems(listed))).as_py()
        advice = (
            "its references do: swap the columns, or name them in a first line"
            if swapped
            else "leave folder and suffix out of names"
            if bare
            else "names must be the same in both"
        )
        raise DataError(
            f"{predictions.name}: none of its queries ({predictions.queries[0].as_py()!r} …) stands in {truth.name} "
            f"({listed[0].as_py()!r} …); {advice}"
        )
    queries = Names.of(pa.concat_arrays([listed, predictions.queries]).unique())
    references = Names.of(pa.concat_arrays([truth.reference, predictions.references]).unique())
    return MatchedTables(queries, references, queries.indices(truth.query), references.indices(truth.reference))


def _cut_at_lines(file: BinaryIO, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The file in blocks that end with a line, each with the place of its first byte."""
    start, rest = 0, b""
    while data := file.read(block_bytes):
        whole, end, rest_of_it = data.rpartition(b"\n")
        if not end:
            rest += data
            continue
        block = rest + whole + end
        yield start, block
        start, rest = start + len(block), rest_of_it
    if rest:
        yield start, rest


class NamesSeen:
    """Names with numbers in the order in which they are first seen."""

    def __init__(self) -> None:
        self.names: Strings = pa.array([], pa.string())

    def numbers(self, values: Strings) -> NDArray[np.int64]:
        """The number of each value; new ones get the next."""
        coded = values.dictionary_encode()
        known = pc.index_in(coded.dictionary, value_set=self.names)
        new = np.asarray(known.is_null())
        numbers = np.asarray(pc.fill_null(known, 0), np.int64)
        numbers[new] = len(self.names) + np.arange(new.sum())
        self.names = pa.concat_arrays([self.names, coded.dictionary.filter(pa.array(new))])
        found: NDArray[np.int64] = numbers[np.asarray(coded.indices)]
        return found


class PairsSeen:
    """The (query, reference) pairs of all lines so far: 8 bytes each."""

    def __init__(self) -> None:
        self.queries, self.references, self.count = NamesSeen(), NamesSeen(), 0
        self._keys: list[NDArray[np.int64]] = []
        self._lines: list[NDArray[np.int64] | range] = []

    def add(self, rows: TextRows) -> None:
        query, reference = (seen.numbers(column) for seen, column in zip(self._seen, rows.columns, strict=False))
        self._keys.append(query << 32 | reference)
        line = rows.line
        plain = len(line) > 0 and int(line[-1]) - int(line[0]) + 1 == len(line)
        self._lines.append(range(int(line[0]), int(line[-1]) + 1) if plain else line)
        self.count += len(line)

    def note_repeated(self, name: str, problems: ProblemList) -> None:
        """Note the lines whose pair stood on a line before."""
        keys = np.concatenate([np.zeros(0, np.int64), *self._keys])
        ordered = np.sort(keys)
        again = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        if not again:
            return
        order = np.argsort(keys, kind="stable")  # among equals the first line leads
        rows = np.sort(order[1:][ordered[1:] == ordered[:-1]])[:SHOWN]
        first = order[np.searchsorted(ordered, keys[rows])]
        found = zip(first.tolist(), rows.tolist(), keys[rows].tolist(), strict=True)
        words = [self._words(name, *one) for one in found]
        problems.add_first(words, again, name, "lines that repeat an earlier one")

    @property
    def _seen(self) -> tuple[NamesSeen, NamesSeen]:
        return self.queries, self.references

    def _words(self, name: str, first: int, again: int, key: int) -> str:
        query, reference = self.queries.names[key >> 32].as_py(), self.references.names[key & (2**32 - 1)].as_py()
        lines = f"lines {self._line(first)} and {self._line(again)}"
        return f"{name}: {lines}: the same prediction twice ({query!r}, {reference!r}); keep one"

    def _line(self, row: int) -> int:
        for lines in self._lines:
            if row < len(lines):
                return int(lines[row])
            row -= len(lines)
        raise IndexError(row)


def scores_of(rows: TextRows, name: str) -> tuple[NDArray[np.float64], Noted]:
    """The scores of rows, NaN where a text is no number; and those."""
    text = rows.columns[COLUMNS.index("score")]
    try:
        score = np.asarray(text.cast(pa.float64()), np.float64)
    except pa.ArrowInvalid:
        score = np.array([_number(value) for value in text.to_pylist()], np.float64)
    bad, noted = np.flatnonzero(np.isnan(score)), Noted("scores that are no numbers")
    lines = ((int(rows.line[row]), text[int(row)].as_py()) for row in bad)
    noted.add(
        (f"{name}: line {line}: score {word!r} is no number{_heading_advice(line)}" for line, word in lines), len(bad)
    )
    return score, noted


def _heading_advice(line: int) -> str:
    names = ", ".join(" or ".join(HEADINGS[column][:2]) for column in COLUMNS)
    return f"; a first line of names has {names}, in any order" if line == 1 else ""


def _no_reference(rows: TextRows, name: str) -> Noted:
    empty, noted = np.flatnonzero(np.asarray(pc.equal(rows.columns[1], ""))), Noted("such lines")
    words = (f"{name}: line {rows.line[row]}: no reference; expected query,reference,score" for row in empty)
    noted.add(words, len(empty))
    return noted


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
