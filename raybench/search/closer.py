"""Query tile x reference tile -> Counts: how many references are closer to each query than given distances.

The tiles are the shards; whatever they are, the counts are the same (see `metrics.counts`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from raybench.metrics.partials import Counts
from raybench.search.counts import closer_counts

QUERIES_PER_TILE = 1_024
REFERENCES_PER_TILE = 4_096  # with the queries some 3 MB of 128-d vectors; 64 rows of closeness are 1 MB


@dataclass(frozen=True)
class Patches:
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

    queries: Patches
    references: Patches
    cuts: NDArray[np.int64]
    first: int


@dataclass(frozen=True)
class Tile:
    """Some queries of one search (by place, in order of their groups) and consecutive references."""

    search: int
    queries: NDArray[np.int64]
    references: slice


@dataclass(frozen=True)
class CountCloser:
    """The stage over tiles. `thresholds` holds Rows of distances, the same number for each query of all searches."""

    features: Features
    thresholds: Mapped
    searches: tuple[Search, ...]
    tiles: tuple[Tile, ...]
    distance: str

    name = "count-closer"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        searches = [(s.queries.image, s.queries.patch, s.queries.group, s.cuts, s.first) for s in self.searches] + [
            (s.references.image, s.references.patch, s.references.group) for s in self.searches
        ]
        tiles = [(tile.search, tile.queries, tile.references.start, tile.references.stop) for tile in self.tiles]
        parts = (self.features.mapped.digest, self.thresholds.digest, self.distance, searches, tiles)
        return digest_of(self.name, self.version, *parts)

    def load(self, shard: Shard) -> Tile:
        return self.tiles[shard.start]

    def compute(self, payload: Tile) -> Arrays:
        search, queries, references = self.searches[payload.search], payload.queries, payload.references
        count = sum(len(one.queries) for one in self.searches)
        thresholds = self.thresholds.read(0)["values"].reshape(count, -1)[search.first + queries]
        cuts = np.clip(search.cuts[queries] - references.start, 0, references.stop - references.start)
        counts = closer_counts(
            gathered(self.features, search.queries.image[queries], search.queries.patch[queries]),
            gathered(self.features, search.references.image[references], search.references.patch[references]),
            thresholds,
            cuts,
            (search.queries.group[queries], search.references.group[references]),
            self.distance,
        )
        return Counts.of(search.first + queries, counts).to_arrays()

    def keys(self, shard: Shard) -> str:
        tile = self.tiles[shard.start]
        at = tile.references
        return f"{len(tile.queries)} queries x references {at.start:,}..{at.stop - 1:,} of search {tile.search}"


def count_closer(
    run: Run,
    features: Features,
    thresholds: Mapped,
    searches: Sequence[Search],
    distance: str,
    queries_per_tile: int | None = None,
    references_per_tile: int | None = None,
) -> Mapped:
    """Counts of every query of all searches, by its place among them, in shards that are still to be folded."""
    tiles = tuple(
        tile
        for number, search in enumerate(searches)
        for tile in _tiles(
            number, search, queries_per_tile or QUERIES_PER_TILE, references_per_tile or REFERENCES_PER_TILE
        )
    )
    return run.map(CountCloser(features, thresholds, tuple(searches), tiles, distance), len(tiles), 1)


def gathered(features: Features, image: NDArray[np.int32], patch: NDArray[np.int32]) -> NDArray[Any]:
    """Rows of patches in any order, gathered image by image."""
    order = np.argsort(image, kind="stable")
    rows = features.gather(image[order], patch[order])
    out = np.empty_like(rows)
    out[order] = rows
    return out


def _tiles(number: int, search: Search, queries: int, references: int) -> list[Tile]:
    order = np.argsort(search.queries.group, kind="stable")  # neighbours of one group are masked at once
    return [
        Tile(number, order[start : start + queries], slice(low, min(low + references, len(search.references))))
        for start in range(0, len(order), queries)
        for low in range(0, len(search.references), references)
    ]
