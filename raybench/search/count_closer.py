"""Tiles of queries x references -> Counts: how many references are closer to each query than given distances, or equal.

One shard per tile; whatever the tiles are, the counts are the same (see `search.closer`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import Counts
from raybench.search.by_torch import PRODUCTS, tiler
from raybench.search.closer import closer_counts
from raybench.search.tiles import Tiles

CLOSER_QUERIES = 1_024
CLOSER_REFERENCES = 4_096  # with the queries some 3 MB of 128-d vectors; 64 rows of closeness are 1 MB


@dataclass(frozen=True)
class GroupedPatches:
    """Patches that are searched for or among; images count into a Features' images."""

    image: NDArray[np.int32]
    patch: NDArray[np.int32]
    group: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.image)


@dataclass(frozen=True)
class Search:
    """Queries and the references among which closer ones are counted.

    `cuts` (queries, k): counts are over the first so many references; those of the query's own group never count.
    `first` is the place of the first query among those of all searches.
    """

    queries: GroupedPatches
    references: GroupedPatches
    cuts: NDArray[np.int64]
    first: int


@dataclass(frozen=True)
class CloserTile:
    """Some queries of one search (by place, in order of their groups) and consecutive references."""

    search: int
    queries: NDArray[np.int64]
    references: slice

    @property
    def name(self) -> str:
        at = self.references
        return f"{len(self.queries)} queries x references {at.start:,}..{at.stop - 1:,} of search {self.search}"


def count_closer(
    run: Run,
    features: Features,
    thresholds: Mapped,
    searches: Sequence[Search],
    distance: str,
) -> Mapped:
    """Counts (closer and equal, thresholds, cuts) of every query of all searches, in shards still to be folded.

    `thresholds` holds Rows of distances, the same number for each query of all searches.
    """
    tiles = [tile for number, search in enumerate(searches) for tile in _tiles(number, search, CLOSER_QUERIES)]
    on_device = uses_device(run, distance)
    stage = CountCloser(features, thresholds, tuple(searches), tuple(tiles), distance, on_device)
    return run.map(stage, len(tiles), 1)


@dataclass(frozen=True)
class CountCloser:
    """The stage over tiles of all searches."""

    features: Features
    thresholds: Mapped
    searches: tuple[Search, ...]
    tiles: tuple[CloserTile, ...]
    distance: str
    on_device: bool  # no part of the digest: the bytes are the same

    name = "count-closer"
    version = 2

    @cached_property
    def digest(self) -> str:
        inputs = (self.features, self.thresholds, self.searches, self.tiles)
        return digest_of(self.name, self.version, *inputs, self.distance)

    def load(self, shard: Shard) -> CloserTile:
        return self.tiles[shard.index]

    def compute(self, payload: CloserTile) -> Arrays:
        search, queries, references = self.searches[payload.search], payload.queries, payload.references
        count = sum(len(one.queries) for one in self.searches)
        counts = closer_counts(
            gathered(self.features, search.queries.image[queries], search.queries.patch[queries]),
            gathered(self.features, search.references.image[references], search.references.patch[references]),
            self.thresholds.read(0)["values"].reshape(count, -1)[search.first + queries],
            np.clip(search.cuts[queries] - references.start, 0, references.stop - references.start),
            (search.queries.group[queries], search.references.group[references]),
            self.distance,
            tiler(self.on_device, self.distance),
        )
        both = np.stack([counts.closer, counts.equal], axis=1)
        return Counts.of(search.first + queries, both).to_arrays()

    def keys(self, shard: Shard) -> str:
        return self.tiles[shard.index].name

    def work(self, shard: Shard) -> float:
        tile = self.tiles[shard.index]
        return float(len(tile.queries) * (tile.references.stop - tile.references.start))

    def rows(self, shard: Shard) -> NDArray[np.int64]:
        tile = self.tiles[shard.index]
        return np.unique(self.searches[tile.search].first + tile.queries)


def uses_device(run: Run, distance: str) -> bool:
    """Whether a search of patches runs on GPUs: where there are any, and the distance is a product."""
    return run.gpus > 0 and distance in PRODUCTS


def gathered(features: Features, image: NDArray[np.int32], patch: NDArray[np.int32]) -> NDArray[Any]:
    """Rows of patches in any order, gathered image by image."""
    order = np.argsort(image, kind="stable")
    rows = features.gather(image[order], patch[order])
    out = np.empty_like(rows)
    out[order] = rows
    return out


def _tiles(number: int, search: Search, height: int) -> Iterator[CloserTile]:
    order = np.argsort(search.queries.group, kind="stable")  # neighbours of one group are masked at once
    tiles = Tiles(len(order), len(search.references), height, CLOSER_REFERENCES)
    for rows, columns in map(tiles.at, range(len(tiles))):
        yield CloserTile(number, order[rows.start : rows.stop], slice(columns.start, columns.stop))
