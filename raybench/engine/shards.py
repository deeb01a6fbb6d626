"""How work is cut: shards of consecutive items. Depends on the data and the job, never on the cluster."""

from __future__ import annotations

from dataclasses import dataclass


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


def plan(stage: str, count: int, size: int) -> tuple[Shard, ...]:
    """Shards of `size` items that cover 0..count in order; the last may be shorter.

    >>> [(shard.start, shard.stop) for shard in plan("x", 5, 2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    if size < 1:
        raise ValueError(f"shard size must be at least 1, not {size}")
    return tuple(
        Shard(stage, index, start, min(start + size, count)) for index, start in enumerate(range(0, count, size))
    )
