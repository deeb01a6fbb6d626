"""How work is cut: shards of consecutive items. Depends on the data and the job, never on the cluster.

A plan may have a hundred thousand shards and travels with every stage that reads them, so it makes each shard when it
is asked for and is no larger than its three numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True)
class Shard:
    """Items start..stop of one stage: the unit of scheduling, retry, progress and checkpoint alike."""

    stage: str
    index: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def file_name(self) -> str:
        return f"{self.index:06d}.shard"


@dataclass(frozen=True)
class Shards(Sequence[Shard]):
    """Shards of `size` items that cover 0..items in order; the last may be shorter.

    >>> [(shard.start, shard.stop) for shard in Shards("x", 5, 2)]
    [(0, 2), (2, 4), (4, 5)]
    """

    stage: str
    items: int
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"shard size must be at least 1, not {self.size}")

    def __len__(self) -> int:
        return -(-self.items // self.size)

    @overload
    def __getitem__(self, index: int) -> Shard: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Shard, ...]: ...

    def __getitem__(self, index: int | slice) -> Shard | tuple[Shard, ...]:
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return tuple(self._at(one) for one in chosen)
        return self._at(chosen)

    def __iter__(self) -> Iterator[Shard]:
        return map(self._at, range(len(self)))

    def _at(self, index: int) -> Shard:
        start = index * self.size
        return Shard(self.stage, index, start, min(start + self.size, self.items))


@dataclass(frozen=True)
class ChosenShards(Sequence[Shard]):
    """Some shards of a plan, by their numbers."""

    plan: Shards
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Shard: ...

    @overload
    def __getitem__(self, index: slice) -> ChosenShards: ...

    def __getitem__(self, index: int | slice) -> Shard | ChosenShards:
        if isinstance(index, slice):
            return ChosenShards(self.plan, self.numbers[index])
        return self.plan[self.numbers[index]]
