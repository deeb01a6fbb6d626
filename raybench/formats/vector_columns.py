"""What files of vectors have in common, whatever their kind: columns under known names, read by ranges of rows.

A reader looks at the header when it is made and raises all that is wrong with it together. Rows come as float32 and are
finite; bytes and whole numbers are refused, since nobody could say what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList
from raybench.formats.limits import MOST_DIMENSION

if TYPE_CHECKING:
    from raybench.formats.names import Strings

VECTORS = ("vectors", "embeddings")
OTHER_VECTORS = ("descriptors",)  # counts where neither of those is there
NAMES = ("image_names", "names")
ROWS_AT_ONCE = 4_096  # of a file that is read forwards
BYTES_AT_ONCE = 2**26  # unless they take more than this


class VectorReader(Protocol):
    """An open file of named vectors."""

    count: int
    dimension: int

    def names(self) -> Strings:
        """Every name, in the order of the rows; raises DataError."""
        ...

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """The vectors of these rows, whether finite or not."""
        ...


def vector_columns(there: Iterable[str]) -> list[str]:
    """The columns that may hold the vectors."""
    columns = set(there)
    return [name for name in VECTORS if name in columns] or [name for name in OTHER_VECTORS if name in columns]


def pick(there: Iterable[str], wanted: Sequence[str], name: str) -> str:
    """The one of the wanted columns that is there; a DataError says what is there instead."""
    columns = sorted(there)
    found = [column for column in wanted if column in columns]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{name}: holds both {' and '.join(found)}; expected one of them")
    holds = f"holds {', '.join(columns)}" if columns else "holds nothing"
    raise DataError(f"{name}: no array {' or '.join(wanted)}, {holds}; rename or add it")


def pick_columns(there: Sequence[str], name: str) -> tuple[str, str]:
    """The columns of vectors and of names; raises both problems together."""
    picked = []
    problems = ProblemList()
    for wanted in (vector_columns(there) or VECTORS, NAMES):
        with problems.noting():
            picked.append(pick(there, wanted, name))
    problems.check()
    return picked[0], picked[1]


def shape_problems(name: str, column: str, shape: Sequence[int], dtype: Any) -> list[str]:
    """What is wrong with an array of vectors, one line each."""
    lines = []
    if dtype == np.dtype(object):
        lines.append(f"{name}: {column} holds pickled objects, which are never read; save it as float32")
    elif np.dtype(dtype).kind != "f":
        lines.append(f"{name}: {column} is {dtype}, expected float32")
    if len(shape) != 2 or 0 in shape:
        lines.append(f"{name}: {column} has shape {tuple(shape)}, expected (images, dimension)")
    elif shape[1] > MOST_DIMENSION:
        lines.append(f"{name}: {column} has dimension {shape[1]:,}, expected at most {MOST_DIMENSION:,}")
    return lines


def count_problems(name: str, vectors: str, rows: int, names: str, shape: Sequence[int]) -> list[str]:
    """What is wrong with an array of names: there must be one per vector."""
    if tuple(shape) == (rows,):
        return []
    found = f"{shape[0]:,}" if len(shape) == 1 else f"an array of shape {tuple(shape)}"
    return [f"{name}: {rows:,} {vectors} but {found} {names}; expected one name a vector"]


def not_finite(rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """The rows with NaN or infinite values."""
    if np.isfinite(rows.sum(dtype=np.float64)):  # float64 holds any sum of finite float32, and a sum is fast
        return np.zeros(0, np.int64)
    return np.flatnonzero(~np.isfinite(rows).all(axis=1))


def rows_at_once(dimension: int) -> int:
    """How many rows of float64 make up a block."""
    return max(min(ROWS_AT_ONCE, BYTES_AT_ONCE // (8 * dimension)), 1)


class ForwardRows:
    """Ranges of rows of a file that can only be read forwards from certain rows on, such as where compression begins.

    Asking in rising order reads everything once; going back starts again at `origin`, the last such row before.
    """

    def __init__(self, origin: Callable[[int], int], blocks: Callable[[int], Iterator[NDArray[np.float32]]]) -> None:
        self._origin, self._blocks = origin, blocks
        self._at = 0  # the row with which `_rest` begins
        self._rest: NDArray[np.float32] | None = None
        self._coming: Iterator[NDArray[np.float32]] = iter(())

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """The rows start..stop, of which all but one block are held once."""
        origin = self._origin(start)
        if self._rest is None or start < self._at or origin > self._at + len(self._rest):
            self._at, self._coming = origin, self._blocks(origin)
            self._rest = next(self._coming)
        parts: list[NDArray[np.float32]] = []
        while True:
            end = self._at + len(self._rest)
            if end > start:
                parts.append(self._rest[max(start - self._at, 0) : stop - self._at])
            if end >= stop:
                return parts[0] if len(parts) == 1 else np.concatenate(parts)
            self._at, self._rest = end, next(self._coming)
