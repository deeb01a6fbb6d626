"""Sets searched exactly: all queries x a run of references -> the nearest of each query, merged by ranges of queries.

`search.running` proposes and decides, on CPU or GPU; neither the cut nor devices show in what comes out. References are
mapped, never held as a whole, and one search serves several distances.
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
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.search.choice import chosen_scores
from raybench.search.distances import SET_DISTANCES
from raybench.search.gpu_check import checked_gpu, proposer_for
from raybench.search.proposers import Proposer
from raybench.search.running import References, nearest_along
from raybench.search.tiles import Tiles

GLOBAL_FACTOR = 4  # neighbours of a query looked at where the best pairs over all queries are wanted
MERGED_AT_ONCE = 1 << 20  # neighbours: 16 MB with their distances, and some times as much to order them


@dataclass(frozen=True)
class SearchRuns:
    """The stage over runs of references: the k nearest, within the run, of each query of the tile, by each distance."""

    queries: SetRows
    references: SetRows
    k: int
    distances: tuple[str, ...]
    tiles: Tiles
    on_device: bool  # no part of the digest: the bytes are the same

    name = "search"
    version = 2

    @property
    def digest(self) -> str:
        cut = (self.tiles.queries_per_tile, self.tiles.references_per_slice)
        return digest_of(
            self.name, self.version, self.queries.digest, self.references.digest, self.k, self.distances, cut
        )

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_otherwise"}

    @cached_property
    def _otherwise(self) -> Proposer:
        """Who proposes where scores tell too little apart."""
        return proposer_for(self.on_device)

    @property
    def device_words(self) -> str:
        """What this process found of its GPU, for receipts."""
        return checked_gpu().words if self.on_device else ""

    def load(self, shard: Shard) -> tuple[Piece, References]:
        queries, references = self.tiles.at(shard.index)
        pieces = self.references.pieces(references.start, references.stop)
        return self.queries.read(queries.start, queries.stop), References(*pieces)

    def compute(self, payload: tuple[Piece, References]) -> Arrays:
        (query, queries), references = payload
        arrays: Arrays = {"query": query}
        if not len(query) or not len(references):
            unknown = np.full((len(query), self.k), np.inf), np.full((len(query), self.k), NO_REFERENCE)
            return arrays | {
                name: array for one in self.distances for name, array in zip(_names(one), unknown, strict=True)
            }
        self._check_dimension(queries, references)
        scores = chosen_scores(len(self.queries), len(self.references), queries.shape[1], self.on_device)
        found = nearest_along(queries, references, self.k, self.distances, scores, lambda: self._otherwise)
        for distance, one in zip(self.distances, found, strict=True):
            top = TopK.of(np.arange(len(query)), one.distance, one.place, self.k)
            arrays |= dict(zip(_names(distance), (top.distance, top.reference), strict=True))
        return arrays

    def keys(self, shard: Shard) -> str:
        return self.tiles.words(shard.index, self.queries.role, self.references.role)

    def work(self, shard: Shard) -> float:
        queries, references = self.tiles.at(shard.index)
        return float(len(queries)) * len(references)

    def base(self, shard: Shard) -> float:
        return float(len(self.tiles.at(shard.index)[0]))

    def rows(self, shard: Shard) -> NDArray[np.int64]:
        queries, _ = self.tiles.at(shard.index)
        return np.arange(queries.start, queries.stop)

    def settled(self, arrays: Arrays, shard: Shard) -> Arrays:
        """Arrays that were found in another run of references, as if found in this one: each reference once a query."""
        _, references = self.tiles.at(shard.index)
        place = np.arange(len(arrays["query"]))[:, None] + np.arange(self.k)
        beyond = np.broadcast_to(np.arange(self.k) >= len(references), place.shape)
        for far, own in map(_names, self.distances):
            arrays[own] = np.where(beyond, NO_REFERENCE, references.start + place % max(len(references), 1))
            arrays[far] = np.where(beyond, np.inf, np.where(np.isinf(arrays[far]), 1.0, arrays[far]))
        return arrays

    def _check_dimension(self, queries: NDArray[np.float32], references: References) -> None:
        dimension = references.pieces[0].shape[1]
        if queries.shape[1] != dimension:
            raise DataError(
                f"{self.queries.role} have dimension {queries.shape[1]}, {self.references.role} {dimension}; "
                "both must come from one descriptor"
            )


def _names(distance: str) -> tuple[str, str]:
    """The arrays of a shard that hold distances and references."""
    return f"{distance}.distance", f"{distance}.reference"


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
    found = search_sets_by(
        (distance,),
        run,
        queries,
        references,
        k,
        device=device,
        shard_size=shard_size,
        global_candidates=global_candidates,
    )
    return found[distance]


def search_sets_by(
    distances: tuple[str, ...],
    run: Run,
    queries: VectorSet | Sequence[VectorSet],
    references: VectorSet | Sequence[VectorSet],
    k: int,
    *,
    device: str,
    shard_size: int | None,
    global_candidates: bool,
    spare: int = 0,
) -> dict[str, FoundNeighbours]:
    """The same by several distances in one search, which costs as much as one where all references have one length.

    As many `spare` neighbours are found beyond the k, for who takes some away.
    """
    for distance in distances:
        if distance not in SET_DISTANCES:
            raise ValueError(f"distance {distance!r}; there are {', '.join(SET_DISTANCES)}")
    asked, among = SetRows.of(queries), SetRows.of(references)
    for rows in (asked, among):
        if not len(rows):
            raise DataError(f"{rows.role}: no vectors; a search needs at least one")
    # With one place to spare a list that holds all references ends open, by which global_pairs knows it is whole.
    width = min(GLOBAL_FACTOR * k + spare, len(among) + 1) if global_candidates else min(k + spare, len(among))
    tiles = Tiles.of_runs(len(asked), len(among), width, shard_size)
    stage = SearchRuns(asked, among, width, distances, tiles, on_device=device == "gpu")
    runs = run.map(stage, len(tiles), 1)
    merged = run.each(_merged_rows, _row_ranges(tiles, width), runs, tiles.slices, distances, version=1).whole
    nearest = {distance: run.each(_of_all_queries, [distance], merged, version=1).whole for distance in distances}
    return {
        distance: FoundNeighbours(asked, among, distance, k + spare, found, stage.on_device, shard_size)
        for distance, found in nearest.items()
    }


@dataclass(frozen=True)
class RowRange:
    """Some rows of the shards of one tile of queries."""

    tile: int
    rows: range

    @property
    def name(self) -> str:
        return f"queries {self.rows.start:,}..{self.rows.stop - 1:,} of tile {self.tile}"


def _row_ranges(tiles: Tiles, k: int) -> list[RowRange]:
    """Rows that are merged together: as many as fit, by the data alone."""
    height = max(MERGED_AT_ONCE // (tiles.slices * max(k, 1)), 1)
    return [
        RowRange(tile, range(start, min(start + height, len(rows))))
        for tile, rows in enumerate(tiles.tile_rows())
        for start in range(0, len(rows), height)
    ]


def _merged_rows(item: RowRange, found: Mapped, runs: int, distances: tuple[str, ...]) -> Arrays:
    """The nearest of some queries over all runs of references."""
    rows = slice(item.rows.start, item.rows.stop)
    parts = [found.read(item.tile * runs + run) for run in range(runs)]
    arrays: Arrays = {}
    for distance in distances:
        far, place = _names(distance)
        top = TopK.merged([TopK(part["query"][rows], part[far][rows], part[place][rows]) for part in parts])
        arrays |= {"query": top.query, far: top.distance, place: top.reference}
    return arrays


def _of_all_queries(distance: str, merged: Mapped) -> Arrays:
    """The nearest of all queries by one distance, as a TopK."""
    parts = [merged.read(shard.index) for shard in merged.shards]
    query, far, place = (np.concatenate([part[name] for part in parts]) for name in ("query", *_names(distance)))
    order = np.argsort(query)
    return TopK(query[order], far[order], place[order]).to_arrays()
