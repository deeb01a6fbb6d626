"""Tiles of queries x references -> Counts: how many references are closer to each query than given distances.

One shard per tile; whatever the tiles are, the counts are the same (see `search.closer`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import Counts
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
    queries_per_tile: int | None = None,
) -> Mapped:
    """Counts of every query of all searches, by its place among them, in shards that are still to be folded.

    `thresholds` holds Rows of distances, the same number for each query of all searches.
    """
    height = queries_per_tile or CLOSER_QUERIES
    tiles = [tile for number, search in enumerate(searches) for tile in _tiles(number, search, height)]
    return run.each(_count_closer, tiles, features, thresholds, list(searches), distance, version=1)


def _count_closer(
    tile: CloserTile, features: Features, thresholds: Mapped, searches: list[Search], distance: str
) -> Arrays:
    search, queries, references = searches[tile.search], tile.queries, tile.references
    count = sum(len(one.queries) for one in searches)
    cuts = np.clip(search.cuts[queries] - references.start, 0, references.stop - references.start)
    counts = closer_counts(
        gathered(features, search.queries.image[queries], search.queries.patch[queries]),
        gathered(features, search.references.image[references], search.references.patch[references]),
        thresholds.read(0)["values"].reshape(count, -1)[search.first + queries],
        cuts,
        (search.queries.group[queries], search.references.group[references]),
        distance,
    )
    return Counts.of(search.first + queries, counts).to_arrays()


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
