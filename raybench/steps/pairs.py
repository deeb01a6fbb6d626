"""Listed pairs -> Rows of distances: gathered from mapped features in sorted blocks, decided row by row in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.run import Run
from raybench.engine.stage import Mapped
from raybench.formats.shardfile import Arrays
from raybench.metrics.distances import row_distances
from raybench.metrics.partials import Rows
from raybench.steps.extract import Features

PAIRS_PER_SHARD = 65_536
BLOCK = 2_048  # rows at once: two float32 blocks and one float64 block of 128-d stay in the cache


@dataclass(frozen=True)
class Pairs:
    """Pairs of patches; images count into a Features' images. Position in the arrays is the pair's index."""

    a_image: NDArray[np.int32]
    a_patch: NDArray[np.int32]
    b_image: NDArray[np.int32]
    b_patch: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.a_image)


@dataclass(frozen=True)
class PairDistances:
    """The stage over pairs, brought into an order that keeps each shard within few feature files."""

    features: Features
    pairs: Pairs
    index: NDArray[np.int64]
    distance: str
    listed: str

    name = "pairs"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features.mapped.digest, self.distance, self.listed)

    def load(self, shard: Shard) -> slice:
        return slice(shard.start, shard.stop)

    def compute(self, payload: slice) -> Arrays:
        distances = np.empty(payload.stop - payload.start, np.float64)
        for start in range(payload.start, payload.stop, BLOCK):
            at = slice(start, min(start + BLOCK, payload.stop))
            a = self.features.gather(self.pairs.a_image[at], self.pairs.a_patch[at])
            b = self.features.gather(self.pairs.b_image[at], self.pairs.b_patch[at])
            distances[at.start - payload.start : at.stop - payload.start] = row_distances(a, b, self.distance)
        return Rows(self.index[payload], distances).to_arrays()

    def keys(self, shard: Shard) -> str:
        return f"pairs {shard.start:,}..{shard.stop - 1:,} in order of their images"


def pair_distances(run: Run, features: Features, pairs: Pairs, distance: str, shard_size: int | None) -> Mapped:
    """Rows with the distance of every pair, by index, in shards that are still to be folded."""
    size = shard_size or PAIRS_PER_SHARD
    order = _tiled(features, pairs, tiles=len(pairs) / size)
    ordered = Pairs(pairs.a_image[order], pairs.a_patch[order], pairs.b_image[order], pairs.b_patch[order])
    listed = digest_of(pairs.a_image, pairs.a_patch, pairs.b_image, pairs.b_patch)  # the order follows from these
    return run.map(PairDistances(features, ordered, order, distance, listed), len(pairs), size)


def _tiled(features: Features, pairs: Pairs, tiles: float) -> NDArray[np.int64]:
    """Pairs tile by tile of feature files x feature files, then file by file, so that a shard covers about one tile."""
    files = len(features.mapped.shards)
    small = np.min_scalar_type(files)  # numpy sorts integers of 8 and 16 bits by radix, seven times as fast
    a_file, b_file = features.shard_of(pairs.a_image).astype(small), features.shard_of(pairs.b_image).astype(small)
    low, high = np.minimum(a_file, b_file), np.maximum(a_file, b_file)
    width = small.type(max(round(files / max(tiles, 1.0) ** 0.5), 1))
    return np.lexsort((b_file, a_file, high // width, low // width))
