"""Labelled pairs of a query and a reference -> their standings among all references, over tiles of both sets.

First the distance of each pair is measured, then every tile counts what comes before it there. Counts add up, so that
neither tiles nor workers show. On CPUs, wherever a search runs: the product that tells apart is in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.vector_set import Piece, SetRows, VectorSet, take_rows
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import ArrayFields, Counts, Rows
from raybench.search.distances import measured
from raybench.search.standings import Asked, standings
from raybench.search.tiles import Tiles


@dataclass(frozen=True)
class PairStandings(ArrayFields):
    """Of each pair its distance, and how many references come before it in its query's ranking of all.

    `before` goes by place at equal distance; `fewest` are strictly closer, `most` closer or as near. The pair's own
    reference never counts.
    """

    distance: NDArray[np.float64]
    before: NDArray[np.int64]
    fewest: NDArray[np.int64]
    most: NDArray[np.int64]


@dataclass(frozen=True)
class PairTiles:
    """Queries that are asked for, the references of all sets, and pairs by row of the queries, then by reference."""

    queries: SetRows
    references: SetRows
    pairs: TruePairs
    distance: str
    tiles: Tiles

    @property
    def digest(self) -> str:
        cut = (self.tiles.queries_per_tile, self.tiles.references_per_slice)
        return digest_of(self.queries.digest, self.references.digest, self.pairs, self.distance, cut)

    def read(self, shard: Shard, only: NDArray[np.int64] | None = None) -> tuple[Piece, Piece]:
        """Queries and references (all, or only these) of one tile."""
        queries, references = self.tiles.at(shard.index)
        own = self.queries.read(queries.start, queries.stop)
        others = self.references.read(references.start, references.stop, only)
        if len(own[0]) and len(others[0]) and own[1].shape[1] != others[1].shape[1]:
            raise DataError(
                f"{self.queries.role} have dimension {own[1].shape[1]}, {self.references.role} {others[1].shape[1]}; "
                "both must come from one descriptor"
            )
        return own, others

    def words(self, shard: Shard) -> str:
        return self.tiles.words(shard.index, self.queries.role, self.references.role)

    def of_queries(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs whose query is among these, and its row there; by row."""
        order = np.argsort(index)
        place = np.minimum(np.searchsorted(index[order], self.pairs.query), max(len(index) - 1, 0))
        pair = np.flatnonzero(index[order[place]] == self.pairs.query) if len(index) else np.zeros(0, np.int64)
        row = order[place[pair]]
        by_row = np.argsort(row, kind="stable")
        return pair[by_row], row[by_row]


@dataclass(frozen=True)
class MeasurePairs:
    """The stage that measures labelled pairs: Rows of distances, by the pair's index."""

    tiles: PairTiles

    name = "measure-pairs"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.tiles.digest)

    def load(self, shard: Shard) -> tuple[Piece, Piece]:
        return self.tiles.read(shard, only=np.unique(self.tiles.pairs.reference))

    def compute(self, payload: tuple[Piece, Piece]) -> Arrays:
        (query, queries), (place, references) = payload
        pair, row = self.tiles.of_queries(query)
        order = np.argsort(place)
        wanted = self.tiles.pairs.reference[pair]
        at = np.minimum(np.searchsorted(place[order], wanted), max(len(place) - 1, 0))
        here = place[order[at]] == wanted if len(place) else np.zeros(len(pair), np.bool_)
        if not here.any():
            return Rows(np.zeros(0, np.int64), np.zeros(0)).to_arrays()
        pairs = row[here], order[at[here]]
        return Rows.of(pair[here], measured(queries, references, pairs, self.tiles.distance)).to_arrays()

    def keys(self, shard: Shard) -> str:
        return self.tiles.words(shard)

    def settled(self, arrays: Arrays, shard: Shard) -> Arrays:
        """Distances of any pairs, as if those of this tile's: each pair has one tile, by the numbers of its rows."""
        (queries, references), pairs = self.tiles.tiles.at(shard.index), self.tiles.pairs
        within = (pairs.query >= queries.start) & (pairs.query < queries.stop)
        within &= (pairs.reference >= references.start) & (pairs.reference < references.stop)
        own = np.flatnonzero(within)
        known = arrays["values"] if len(arrays["values"]) else np.ones(1)
        return Rows.of(own, np.resize(known, len(own))).to_arrays()


@dataclass(frozen=True)
class CountStandings:
    """The stage that counts what comes before each pair in a tile: Counts of before, fewest and most."""

    tiles: PairTiles
    distances: Mapped  # one shard of Rows

    name = "count-standings"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.tiles.digest, self.distances.digest)

    def load(self, shard: Shard) -> tuple[Piece, Piece]:
        return self.tiles.read(shard)

    def compute(self, payload: tuple[Piece, Piece]) -> Arrays:
        (query, queries), (place, references) = payload
        pair, row = self.tiles.of_queries(query)
        if not len(pair) or not len(place):
            return Counts(np.zeros(0, np.int64), np.zeros((0, 3), np.int64)).to_arrays()
        distance = self.distances.read(0)["values"][pair]
        asked = Asked(row, self.tiles.pairs.reference[pair], distance)
        found = standings(queries, references, place, asked, self.tiles.distance)
        return Counts.of(pair, np.stack([found.before, found.fewest, found.most], axis=1)).to_arrays()

    def keys(self, shard: Shard) -> str:
        return self.tiles.words(shard)

    def work(self, shard: Shard) -> float:
        queries, references = self.tiles.tiles.at(shard.index)
        return float(len(queries)) * len(references)

    def rows(self, shard: Shard) -> NDArray[np.int64]:
        queries, _ = self.tiles.tiles.at(shard.index)
        return np.flatnonzero((self.tiles.pairs.query >= queries.start) & (self.tiles.pairs.query < queries.stop))


def pair_standings(
    run: Run,
    queries: VectorSet,
    references: VectorSet | Sequence[VectorSet],
    pairs: TruePairs,
    distance: str,
    shard_size: int | None = None,
) -> Mapped:
    """One shard of PairStandings, in the order of the pairs; several sets of references count as one.

    Every image that a pair names must have a vector. Of the queries only those with pairs are read.
    """
    asked, row = np.unique(pairs.query, return_inverse=True)
    own = SetRows.of(take_rows(run, queries, asked, queries.role))
    among, by_row = SetRows.of(references), TruePairs(row, pairs.reference)
    labelled, tiles = (
        PairTiles(own, some, by_row, distance, Tiles.over(len(own), len(some), shard_size))
        for some in (_labelled(among, pairs), among)
    )
    distances = run.fold(run.map(MeasurePairs(labelled), len(labelled.tiles), 1), Rows)
    found = len(run.read(distances, 0)["index"])
    if found < len(pairs):
        raise DataError(f"of {len(pairs):,} labelled pairs only {found:,} have vectors")
    counts = run.fold(run.map(CountStandings(tiles, distances), len(tiles.tiles), 1), Counts)
    return run.each(_joined, ["all pairs"], distances, counts, version=1).whole


def _labelled(references: SetRows, pairs: TruePairs) -> SetRows:
    """The sets up to the last that a pair names: distractors behind it have no pair that is to be measured."""
    starts = np.cumsum([0, *(one.count for one in references.sets)])[:-1]
    return SetRows(references.sets[: max(int(np.count_nonzero(starts <= pairs.reference.max(initial=0))), 1)])


def _joined(_: str, distances: Mapped, counts: Mapped) -> Arrays:
    counted = np.ascontiguousarray(counts.read(0)["values"].T)
    return PairStandings(distances.read(0)["values"], *counted).to_arrays()
