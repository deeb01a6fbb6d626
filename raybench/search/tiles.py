"""How queries and references are cut into tiles: evenly, by the data alone."""

from __future__ import annotations

from dataclasses import dataclass

QUERIES_PER_TILE = range(512, 2_048 + 1)  # fewer do not keep a matrix product busy
REFERENCES_PER_SLICE = 32_768  # 32 MB of 256-d vectors
QUERIES_PER_RUN = 65_536  # each reference goes to a device once for all of them
LISTED_AT_ONCE = 1 << 24  # scores on the lists of these queries: 128 MB with their references
CELLS_PER_RUN = 1 << 31  # some seconds of a core; a smaller shard has more neighbours to publish per pair looked at
REFERENCES_PER_RUN = 131_072  # 128 MB of 256-d vectors
LEAST_REFERENCES = 4  # a smaller slice is not worth a shard, not even in a demo
LEAST_TILES = 8  # so that eight device actors have something to do


@dataclass(frozen=True)
class Tiles:
    """Tiles of queries x references; those of the same queries stand together, which keeps a fold small."""

    queries: int
    references: int
    queries_per_tile: int
    references_per_slice: int

    @classmethod
    def over(cls, queries: int, references: int, shard_size: int | None, tall: range = QUERIES_PER_TILE) -> Tiles:
        """The cut for so many queries and references, by the data alone; or so many references per shard.

        Queries are cut first: each slice of references costs a measurement of k pairs per query.
        """
        height = even_size(queries, min(max(-(-queries // LEAST_TILES), tall[0]), tall[-1]))
        least = -(-LEAST_TILES // -(-queries // height))
        width = min(REFERENCES_PER_SLICE, max(-(-references // least), LEAST_REFERENCES))
        return cls(queries, references, height, shard_size or even_size(references, width))

    @classmethod
    def of_runs(cls, queries: int, references: int, k: int, shard_size: int | None) -> Tiles:
        """The cut of a search with running thresholds: all queries if their lists fit, and long runs of references."""
        height = even_size(queries, max(min(LISTED_AT_ONCE // room_for(k), QUERIES_PER_RUN), 1))
        least = -(-LEAST_TILES // -(-queries // height))
        width = min(max(CELLS_PER_RUN // height, 1), REFERENCES_PER_RUN, max(-(-references // least), LEAST_REFERENCES))
        return cls(queries, references, height, shard_size or even_size(references, width))

    def tile_rows(self) -> list[range]:
        """The queries of each tile."""
        return [self.at(tile * self.slices)[0] for tile in range(-(-self.queries // self.queries_per_tile))]

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

    def words(self, index: int, queries: str, references: str) -> str:
        """One tile of what is called so, for errors."""
        rows, columns = self.at(index)
        return f"{queries} {rows.start:,}..{rows.stop - 1:,} x {references} {columns.start:,}..{columns.stop - 1:,}"


def room_for(k: int) -> int:
    """Places on each list of a search for k: what is in question, before and after a block of references."""
    return 4 * k + 64


def even_size(count: int, most: int) -> int:
    """The size of parts of at most `most` (but at least 1) that are as equal as can be.

    >>> even_size(10, 4), even_size(10, 5), even_size(0, 4)
    (4, 5, 1)
    """
    parts = max(-(-count // max(most, 1)), 1)
    return max(-(-count // parts), 1)
