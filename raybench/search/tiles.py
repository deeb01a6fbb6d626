"""Exact search: tiles of queries x slices of references -> the nearest of each query, merged by a fold.

FAISS proposes, on CPU or GPU; `metrics.exact_search` decides, so neither tiles nor devices show in what comes out. No
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
from raybench.search.exact_search import METRICS, References, nearest_places
from raybench.search.proposers import MOST_ON_GPU, Proposer

QUERIES_PER_TILE = range(512, 2_048 + 1)  # fewer do not keep a matrix product busy
REFERENCES_PER_SLICE = 32_768  # 32 MB of 256-d vectors
LEAST_REFERENCES = 4  # a smaller slice is not worth a shard, not even in a demo
LEAST_TILES = 8  # so that eight device actors have something to do
GLOBAL_FACTOR = 4  # neighbours of a query looked at where the best pairs over all queries are wanted


@dataclass(frozen=True)
class Tiles:
    """How queries and references are cut: evenly, tiles of the same queries together, which keeps a fold small."""

    queries: int
    references: int
    queries_per_tile: int
    references_per_slice: int

    @classmethod
    def over(cls, queries: int, references: int, shard_size: int | None, tall: range = QUERIES_PER_TILE) -> Tiles:
        """The cut for so many queries and references, by the data alone; or so many references a shard.

        Queries are cut first: each slice of references costs a measurement of k pairs a query.
        """
        height = _balanced(queries, min(max(-(-queries // LEAST_TILES), tall[0]), tall[-1]))
        least = -(-LEAST_TILES // -(-queries // height))
        width = min(REFERENCES_PER_SLICE, max(-(-references // least), LEAST_REFERENCES))
        return cls(queries, references, height, shard_size or _balanced(references, width))

    @property
    def slices(self) -> int:
        return -(-self.references // self.references_per_slice)

    def __len__(self) -> int:
        return -(-self.queries // self.queries_per_tile) * self.slices

    def at(self, index: int) -> tuple[range, range]:
        """Positions of the queries and of the references of one tile."""
        tile, slice_ = divmod(index, self.slices)
        query, reference = tile * self.queries_per_tile, slice_ * self.references_per_slice
        return (
            range(query, min(query + self.queries_per_tile, self.queries)),
            range(reference, min(reference + self.references_per_slice, self.references)),
        )


@dataclass(frozen=True)
class SearchTiles:
    """The stage over tiles: the k nearest references, within the slice, of each query of the tile."""

    queries: SetRows
    references: SetRows
    k: int
    metric: str
    tiles: Tiles
    on_device: bool  # no part of the digest: the bytes are the same

    name = "search"
    version = 1

    @property
    def digest(self) -> str:
        cut = (self.tiles.queries_per_tile, self.tiles.references_per_slice)
        return digest_of(self.name, self.version, self.queries.digest, self.references.digest, self.k, self.metric, cut)

    @cached_property
    def _proposer(self) -> Proposer:
        return Proposer(gpu=self.on_device)

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
        distance, reference = nearest_places(
            queries, References(place, references), self.k, margin(self.k), self.metric, self._proposer.nearest
        )
        order = np.argsort(query)
        return TopK(query[order], distance[order], reference[order]).to_arrays()

    def keys(self, shard: Shard) -> str:
        queries, references = self.tiles.at(shard.index)
        return (
            f"{self.queries.what} {queries.start:,}..{queries.stop - 1:,} x "
            f"{self.references.what} {references.start:,}..{references.stop - 1:,}"
        )

    def _check_dimension(self, queries: NDArray[np.float32], references: NDArray[np.float32]) -> None:
        if queries.shape[1] != references.shape[1]:
            raise DataError(
                f"{self.queries.what} have dimension {queries.shape[1]}, {self.references.what} {references.shape[1]}; "
                "both must come from one descriptor"
            )


def margin(k: int) -> int:
    """How many more than k are proposed, so that rounding seldom leaves a search open."""
    return max(8, k // 4)


@dataclass(frozen=True)
class Found:
    """What a search left: `nearest` is one shard, a TopK of `width` references a query, of which k are asked for.

    There are fewer than k where the search had fewer references.
    """

    queries: SetRows
    references: SetRows
    metric: str
    k: int
    width: int
    nearest: Mapped
    on_device: bool
    shard_size: int | None


def search_sets(
    run: Run,
    queries: VectorSet | Sequence[VectorSet],
    references: VectorSet | Sequence[VectorSet],
    k: int,
    metric: str,
    *,
    device: str,
    shard_size: int | None = None,
    global_candidates: bool = False,
) -> Found:
    """The k nearest references of every query by `L2` (score: minus the squared distance) or `ip`; ties by place.

    Several sets count as one, one behind the other. `shard_size`: references a shard. With `global_candidates` more
    neighbours are kept, which `candidates.global_pairs` needs.
    """
    if metric not in METRICS:
        raise ValueError(f"metric {metric!r}; there are {', '.join(METRICS)}")
    asked, among = SetRows.of(queries), SetRows.of(references)
    for rows in (asked, among):
        if not len(rows):
            raise DataError(f"{rows.what}: no vectors; a search needs at least one")
    # With one place to spare a list that holds all references ends open, by which global_pairs knows it is whole.
    width = min(GLOBAL_FACTOR * k, len(among) + 1) if global_candidates else min(k, len(among))
    on_device = device == "gpu"
    if on_device and width + margin(width) > MOST_ON_GPU:
        run.say(f"search of {width:,} neighbours: FAISS finds at most {MOST_ON_GPU:,} on a GPU, so it runs on CPUs")
        on_device = False
    tiles = Tiles.over(len(asked), len(among), shard_size)
    stage = SearchTiles(asked, among, width, metric, tiles, on_device)
    nearest = run.fold(run.map(stage, len(tiles), 1), TopK)
    return Found(asked, among, metric, k, width, nearest, on_device, shard_size)


def _balanced(count: int, most: int) -> int:
    """The size of parts of at most `most` that are as equal as can be."""
    parts = max(-(-count // most), 1)
    return max(-(-count // parts), 1)
