"""Sets searched exactly: tiles of queries x slices of references -> the nearest of each query, merged by a fold.

FAISS proposes, on CPU or GPU; `search.nearest` decides, so neither tiles nor devices show in what comes out. No
process holds a set as a whole: slices are mapped or copied one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.vector_set import Piece, SetRows, VectorSet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import TopK
from raybench.search.by_faiss import MOST_ON_GPU, ByFaiss, listed_for
from raybench.search.distances import SET_DISTANCES
from raybench.search.nearest import nearest
from raybench.search.tiles import Tiles

GLOBAL_FACTOR = 4  # neighbours of a query looked at where the best pairs over all queries are wanted


@dataclass(frozen=True)
class SearchTiles:
    """The stage over tiles: the k nearest references, within the slice, of each query of the tile."""

    queries: SetRows
    references: SetRows
    k: int
    distance: str
    tiles: Tiles
    on_device: bool  # no part of the digest: the bytes are the same

    name = "search"
    version = 1

    @property
    def digest(self) -> str:
        cut = (self.tiles.queries_per_tile, self.tiles.references_per_slice)
        return digest_of(
            self.name, self.version, self.queries.digest, self.references.digest, self.k, self.distance, cut
        )

    @cached_property
    def _proposer(self) -> ByFaiss:
        return ByFaiss(gpu=self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_proposer"}

    def load(self, shard: Shard) -> tuple[Piece, Piece]:
        queries, references = self.tiles.at(shard.index)
        return self.queries.read(queries.start, queries.stop), self.references.read(references.start, references.stop)

    def compute(self, payload: tuple[Piece, Piece]) -> Arrays:
        (query, queries), (place, references) = payload
        if not len(query) or not len(place):
            nothing = np.zeros((0, self.k))
            return TopK(np.zeros(0, np.int64), nothing, nothing.astype(np.int64)).to_arrays()
        self._check_dimension(queries, references)
        found = nearest(queries, references, self.k, self.distance, self._proposer, place)
        return TopK.of(query, found.distance, found.place, self.k).to_arrays()

    def keys(self, shard: Shard) -> str:
        return self.tiles.words(shard.index, self.queries.role, self.references.role)

    def _check_dimension(self, queries: NDArray[np.float32], references: NDArray[np.float32]) -> None:
        if queries.shape[1] != references.shape[1]:
            raise DataError(
                f"{self.queries.role} have dimension {queries.shape[1]}, {self.references.role} {references.shape[1]}; "
                "both must come from one descriptor"
            )


@dataclass(frozen=True)
class FoundNeighbours:
    """What a search left: `nearest` is one shard, a TopK of at least the k references per query that are asked for.

    There are fewer than k where the search had fewer references.
    """

    queries: SetRows
    references: SetRows
    distance: str
    k: int
    nearest: Mapped
    on_device: bool
    shard_size: int | None


def search_sets(
    run: Run,
    queries: VectorSet | Sequence[VectorSet],
    references: VectorSet | Sequence[VectorSet],
    k: int,
    distance: str,
    *,
    device: str,
    shard_size: int | None = None,
    global_candidates: bool = False,
) -> FoundNeighbours:
    """The k nearest references of every query by `squared_L2` or `ip` (scores: minus these); ties by place.

    Several sets count as one, one behind the other. `shard_size`: references per shard. With `global_candidates` more
    neighbours are kept, which `candidates.global_pairs` needs.
    """
    if distance not in SET_DISTANCES:
        raise ValueError(f"distance {distance!r}; there are {', '.join(SET_DISTANCES)}")
    asked, among = SetRows.of(queries), SetRows.of(references)
    for rows in (asked, among):
        if not len(rows):
            raise DataError(f"{rows.role}: no vectors; a search needs at least one")
    # With one place to spare a list that holds all references ends open, by which global_pairs knows it is whole.
    width = min(GLOBAL_FACTOR * k, len(among) + 1) if global_candidates else min(k, len(among))
    on_device = device == "gpu"
    if on_device and listed_for(width) > MOST_ON_GPU:
        run.say(f"search of {width:,} neighbours: FAISS finds at most {MOST_ON_GPU:,} on a GPU, so it runs on CPUs")
        on_device = False
    tiles = Tiles.over(len(asked), len(among), shard_size)
    stage = SearchTiles(asked, among, width, distance, tiles, on_device)
    merged = run.fold(run.map(stage, len(tiles), 1), TopK)
    return FoundNeighbours(asked, among, distance, k, merged, on_device, shard_size)
