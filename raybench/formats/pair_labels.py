"""Labels of patch pairs in text: whether two patches show the same point. One way of writing them per file.

`1` and `0`, `1.0` and `0.0` (as pandas writes them), `true` and `false`, `yes` and `no`, in any case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench.errors import ProblemList, quoted
from raybench.formats.names import Strings
from raybench.formats.text_rows import SHOWN

WAYS = (("1", "0"), ("1.0", "0.0"), ("true", "false"), ("yes", "no"))
MEANINGS = {word: (number, word == match) for number, (match, other) in enumerate(WAYS) for word in (match, other)}
EXPECTED = "expected 1 (a match) or 0"


def read_labels(cells: Strings, name: str, place: Callable[[int], str], problems: ProblemList) -> NDArray[np.bool_]:
    """Whether each row is a match; what is wrong is noted, `place` saying in words where a row stands."""
    coded = pc.utf8_lower(cells).dictionary_encode()
    words, code = coded.dictionary.to_pylist(), np.asarray(coded.indices, np.int64)
    way = np.array([MEANINGS.get(word, (-1, False))[0] for word in words], np.int64)[code]
    unknown = np.flatnonzero(way < 0)
    lines = [f"{name}: {place(row)}: label {quoted(words[code[row]])}; {EXPECTED}" for row in unknown[:SHOWN].tolist()]
    problems.add_first(lines, len(unknown), name, "unknown labels")
    there, first = np.unique(way[way >= 0], return_index=True)
    if len(there) > 1:
        one, other = sorted(np.flatnonzero(way >= 0)[first].tolist())[:2]
        problems.add(
            f"{name}: {place(one)}: label {quoted(words[code[one]])}, but {quoted(words[code[other]])} in "
            f"{place(other)}; write all labels of a file in one way"
        )
    return np.array([MEANINGS.get(word, (-1, False))[1] for word in words], np.bool_)[code]


def as_numbers(cells: Strings, kind: pa.DataType) -> tuple[NDArray[np.float64] | NDArray[np.int64], NDArray[np.int64]]:
    """Cells as numbers of this kind, and the rows that are none (whose numbers are 0)."""
    try:
        return cells.cast(kind).to_numpy(zero_copy_only=False), np.zeros(0, np.int64)
    except pa.ArrowInvalid:
        alone = [_is_number(text, kind) for text in cells.to_pylist()]  # one by one only to say which rows are wrong
        good = pa.array(alone)
        return pc.if_else(good, cells, "0").cast(kind).to_numpy(zero_copy_only=False), np.flatnonzero(~np.array(alone))


def _is_number(text: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
