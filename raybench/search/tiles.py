"""How queries and references are cut into tiles: evenly, by the data alone."""

from __future__ import annotations

from dataclasses import dataclass

QUERIES_PER_TILE = range(512, 2_048 + 1)  # fewer do not keep a matrix product busy
REFERENCES_PER_SLICE = 32_768  # 32 MB of 256-d vectors
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


def even_size(count: int, most: int) -> int:
    """The size of parts of at most `most` (but at least 1) that are as equal as can be.

    >>> even_size(10, 4), even_size(10, 5), even_size(0, 4)
    (4, 5, 1)
    """
    parts = max(-(-count // max(most, 1)), 1)
    return max(-(-count // parts), 1)
