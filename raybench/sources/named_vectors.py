"""Named vectors on disk as a source: names in name order, by which they are indexed, and rows that are read by ranges.

A set may lie in several files, whose rows follow each other. Only names and one number per row are held in memory.
Vectors are read in blocks, once for the digest and the check of their values, and again when a stage needs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from xxhash import xxh3_128

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats.images import SUFFIXES
from raybench.formats.limits import USUAL, Limits
from raybench.formats.names import NORMALISERS, Names, Strings, name_order
from raybench.formats.vector_columns import VectorReader, not_finite
from raybench.sources.vector_files import SET_SUFFIXES, VectorFile

CHECKED_BYTES = 2**24  # of vectors that are looked through at once
SHOWN = 5  # problems of one kind and file that are listed; the rest are counted


@dataclass(frozen=True)
class VectorRows:
    """Rows of files one after another with the index of each; what a stage carries."""

    files: tuple[VectorFile, ...]
    index: NDArray[np.int32]  # by row
    digest: str

    @property
    def dimension(self) -> int:
        return self.files[0].dimension

    def __len__(self) -> int:
        return len(self.index)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_open"}

    @cached_property
    def _open(self) -> dict[int, VectorReader]:
        """The reader in use; an open one goes on where it stopped, which spares decompressing again."""
        return {}

    def read(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Indices and vectors of these rows; raises DataError where one is not finite."""
        parts = [self._read_file(file, first, last) for file, first, last in self._ranges(start, stop)]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        bad = not_finite(rows)
        if len(bad):
            raise DataError(f"{self.where(start + int(bad[0]))}: NaN or infinite value ({len(bad):,} such rows here)")
        return self.index[start:stop].astype(np.int64), rows

    def where(self, row: int) -> str:
        """A row in words."""
        file, first, _ = next(self._ranges(row, row + 1))
        return f"{self.files[file].uri}: row {first}"

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Files and their rows that make up a range."""
        before = 0
        for number, file in enumerate(self.files):
            first, last = max(start - before, 0), min(stop - before, file.count)
            if first < last:
                yield number, first, last
            before += file.count

    def _read_file(self, number: int, first: int, last: int) -> NDArray[np.float32]:
        if number not in self._open:
            self._open.clear()
            self._open[number] = self.files[number].open()
        return self._open[number].rows(first, last)


@dataclass(frozen=True)
class NamedVectors:
    """A set of named vectors: its names in name order, and its rows."""

    names: Names
    rows: VectorRows

    @property
    def digest(self) -> str:
        return self.rows.digest

    @property
    def dimension(self) -> int:
        return self.rows.dimension

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def scan(
        cls,
        uris: Sequence[str],
        normalise: str,
        problems: ProblemList,
        part: str = "",
        names: Strings | None = None,
        limits: Limits = USUAL,
    ) -> NamedVectors | None:
        """Look through the files; None if something is wrong with them, which is noted.

        `normalise` is a key of NORMALISERS. `names`, by the images' numbers, are for SSCD files, which have none.
        """
        before = len(problems.lines)
        looks = []
        for uri in uris:
            with problems.noting():
                looks.append(_look(VectorFile(uri, part, limits=limits), names, problems))
        if len(looks) < len(uris):
            return None
        files = tuple(file for file, _ in looks)
        together = NORMALISERS[normalise](pa.concat_arrays([found for _, found in looks]))
        order, twice = name_order(together)
        index = np.empty(len(order), np.int32)
        index[order] = np.arange(len(order), dtype=np.int32)
        digest = digest_of("named-vectors", normalise, part, [file.digest for file in files])
        ordered = Names(together.take(pa.array(order)))
        if names is not None:
            digest = digest_of(digest, ordered.digest)
        source = cls(ordered, VectorRows(files, index, digest))
        _note_names(source.rows, together, twice, problems)
        _note_dimensions(files, problems)
        return source if len(problems.lines) == before else None


def _look(file: VectorFile, names: Strings | None, problems: ProblemList) -> tuple[VectorFile, Strings]:
    """The file with what is known of it, and its names; notes vectors that are not finite."""
    try:
        reader = file.open()
    except FileNotFoundError:
        raise DataError(f"{file.uri}: does not exist; expected a file of vectors") from None
    found = reader.names() if names is None else _by_number(reader, names, file.uri)
    _note_values(file.uri, reader, found, problems)
    known = replace(file, count=reader.count, dimension=reader.dimension, digest=_content_digest(file.uri))
    return known, found


def _by_number(reader: VectorReader, names: Strings, uri: str) -> Strings:
    numbers = np.array([int(name) for name in reader.names().to_pylist()], np.int64)
    if len(numbers) != len(names) or len(numbers) <= int(numbers.max()):
        raise DataError(f"{uri}: {len(numbers):,} images, the data set has {len(names):,}; are they of the same data?")
    return names.take(pa.array(numbers))


def _note_values(uri: str, reader: VectorReader, names: Strings, problems: ProblemList) -> None:
    size = max(CHECKED_BYTES // (4 * reader.dimension), 1)
    bad: list[int] = []
    for start in range(0, reader.count, size):
        rows = not_finite(reader.rows(start, min(start + size, reader.count)))
        bad += (rows + start).tolist()
    lines = [
        f"{uri}: row {row} ({names[row].as_py()}): NaN or infinite value; mend the descriptor" for row in bad[:SHOWN]
    ]
    problems.add_first(lines, len(bad), uri, "rows with NaN or infinite values")


def _note_names(rows: VectorRows, names: Strings, twice: NDArray[np.int64], problems: ProblemList) -> None:
    lines = [
        f"{rows.where(second)}: name {names[second].as_py()!r} stands in {rows.where(first)}, too; names must differ"
        for first, second in twice[:SHOWN].tolist()
    ]
    problems.add_first(lines, len(twice), rows.files[0].uri, "names that come twice")
    empty = np.flatnonzero(np.asarray(pc.equal(names, "")))
    for row in empty[:1].tolist():
        problems.add(f"{rows.where(row)}: no name ({len(empty):,} such rows)")


def _note_dimensions(files: Sequence[VectorFile], problems: ProblemList) -> None:
    for file in files[1:]:
        if file.dimension != files[0].dimension:
            problems.add(
                f"{file.uri}: dimension {file.dimension}, {files[0].uri} has {files[0].dimension}; all must be the same"
            )


def note_dimensions(sets: Iterable[NamedVectors | None], problems: ProblemList) -> None:
    """Note sets whose dimension is another than the first one's."""
    _note_dimensions([one.rows.files[0] for one in sets if one is not None], problems)


def find_vectors(root: str, stems: Sequence[str], problems: ProblemList, wanted: bool = True) -> list[str]:
    """The file `<stem>.h5`, `.npz` …, or all files in a folder `<stem>/`, below a root, by any of these stems.

    More than one of them is noted, and so is that there is none, if it is wanted.
    """
    entries = [entry.name for entry in storage.list_files(root)]
    single = [name for name in entries if name in {stem + suffix for stem in stems for suffix in SET_SUFFIXES}]
    inside = {
        stem: [name for name in entries if name.startswith(f"{stem}/") and name.endswith(SET_SUFFIXES)]
        for stem in stems
    }
    folders = [names for names in inside.values() if names]
    if len(single) + len(folders) > 1:
        found = ", ".join([*single, *(names[0] for names in folders)])
        problems.add(f"{root}: several files for {stems[0]} ({found}); keep one")
    if single or folders:
        return [storage.join(root, name) for name in single[:1] or folders[0]]
    if wanted:
        expected = " or ".join(f"{stem}{SET_SUFFIXES[0]}" for stem in stems)
        others = f"; there are {', '.join(entries[:SHOWN])}" if entries else "; the folder is empty or missing"
        if any(name.lower().endswith(SUFFIXES) for name in entries[:SHOWN]):
            others += " (for images give --data and --descriptor)"
        problems.add(f"{root}: no {expected} (or {', '.join(SET_SUFFIXES[1:])}){others}")
    return []


def _content_digest(uri: str) -> str:
    with storage.fetch(uri).open("rb") as file:
        return hashlib.file_digest(file, xxh3_128).hexdigest()
