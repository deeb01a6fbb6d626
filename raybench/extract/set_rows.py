"""Rows of vector sets by position: one or several sets, one behind the other, read a slice at a time.

Positions count rows as the sets' stages planned them; a shard may hold fewer (a skipped image), never more. A row's
place is its place in name order, those of the second set behind all of the first. Files are mapped, not loaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.errors import DataError
from raybench.extract.vector_set import VectorSet, as_floats
from raybench.formats.shardfile import Arrays

MOST_OPEN = 32  # mapped files that a process keeps: they cost address space and page cache only

Piece = tuple[NDArray[np.int64], NDArray[np.float32]]  # places and vectors


@dataclass(frozen=True)
class SetRows:
    """The rows of sets that are searched as one."""

    sets: tuple[VectorSet, ...]

    @classmethod
    def of(cls, sets: VectorSet | Sequence[VectorSet]) -> SetRows:
        return cls((sets,) if isinstance(sets, VectorSet) else tuple(sets))

    @property
    def what(self) -> str:
        return " + ".join(one.what for one in self.sets)

    @property
    def digest(self) -> str:
        return digest_of(*((one.digest, one.count) for one in self.sets))

    def __len__(self) -> int:
        """How many positions there are."""
        return sum(_planned(one) for one in self.sets)

    def __getstate__(self) -> dict[str, Any]:
        return {"sets": self.sets}

    @cached_property
    def _open(self) -> OrderedDict[tuple[int, int], Arrays]:
        """Shards opened last: consecutive slices meet in one, and its checksums are read through once."""
        return OrderedDict()

    def read(self, start: int, stop: int, only: NDArray[np.int64] | None = None) -> Piece:
        """Places and vectors of the rows at these positions, perhaps of some places only.

        They are views where they lie in one shard and all are wanted.
        """
        pieces = [piece for piece in self._pieces(start, stop, only) if len(piece[0])]
        dimensions = sorted({vectors.shape[1] for _, vectors in pieces})
        if len(dimensions) > 1:
            raise DataError(f"{self.what}: vectors of dimension {' and '.join(map(str, dimensions))}; expected one")
        if len(pieces) == 1:
            return pieces[0]
        if not pieces:
            return np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
        index, vectors = zip(*pieces, strict=True)
        return np.concatenate(index), np.concatenate(vectors)

    def _pieces(self, start: int, stop: int, only: NDArray[np.int64] | None) -> Iterator[Piece]:
        position = first_place = 0  # of the set
        for number, one in enumerate(self.sets):
            low, high = max(start - position, 0), min(stop - position, _planned(one))
            if low < high:
                size = len(one.mapped.shards[0])
                for shard in one.mapped.shards[low // size : -(-high // size)]:
                    arrays = self._arrays(number, shard.index)
                    rows = slice(max(low - shard.start, 0), high - shard.start)
                    place, vectors = arrays["index"][rows] + first_place, arrays["vectors"][rows]
                    if only is not None:
                        wanted = np.isin(place, only)
                        place, vectors = place[wanted], vectors[wanted]
                    yield place, as_floats(vectors)
            position, first_place = position + _planned(one), first_place + one.count

    def _arrays(self, number: int, shard: int) -> Arrays:
        key = number, shard
        if key not in self._open:
            self._open[key] = self.sets[number].mapped.read(shard)
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return self._open[key]


def _planned(vectors: VectorSet) -> int:
    """How many rows the set's stage planned: fewer than places where images were left out before."""
    return vectors.mapped.shards[-1].stop if vectors.mapped.shards else 0
