"""Finished scores of patch pairs: `distance,label` or `score,label` in CSV with a header, or the same arrays in `.npz`.

Distances fall and scores rise as patches get closer; inside, a score is its own negative, which orders as it does.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList, quoted
from raybench.formats.limits import USUAL, Limits
from raybench.formats.npy import member_header, open_npz, read_member
from raybench.formats.pair_labels import EXPECTED, as_numbers, read_labels
from raybench.formats.pair_lists import column_names, first_line
from raybench.formats.text_rows import SHOWN, csv_rows

NAMED = {
    "label": "label",
    "labels": "label",
    "distance": "distance",
    "distances": "distance",
    "score": "score",
    "scores": "score",
}
FORM = "distance,label or score,label"
EXACT_WHOLE = 2**53  # beyond, float64 holds not every whole number


@dataclass(frozen=True)
class PairScores:
    """The pairs of one file: how far apart each is (of scores, their negatives), and which are matches."""

    name: str
    distances: NDArray[np.float64]
    positive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.positive)


def read_pair_scores(data: bytes, name: str, limits: Limits = USUAL) -> PairScores:
    """The pairs of a `.npz` or CSV file; raises all that is wrong together."""
    found = _npz(data, name, limits) if name.lower().endswith(".npz") else _csv(data, name)
    if not len(found):
        raise DataError(f"{name}: no pairs; expected {FORM}")
    return found


def write_pair_scores(distances: NDArray[np.float64], positive: NDArray[np.bool_]) -> bytes:
    """`distance,label` lines below a header, every digit that is needed to read the same number back."""
    ends = (",0\n", ",1\n")
    lines = [repr(one) + ends[label] for one, label in zip(distances.tolist(), positive.tolist(), strict=True)]
    return "".join(["distance,label\n", *lines]).encode()


def _measure(there: set[str], name: str, where: str, form: str) -> str:
    """Which of distance and score a file has, beside labels; anything else is a DataError."""
    if "label" not in there or there == {"label"}:
        raise DataError(f"{name}: {where}; expected {form}")
    if {"distance", "score"} <= there:
        raise DataError(f"{name}: has both distances and scores; leave one of them out")
    return "distance" if "distance" in there else "score"


def _csv(data: bytes, name: str) -> PairScores:
    first = first_line(data)
    if not first:
        raise DataError(f"{name}: empty; expected {FORM} lines below a line with these names")
    known = column_names(first, NAMED, name)
    said = f"its first line is {quoted(first.decode('utf-8', 'replace').strip())}"
    measure = _measure(set(known) - {""}, name, said, f"one that names the columns, {FORM}")
    columns = [column or f"column {place}" for place, column in enumerate(known)]
    rows = csv_rows(data, name, columns, (measure, "label"), header=True)
    problems = ProblemList()
    rows.wrong.note(name, problems)

    def place(row: int) -> str:
        return f"line {rows.line[row]}"

    values, bad = as_numbers(rows.columns[0], pa.float64())
    cells = rows.columns[0]
    lines = [
        f"{name}: {place(row)}: {measure} {quoted(cells[row].as_py())} is no number" for row in bad[:SHOWN].tolist()
    ]
    problems.add_first(lines, len(bad), name, f"{measure}s that are no numbers")
    _note_nan(values, name, measure, place, problems)
    positive = read_labels(rows.columns[1], name, place, problems)
    problems.check()
    return PairScores(name, _falling(np.asarray(values, np.float64), measure), positive)


def _npz(data: bytes, name: str, limits: Limits) -> PairScores:
    archive, members = open_npz(io.BytesIO(data), name)
    there = {NAMED[key]: member for key, member in reversed(members.items()) if key in NAMED}
    holds = f"holds {', '.join(sorted(members)) or 'nothing'}"
    measure = _measure(set(there), name, holds, "arrays labels, and distances or scores")
    problems = ProblemList()
    arrays: dict[str, NDArray[Any]] = {}
    for what in (measure, "label"):
        header = member_header(archive, there[what], name)
        member = there[what].removesuffix(".npy")
        if header.dtype.kind not in "biuf" or header.dtype.itemsize > 8 or len(header.shape) != 1:
            found = "pickled objects" if header.dtype.hasobject else f"{header.dtype}, of shape {header.shape}"
            problems.add(f"{name}: {member} is {found}; expected one number a pair")
            continue
        limits.check_unpacked(header.body_bytes, name, member)
        arrays[what] = read_member(archive, there[what], name)
    problems.check()
    values, labels = arrays[measure], arrays["label"]
    if len(values) != len(labels):
        raise DataError(f"{name}: {len(values):,} {measure}s but {len(labels):,} labels; expected one of each a pair")
    if values.dtype.kind in "iu" and len(values) and max(int(values.max()), -int(values.min())) > EXACT_WHOLE:
        problems.add(f"{name}: {measure}s beyond 2^53, which float64 can't tell apart; save smaller numbers")

    def place(row: int) -> str:
        return f"row {row}"

    _note_nan(values, name, measure, place, problems)
    wrong = np.flatnonzero((labels != 0) & (labels != 1))
    lines = [f"{name}: {place(row)}: label {labels[row]}; {EXPECTED}" for row in wrong[:SHOWN].tolist()]
    problems.add_first(lines, len(wrong), name, "unknown labels")
    problems.check()
    return PairScores(name, _falling(values.astype(np.float64), measure), labels == 1)


def _note_nan(values: NDArray[Any], name: str, measure: str, place: Any, problems: ProblemList) -> None:
    bad = np.flatnonzero(np.isnan(values))
    if len(bad):
        problems.add(
            f"{name}: {place(int(bad[0]))}: the {measure} is NaN ({len(bad):,} such {measure}s); compute it again"
        )


def _falling(values: NDArray[np.float64], measure: str) -> NDArray[np.float64]:
    return -values + 0.0 if measure == "score" else values + 0.0  # no -0, which would be written as another number
