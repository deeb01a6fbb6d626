"""Sets of image vectors in published shards: what extraction and reading leave, and what codecs and search take.

A shard has `index`, the positions of its rows in the set's name order, and `vectors`. Rows may stand in any order and
an index may be absent (an image that was skipped), so whoever reads goes by `index`, never by a row's number. Here a
set is read from disk, some of its rows become a set of their own, and sets are read by ranges of rows as if one.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.formats.shardfile import Arrays
from raybench.sources.named_vectors import NamedVectors, VectorRows

SHARD_BYTES = 2**24  # of vectors that are read from disk
ROWS_PER_SHARD = 4_096  # of those that are taken out of another set
PIECE_ROWS = 4_096  # that a search gets at once, at least
MOST_OPEN = 32  # mapped files that a process keeps: they cost address space and page cache only

Piece = tuple[NDArray[np.int64], NDArray[np.float32]]  # index and vectors of some rows


@dataclass(frozen=True)
class VectorSet:
    """Vectors of `count` named images, cut into shards; `role` (queries, references …) names them in messages."""

    role: str
    mapped: Mapped
    count: int

    @property
    def digest(self) -> str:
        return self.mapped.digest

    @property
    def by_shard(self) -> PerItem:
        """Its shards as an input of `run.each`, of which each call gets one."""
        return PerItem(self.mapped.store, self.mapped.name, self.mapped.digest, self.mapped.shards)

    def __len__(self) -> int:
        return self.count

    def read(self, shard: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Index and float vectors of one shard, as mapped views where they are stored as floats."""
        arrays = self.mapped.read(shard)
        return arrays["index"], as_floats(arrays["vectors"])


def vector_arrays(index: NDArray[np.int64], vectors: NDArray[Any]) -> Arrays:
    """The arrays of one shard of a VectorSet."""
    return {"index": index, "vectors": vectors}


def as_floats(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors as search takes them: packed bits (uint8) become -1 and 1, so that L2² is four times Hamming.

    >>> as_floats(np.array([[0b10000001]], np.uint8)).tolist()
    [[1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0]]
    """
    if vectors.dtype == np.uint8:
        return np.unpackbits(vectors, axis=1).astype(np.float32) * 2 - 1
    return np.ascontiguousarray(vectors, np.float32)


@dataclass(frozen=True)
class ReadSet:
    """The stage that reads ranges of rows. It carries the index of each row, not its name."""

    source: VectorRows

    name = "read-set"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.source.digest)

    def load(self, shard: Shard) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self.source.read(shard.start, shard.stop)

    def compute(self, payload: tuple[NDArray[np.int64], NDArray[np.float32]]) -> Arrays:
        return vector_arrays(*payload)

    def keys(self, shard: Shard) -> str:
        return f"{self.source.where(shard.start)} … {self.source.where(shard.stop - 1)}"


def read_set(run: Run, source: NamedVectors, role: str, shard_size: int | None = None) -> VectorSet:
    """The vectors of a source in shards; by default as many rows per shard as fit in 16 MB."""
    size = shard_size or max(SHARD_BYTES // (4 * source.dimension), 1)
    return VectorSet(role, run.map(ReadSet(source.rows), len(source.rows), size), len(source))


@dataclass(frozen=True)
class TakeRows:
    """The stage that takes the rows of the wanted images (rising) out of a set; each shard looks through the whole."""

    vectors: VectorSet
    wanted: NDArray[np.int64]

    name = "take-rows"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.vectors.digest, self.wanted)

    def load(self, shard: Shard) -> Arrays:
        wanted = self.wanted[shard.start : shard.stop]
        index, rows = [], []
        for source in self.vectors.mapped.shards:
            arrays = self.vectors.mapped.read(source.index)
            rank = np.searchsorted(wanted, arrays["index"])
            hit = wanted[np.minimum(rank, len(wanted) - 1)] == arrays["index"]
            index.append(rank[hit] + shard.start)
            rows.append(arrays["vectors"][hit])
        return vector_arrays(np.concatenate(index), np.concatenate(rows))

    def compute(self, payload: Arrays) -> Arrays:
        return payload

    def keys(self, shard: Shard) -> str:
        return f"{len(shard):,} of the {self.vectors.role}"


def take_rows(run: Run, vectors: VectorSet, wanted: NDArray[np.int64], role: str) -> VectorSet:
    """The rows of these images, by rising index; the first of them has index 0 in the new set."""
    mapped = run.map(TakeRows(vectors, wanted), len(wanted), min(max(len(wanted), 1), ROWS_PER_SHARD))
    return VectorSet(role, mapped, len(wanted))


@dataclass(frozen=True)
class SetRows:
    """The rows of sets that are searched as one, numbered as the sets' stages planned them.

    A shard may hold fewer rows than planned (a skipped image), never more. The index of an image in the second set
    counts on behind all images of the first. Files are mapped, not loaded.
    """

    sets: tuple[VectorSet, ...]

    @classmethod
    def of(cls, sets: VectorSet | Sequence[VectorSet]) -> SetRows:
        return cls((sets,) if isinstance(sets, VectorSet) else tuple(sets))

    @property
    def role(self) -> str:
        return " + ".join(one.role for one in self.sets)

    @property
    def digest(self) -> str:
        return digest_of(*((one.digest, one.count) for one in self.sets))

    def __len__(self) -> int:
        """How many rows were planned."""
        return sum(_planned(one) for one in self.sets)

    def __getstate__(self) -> dict[str, Any]:
        return {"sets": self.sets}

    @cached_property
    def _open(self) -> OrderedDict[tuple[int, int], Arrays]:
        """Shards opened last: consecutive slices meet in one, and its checksums are read through once."""
        return OrderedDict()

    def read(self, start: int, stop: int, only: NDArray[np.int64] | None = None) -> Piece:
        """Index and vectors of the rows numbered start..stop, perhaps of some images only (`only`: their index).

        They are views where they lie in one shard and all are wanted.
        """
        pieces = [piece for piece in self._pieces(start, stop, only) if len(piece[0])]
        dimensions = {vectors.shape[1] for _, vectors in pieces}
        if len(dimensions) > 1:
            raise self._of_dimensions(dimensions)
        if len(pieces) == 1:
            return pieces[0]
        if not pieces:
            return np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
        index, vectors = zip(*pieces, strict=True)
        return np.concatenate(index), np.concatenate(vectors)

    def pieces(self, start: int, stop: int) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """Index and vectors of the same rows in pieces, views where shards are large; small ones are joined."""
        index: list[NDArray[np.int64]] = []
        vectors: list[NDArray[np.float32]] = []
        for low, high in self._runs(start, stop):
            found = self.read(low, high)
            if len(found[0]):
                index.append(found[0])
                vectors.append(found[1])
        dimensions = {one.shape[1] for one in vectors}
        if len(dimensions) > 1:
            raise self._of_dimensions(dimensions)
        return index, vectors

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows that lie in one shard, or in several small ones."""
        edges, before = [start], 0
        for one in self.sets:
            for shard in one.mapped.shards:
                end = min(before + shard.stop, stop)
                if end - edges[-1] >= PIECE_ROWS or end == stop > edges[-1]:
                    edges.append(end)
            before += _planned(one)
        return itertools.pairwise(edges)

    def _of_dimensions(self, dimensions: set[int]) -> DataError:
        found = " and ".join(map(str, sorted(dimensions)))
        return DataError(f"{self.role}: vectors of dimension {found}; expected one")

    def _pieces(self, start: int, stop: int, only: NDArray[np.int64] | None) -> Iterator[Piece]:
        before = images_before = 0  # rows and images of the sets before this one
        for number, one in enumerate(self.sets):
            low, high = max(start - before, 0), min(stop - before, _planned(one))
            if low < high:
                size = len(one.mapped.shards[0])
                for shard in one.mapped.shards[low // size : -(-high // size)]:
                    arrays = self._arrays(number, shard.index)
                    rows = slice(max(low - shard.start, 0), high - shard.start)
                    index, vectors = arrays["index"][rows] + images_before, arrays["vectors"][rows]
                    if only is not None:
                        wanted = np.isin(index, only)
                        index, vectors = index[wanted], vectors[wanted]
                    yield index, as_floats(vectors)
            before, images_before = before + _planned(one), images_before + one.count

    def _arrays(self, number: int, shard: int) -> Arrays:
        key = number, shard
        if key not in self._open:
            self._open[key] = self.sets[number].mapped.read(shard)
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return self._open[key]


def _planned(vectors: VectorSet) -> int:
    """How many rows the set's stage planned: fewer than images where some were left out before."""
    return vectors.mapped.shards[-1].stop if vectors.mapped.shards else 0
