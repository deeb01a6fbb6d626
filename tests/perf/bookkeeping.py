"""What a shard costs the driver: time and memory of plans, queues and receipts, over shards that hold no work at all.

Shards go through the executor and into receipts, as in a `Run`, but publish nothing. Time is CPU seconds of the driver
with all threads of Ray in it (inline that is the worker, too); memory is what the process has more of at the end.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.receipts import Receipts
from raybench.engine.run import Executor
from raybench.engine.shards import Shard, Shards
from raybench.formats.shardfile import Arrays
from tests.perf.figures import resident_bytes
from tests.perf.modelled import Modelled, executor, ray_with

WARM = 2_000
INLINE_SHARDS, RAY_SHARDS = 100_000, 100_000
INLINE_MS, RAY_MS, MOST_BYTES = 0.1, 1.0, 300.0


class Nowhere:
    """A sink that keeps nothing."""

    def publish(self, shard: Shard, arrays: Arrays) -> int:
        return 1


@dataclass(frozen=True)
class PerShard:
    """One line of the bench: CPU milliseconds and bytes of the driver for one shard of very many."""

    what: str
    milliseconds: float
    most_milliseconds: float
    grown_bytes: float

    def line(self) -> str:
        """The figure as a line of text: what, time, memory, targets, verdict."""
        good = self.milliseconds <= self.most_milliseconds and self.grown_bytes <= MOST_BYTES
        return (
            f"{self.what:<40} {self.milliseconds:.3f} ms and {self.grown_bytes:,.0f} bytes per shard   "
            f"target {self.most_milliseconds:g} ms, {MOST_BYTES:g} bytes  {'ok' if good else 'MISSED'}"
        )


def figures(folder: Path) -> Iterator[PerShard]:
    """Inline, then two CPU actors."""
    yield _per_shard("inline", InlineExecutor(Observer()), INLINE_SHARDS, INLINE_MS)
    with ray_with(cpus=2, gpus=0), executor(2, 0) as by:
        yield _per_shard("two actors", by, RAY_SHARDS, RAY_MS)


def _per_shard(where: str, by: Executor, count: int, most_milliseconds: float) -> PerShard:
    _count_through(by, WARM)
    gc.collect()
    before, started = resident_bytes(), time.process_time()
    _count_through(by, count)
    seconds = time.process_time() - started
    gc.collect()
    grown = max(resident_bytes() - before, 0) / count
    return PerShard(f"{count:,} empty shards, {where}", seconds * 1_000 / count, most_milliseconds, grown)


def _count_through(by: Executor, count: int) -> None:
    shards = Shards("modelled", count, 1)
    with Receipts(shards) as receipts:
        for receipt in by.map(Modelled(), shards, Nowhere()):
            receipts.add(receipt)
        assert receipts.computed == count
