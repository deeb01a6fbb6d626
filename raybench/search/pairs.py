"""Listed pairs -> Rows of distances: gathered from mapped features in sorted blocks, decided row by row in float64."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import Rows
from raybench.search.distances import row_distances

PAIRS_PER_SHARD = 65_536
BLOCK = 2_048  # rows at once: two float32 blocks and one float64 block of 128-d stay in the cache


@dataclass(frozen=True)
class Pairs:
    """Pairs of patches; images count into a Features' images (-1: left out). Position is the pair's index."""

    a_image: NDArray[np.int32]
    a_patch: NDArray[np.int32]
    b_image: NDArray[np.int32]
    b_patch: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.a_image)

    @classmethod
    def joined(cls, parts: Iterable[Pairs]) -> Pairs:
        """The pairs of all parts, one behind the other."""
        columns = zip(*((part.a_image, part.a_patch, part.b_image, part.b_patch) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def at(self, chosen: slice | NDArray[Any]) -> Pairs:
        """Some of the pairs, in this order."""
        return Pairs(self.a_image[chosen], self.a_patch[chosen], self.b_image[chosen], self.b_patch[chosen])


@dataclass(frozen=True)
class PairDistances:
    """The stage over pairs, brought into an order that keeps each shard within few feature files."""

    features: Features
    pairs: Pairs
    index: NDArray[Any]  # of each pair in the list; as small as their number allows
    distance: str
    listed: str
    skip: bool

    name = "pairs"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features.mapped.digest, self.distance, self.listed, self.skip)

    def load(self, shard: Shard) -> slice:
        return slice(shard.start, shard.stop)

    def compute(self, payload: slice) -> Arrays:
        index, pairs = self.index[payload].astype(np.int64), self.pairs.at(payload)
        distances = np.full(len(index), np.nan)
        usable = self._usable(pairs) if self.skip else slice(None)
        distances[usable] = self._measured(pairs.at(usable))
        return Rows(index, distances).to_arrays()

    def _usable(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Pairs of which both patches are there; the others get NaN."""
        return self.features.holds(pairs.a_image, pairs.a_patch) & self.features.holds(pairs.b_image, pairs.b_patch)

    def _measured(self, pairs: Pairs) -> NDArray[np.float64]:
        distances = np.empty(len(pairs), np.float64)
        for start in range(0, len(pairs), BLOCK):
            block = pairs.at(slice(start, start + BLOCK))
            a = self.features.gather(block.a_image, block.a_patch)
            b = self.features.gather(block.b_image, block.b_patch)
            distances[start : start + BLOCK] = row_distances(a, b, self.distance)
        return distances

    def keys(self, shard: Shard) -> str:
        return f"pairs {shard.start:,}..{shard.stop - 1:,} in order of their images"


def pair_distances(
    run: Run, features: Features, pairs: Pairs, distance: str, shard_size: int | None = None, skip: bool = False
) -> Mapped:
    """Rows with the distance of every pair, by index, in shards that are still to be folded.

    A shard holds PAIRS_PER_SHARD, whatever `--shard-size` says of images: pairs are thousands of times as many. With
    `skip` a pair with a patch that is not there gets NaN, else it is an error.
    """
    size = shard_size or PAIRS_PER_SHARD
    order = _tiled(features, pairs, tiles=len(pairs) / size)
    listed = digest_of(pairs.a_image, pairs.a_patch, pairs.b_image, pairs.b_patch)  # the order follows from these
    count = len(pairs)
    pairs = pairs.at(order)  # of a list of millions that only the caller's call held, one order is enough
    order = order.astype(np.min_scalar_type(count))
    return run.map(PairDistances(features, pairs, order, distance, listed, skip), count, size)


def _tiled(features: Features, pairs: Pairs, tiles: float) -> NDArray[Any]:
    """Pairs tile by tile of feature files x feature files, then file by file, so that a shard covers about one tile."""
    files = len(features.mapped.shards)
    small = np.min_scalar_type(files)  # numpy sorts integers of 8 and 16 bits by radix, seven times as fast
    a_file, b_file = features.shard_of(pairs.a_image).astype(small), features.shard_of(pairs.b_image).astype(small)
    low, high = np.minimum(a_file, b_file), np.maximum(a_file, b_file)
    width = small.type(max(round(files / max(tiles, 1.0) ** 0.5), 1))
    return np.lexsort((b_file, a_file, high // width, low // width))
