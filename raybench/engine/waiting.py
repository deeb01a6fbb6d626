"""Shards that nobody works on, in the order in which they are wanted, and how many an actor has at once. No Ray."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Sequence

from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt
from raybench.engine.stations import PUBLISHED_AT_ONCE

FIRST_DEPTH = 2  # shards with each actor until receipts tell how long each part takes


class Waiting:
    """Shards that nobody works on: a dead actor's first, then the rest in order, last those that failed.

    Those that wait for storage are not counted until their time has come.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._first: deque[Shard] = deque()
        self._rest = iter(shards)
        self._last: deque[Shard] = deque()
        self._count = len(shards)
        self._paused: list[tuple[float, int, Shard]] = []  # until when, and the shard

    def __len__(self) -> int:
        self._wake()
        return self._count

    @property
    def next(self) -> Shard:
        """The shard that `take` would give; there must be one."""
        if not self._first:
            self._first.extend(itertools.islice(self._rest, 1))
        if not self._first:
            self._first.append(self._last.popleft())
        return self._first[0]

    @property
    def paused(self) -> int:
        return len(self._paused)

    def take(self) -> Shard:
        shard = self.next
        self._first.popleft()
        self._count -= 1
        return shard

    def at_once(self, shards: Sequence[Shard]) -> None:
        self._first.extendleft(reversed(shards))
        self._count += len(shards)

    def later(self, shard: Shard) -> None:
        self._last.append(shard)
        self._count += 1

    def after(self, seconds: float, shard: Shard) -> None:
        """Let a shard wait for at least so long."""
        heapq.heappush(self._paused, (time.monotonic() + seconds, shard.index, shard))

    def _wake(self) -> None:
        while self._paused and self._paused[0][0] <= time.monotonic():
            self.later(heapq.heappop(self._paused)[2])


class Depth:
    """How many shards an actor has at once: one at each station that takes its time, and one on its way."""

    def __init__(self, fused: bool, most: int) -> None:
        self.shards = FIRST_DEPTH
        self._fused, self._most = fused, most
        self._load = self._compute = self._publish = 0.0  # seconds in all

    def heard(self, receipt: Receipt) -> None:
        self._load += receipt.load_seconds if self._fused else 0.0
        self._compute += receipt.compute_seconds
        self._publish += receipt.publish_seconds
        slowest = max(self._load, self._compute, self._publish / PUBLISHED_AT_ONCE, 1e-9)
        at_stations = round((self._load + self._compute + self._publish) / slowest)
        self.shards = min(1 + at_stations, self._most)
