"""The task files of the 2017 HPatches protocol: `splits.json`, `verif_*_split-S.csv`, `retr_*_split-S.csv`.

Bytes to values, nothing else. Lists may have millions of lines: whole columns are parsed at once, and only a file that
does not parse is walked line by line, to name the line that is wrong. Line numbers count the header as line 1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, quoted
from raybench.formats.typed_text import typed_columns

PAIR_HEADER = ("s1", "t1", "idx1", "s2", "t2", "idx2")
PATCH_HEADER = ("s", "idx")
MOST_NUMBER = 5  # images of a level: e1..e5, h1..h5, t1..t5; number 0 is ref
FIRST_LINE = 2  # of the values: line 1 is the header

PatchNumbers = NDArray[np.int32]
PatchColumns = tuple[PatchNumbers, PatchNumbers, PatchNumbers]  # sequence, image number and patch of each line


@dataclass(frozen=True)
class Split:
    """One split: the sequences it is trained and tested on, in file order. Some have no train part."""

    name: str
    train: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class NumberedPairs:
    """The lines of a `verif_*.csv`; `*_sequence` counts into `sequences`, `*_number` is 0 (ref) to 5."""

    sequences: tuple[str, ...]
    a_sequence: PatchNumbers
    a_number: PatchNumbers
    a_patch: PatchNumbers
    b_sequence: PatchNumbers
    b_number: PatchNumbers
    b_patch: PatchNumbers

    def __len__(self) -> int:
        return len(self.a_sequence)

    @property
    def sides(self) -> tuple[PatchColumns, PatchColumns]:
        """The first and the second patch of each line."""
        first = (self.a_sequence, self.a_number, self.a_patch)
        return first, (self.b_sequence, self.b_number, self.b_patch)

    def kept(self, lines: slice | NDArray[np.int64]) -> NumberedPairs:
        """Only these lines, in this order."""
        return NumberedPairs(self.sequences, *(column[lines] for side in self.sides for column in side))

    def first_of_each(self) -> NDArray[np.int64]:
        """The lines (from 0) that name their two patches, in either order, for the first time."""
        most = np.int64(max(self.a_patch.max(initial=0), self.b_patch.max(initial=0))) + 1
        a = (self.a_sequence.astype(np.int64) * (MOST_NUMBER + 1) + self.a_number) * most + self.a_patch
        b = (self.b_sequence.astype(np.int64) * (MOST_NUMBER + 1) + self.b_number) * most + self.b_patch
        both = np.stack([np.minimum(a, b), np.maximum(a, b)])
        order = np.lexsort((both[1], both[0]))  # stable: among equals the first line leads
        new = np.ones(len(self), np.bool_)
        new[1:] = (both[:, order[1:]] != both[:, order[:-1]]).any(axis=0)
        return np.sort(order[new])


@dataclass(frozen=True)
class ReferencePatches:
    """The lines of a `retr_*.csv`: patches of `ref` images; `sequence` counts into `sequences`."""

    sequences: tuple[str, ...]
    sequence: PatchNumbers
    patch: PatchNumbers

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def sides(self) -> tuple[PatchColumns]:
        """The patch of each line, in image 0."""
        return ((self.sequence, np.zeros_like(self.sequence), self.patch),)

    def kept(self, lines: slice | NDArray[np.int64]) -> ReferencePatches:
        """Only these lines, in this order."""
        return ReferencePatches(self.sequences, self.sequence[lines], self.patch[lines])


def read_splits(data: bytes, name: str) -> dict[str, Split]:
    """The splits by name."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: no JSON ({error})") from None
    if not isinstance(value, dict) or not value:
        raise DataError(f'{name}: expected {{"a": {{"train": […], "test": […]}}, …}}')
    return {key: _split(key, part, name) for key, part in value.items()}


def read_numbered_pairs(data: bytes, name: str) -> NumberedPairs:
    """`s1,t1,idx1,s2,t2,idx2` per line, below a header."""
    columns = _columns(data, name, PAIR_HEADER, sequences=(0, 3))
    sequences, (a, b) = _coded([columns[0], columns[3]])
    numbers = [_small(columns[i]) for i in (1, 2, 4, 5)]
    for number in (numbers[0], numbers[2]):
        bad = np.flatnonzero(number > MOST_NUMBER)
        if len(bad):
            raise DataError(
                f"{name}: line {bad[0] + FIRST_LINE}: image number {number[bad[0]]}; expected 0 (ref) to {MOST_NUMBER} "
                f"({len(bad):,} such lines)"
            )
    return NumberedPairs(sequences, a, numbers[0], numbers[1], b, numbers[2], numbers[3])


def read_reference_patches(data: bytes, name: str) -> ReferencePatches:
    """`s,idx` per line, below a header."""
    columns = _columns(data, name, PATCH_HEADER, sequences=(0,))
    sequences, (sequence,) = _coded([columns[0]])
    return ReferencePatches(sequences, sequence, _small(columns[1]))


def _split(key: str, part: object, name: str) -> Split:
    lists = [part.get(kind, []) for kind in ("train", "test")] if isinstance(part, dict) else []
    if not lists or not all(isinstance(found, list) and all(isinstance(s, str) for s in found) for found in lists):
        raise DataError(f"{name}: split {quoted(key)}: expected lists of sequence names under train and test")
    train, test = (tuple(found) for found in lists)
    if not test:
        raise DataError(f"{name}: split {quoted(key)} has no test sequences")
    twice, times = Counter(test).most_common(1)[0]
    if times > 1:
        raise DataError(f"{name}: split {quoted(key)} names test sequence {twice} twice")
    return Split(key, train, test)


def _columns(data: bytes, name: str, names: Sequence[str], sequences: tuple[int, ...]) -> list[pa.ChunkedArray]:
    """The columns below the header: sequence names as dictionaries, all others as numbers from 0."""
    header, _, body = data.rstrip().partition(b"\n")
    found = [word.strip() for word in header.decode("utf-8", "replace").split(",")]
    if found != list(names):
        raise DataError(f"{name}: line 1: expected the header {','.join(names)}, found {','.join(found)[:80]!r}")
    if not body:
        raise DataError(f"{name}: nothing below the header; expected {','.join(names)} a line")
    types = {
        column: pa.dictionary(pa.int32(), pa.string()) if i in sequences else pa.int32()
        for i, column in enumerate(names)
    }
    columns = typed_columns(body, types)
    if columns is None or not all(_sound(column, i in sequences) for i, column in enumerate(columns)):
        _explain(body, name, names, sequences)
    return columns


def _sound(column: pa.ChunkedArray, is_sequence: bool) -> bool:
    if not is_sequence:
        return int(np.min(column)) >= 0
    return all(name and name == name.strip() for chunk in column.chunks for name in chunk.dictionary.to_pylist())


def _explain(body: bytes, name: str, names: Sequence[str], sequences: tuple[int, ...]) -> NoReturn:
    for line, text in enumerate(body.decode("utf-8", "replace").splitlines(), FIRST_LINE):
        fields = text.split(",")
        if len(fields) != len(names):
            raise DataError(f"{name}: line {line}: expected {','.join(names)}, found {text[:80]!r}")
        for i, value in enumerate(fields):
            if i in sequences and (not value or value != value.strip()):
                raise DataError(f"{name}: line {line}: {names[i]} {quoted(value)} is no sequence name")
            if i not in sequences and not (value.isascii() and value.isdigit() and float(value) < 2**31):
                raise DataError(f"{name}: line {line}: {names[i]} {quoted(value)} is no index from 0")
    raise DataError(f"{name}: does not parse")


def _coded(columns: list[pa.ChunkedArray]) -> tuple[tuple[str, ...], list[PatchNumbers]]:
    """Sequence names in name order, and each column as numbers into them."""
    whole = [column.unify_dictionaries().combine_chunks() for column in columns]
    names = sorted({name for column in whole for name in column.dictionary.to_pylist()})
    index = {name: number for number, name in enumerate(names)}
    coded = []
    for column in whole:
        numbers = np.array([index[name] for name in column.dictionary.to_pylist()], np.int32)
        coded.append(numbers[column.indices.to_numpy()])
    return tuple(names), coded


def _small(column: pa.ChunkedArray) -> PatchNumbers:
    numbers: PatchNumbers = column.to_numpy()
    return numbers
