"""Grades of labelled pairs: words (`positive`, `hard`, `junk`) or numbers from 0 upwards, never both in one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench.errors import ProblemList, quoted, suggestion
from raybench.formats.names import Strings
from raybench.formats.text_rows import SHOWN

Flags = NDArray[np.bool_]

POSITIVE, HARD, JUNK = "positive", "hard", "junk"
GAINS = {POSITIVE: 1.0, HARD: 1.0, JUNK: np.nan}
EXPECTED = f"expected {', '.join(GAINS)}, or a number from 0 upwards"


@dataclass(frozen=True)
class Grades:
    """What each pair is worth: nan for junk, 0 for what is not relevant. `said` by `words`, `numbers` or not at all."""

    gain: NDArray[np.float64]
    hard: Flags
    said: str

    def at(self, chosen: Flags) -> Grades:
        return Grades(self.gain[chosen], self.hard[chosen], self.said)


def read_grades(name: str, grade: Strings, place: Callable[[int], str], paired: Flags, problems: ProblemList) -> Grades:
    """The grades of a file's rows, of which those `paired` count; what is wrong is noted, `place` saying where."""
    encoded = pc.utf8_lower(grade).dictionary_encode()  # a file may have one long text and a million short ones
    cells, cell = encoded.dictionary.to_pylist(), np.asarray(encoded.indices, np.int64)
    words = np.array([text in GAINS for text in cells], np.bool_)
    values = np.array([GAINS.get(text, _number(text)) for text in cells], np.float64)
    given = paired & np.array([text != "" for text in cells], np.bool_)[cell]
    if not given.any():
        return Grades(np.ones(len(cell)), np.zeros(len(cell), np.bool_), "")
    good = words | (np.isfinite(values) & (values >= 0))

    def note(wrong: Flags, what: str, words_of: Callable[[str], str]) -> None:
        rows = np.flatnonzero(wrong)
        lines = [f"{name}: {place(row)}: {words_of(cells[cell[row]])}" for row in rows[:SHOWN].tolist()]
        problems.add_first(lines, len(rows), name, what)

    note(
        given & ~good[cell], "unknown grades", lambda text: f"grade {quoted(text)}{suggestion(text, GAINS)}; {EXPECTED}"
    )
    note(paired & ~given, "lines without a grade", lambda text: f"no grade, where other lines have one; {EXPECTED}")
    in_words, in_numbers = given & words[cell], given & (good & ~words)[cell]
    if in_words.any() and in_numbers.any():
        first, second = (int(np.flatnonzero(some)[0]) for some in (in_words, in_numbers))
        problems.add(
            f"{name}: {place(first)}: grade {cells[cell[first]]!r} is a word, that of {place(second)} "
            f"({cells[cell[second]]}) a number; give all in words or all in numbers"
        )
    hard = np.array([text == HARD for text in cells], np.bool_)[cell]
    return Grades(values[cell], hard, "words" if in_words.any() else "numbers")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
