"""One set of vectors as a source of patches, in items of some thousand rows: by name, or by the number of their row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, ProblemList
from raybench.formats.limits import USUAL, Limits
from raybench.formats.npy import check_body, member_header, open_npz, read_member, read_npy_header
from raybench.formats.vector_columns import NAMES, pick, vector_columns
from raybench.formats.vector_kinds import PLAIN_SUFFIXES, read_plain
from raybench.sources.named_vectors import NamedVectors

PER_ITEM = 4_096
FILE_SUFFIXES = (*PLAIN_SUFFIXES, ".npz")
CHECKED_VALUES = 2**22


class Rows(Protocol):
    """Vectors by ranges of rows."""

    def vectors(self, start: int, stop: int) -> NDArray[Any]: ...


@dataclass(frozen=True)
class NamedRows:
    """Rows of files with names."""

    named: NamedVectors

    def vectors(self, start: int, stop: int) -> NDArray[Any]:
        return self.named.rows.read(start, stop)[1]


@dataclass(frozen=True)
class PlainRows:
    """Rows of one file without names. Of `.npy` ranges are read, of others the whole, once in a process."""

    uri: str
    limits: Limits = USUAL

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_whole"}

    def vectors(self, start: int, stop: int) -> NDArray[Any]:
        return np.asarray(self._whole[start:stop])

    @property
    def shape(self) -> tuple[int, int]:
        rows, dimension = self._whole.shape
        return rows, dimension

    @cached_property
    def _whole(self) -> NDArray[Any]:
        suffix = PurePosixPath(self.uri).suffix.lower()
        if suffix == ".npy":
            found = _mapped(self.uri)
        elif suffix == ".npz":
            found = _packed(self.uri, self.limits)
        else:
            return read_plain(storage.read(self.uri), self.uri, suffix, self.limits)
        if found.ndim != 2 or 0 in found.shape or found.dtype.kind not in "biuf":
            shape = f"an array of shape {found.shape} and type {found.dtype}"
            raise DataError(f"{self.uri}: {shape}; expected numbers, one row a patch")
        return found


@dataclass(frozen=True)
class VectorBlocks:
    """`count` vectors of one set; an item is a block of rows."""

    root: str
    count: int
    digest: str
    rows: Rows

    suffix = ""

    @classmethod
    def named(cls, root: str, vectors: NamedVectors) -> VectorBlocks:
        return cls(root, len(vectors), vectors.digest, NamedRows(vectors))

    @classmethod
    def plain(cls, uri: str, limits: Limits = USUAL) -> VectorBlocks:
        """Of a file without names; a value that is not finite is an error."""
        rows = PlainRows(uri, limits)
        count, dimension = rows.shape
        step = max(CHECKED_VALUES // dimension, 1)
        for start in range(0, count, step):
            block = rows.vectors(start, start + step)
            if block.dtype.kind == "f" and not np.isfinite(block).all():
                bad = int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0]) + start
                raise DataError(f"{uri}: row {bad}: NaN or infinite value; mend the descriptor")
        return cls(uri, count, digest_of("plain-vectors", digest_of_bytes(storage.read_mapped(uri))), rows)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"rows {start}..{min(start + PER_ITEM, self.count) - 1}" for start in self._starts)

    @property
    def _starts(self) -> range:
        return range(0, self.count, PER_ITEM)

    def uri(self, item: int) -> str:
        return f"{self.root}: {self.keys[item]}"

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        return {item: min(self.count - item * PER_ITEM, PER_ITEM) for item in items}

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]:
        """Each block's name and vectors, (n, dim)."""
        for item in range(start, stop):
            first = item * PER_ITEM
            yield self.uri(item), self.rows.vectors(first, min(first + PER_ITEM, self.count))

    def located(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The block of each row and its place there; block -1 where there is none such."""
        block, place = np.divmod(rows, PER_ITEM)
        there = (rows >= 0) & (rows < self.count)
        return np.where(there, block, -1).astype(np.int32), place.astype(np.int32)


def has_names(uri: str) -> bool:
    """Whether a file of vectors says names of its rows."""
    suffix = PurePosixPath(uri).suffix.lower()
    with storage.fetch(uri).open("rb") as file:
        columns: Iterable[str] = ()
        if suffix == ".npz":
            columns = open_npz(file, uri)[1]
        elif suffix in (".h5", ".hdf5"):
            from raybench.formats.hdf5_vectors import open_hdf5

            columns = list(open_hdf5(file, uri))
        elif suffix == ".parquet":
            from raybench.formats.parquet_vectors import open_parquet

            columns = open_parquet(file, uri)[1]
        return any(name in columns for name in NAMES)


def _mapped(uri: str) -> NDArray[Any]:
    path = storage.fetch(uri)
    with path.open("rb") as file:
        header = read_npy_header(file, uri)
    if header.dtype.hasobject:
        raise DataError(f"{uri}: no .npy array that can be read (it holds pickled objects); save numbers")
    check_body(header, path.stat().st_size, uri)
    if not header.body_bytes:
        return np.zeros(header.shape, header.dtype)
    order = "F" if header.by_columns else "C"
    return np.memmap(path, header.dtype, "r", header.size_bytes, header.shape, order)  # type: ignore[call-overload, no-any-return]


def _packed(uri: str, limits: Limits) -> NDArray[Any]:
    """The vectors of a `.npz`: its only array, or that of a known name."""
    with storage.fetch(uri).open("rb") as file:
        archive, members = open_npz(file, uri)
        chosen = (
            next(iter(members)) if len(members) == 1 else pick(members, vector_columns(members) or ("vectors",), uri)
        )
        header = member_header(archive, members[chosen], uri)
        if header.dtype.hasobject:
            raise DataError(f"{uri}: {chosen} holds pickled objects, which are never read; save it as float32")
        limits.check_unpacked(header.body_bytes, uri, chosen)
        return read_member(archive, members[chosen], uri)
