"""A stage whose parts only wait, for so long as they are told: how the engine itself keeps up, on any machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import ray

from raybench.engine.progress import Observer
from raybench.engine.ray_core import RayExecutor
from raybench.engine.run import Executor
from raybench.engine.shards import Shard, Shards
from raybench.engine.stages import Mapped, Receipt, Sink
from raybench.formats.shardfile import Arrays


@dataclass(frozen=True)
class Modelled:
    """Loads, computes and (through `Waiting`) publishes a number per shard, in these seconds."""

    load_seconds: float = 0.0
    compute_seconds: float = 0.0
    on_device: bool = False

    name = "modelled"
    digest = "modelled"

    def load(self, shard: Shard) -> int:
        _wait(self.load_seconds)
        return shard.index

    def compute(self, payload: int) -> Arrays:
        _wait(self.compute_seconds)
        return {"number": np.array([payload])}

    def keys(self, shard: Shard) -> str:
        return f"number {shard.index}"


@dataclass(frozen=True)
class Waiting:
    """A sink that takes its time."""

    sink: Sink
    seconds: float

    def publish(self, shard: Shard, arrays: Arrays) -> int:
        _wait(self.seconds)
        return self.sink.publish(shard, arrays)


def _wait(seconds: float) -> None:
    if seconds:  # even no time at all would give the core away
        time.sleep(seconds)


@contextmanager
def ray_with(cpus: int, gpus: int) -> Iterator[None]:
    """A Ray of its own with so many logical CPUs and GPUs, however many there are."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (its name; as `connect` does)
    ray.init("local", num_cpus=cpus, num_gpus=gpus, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def executor(cpus: int | None, gpus: int) -> Iterator[RayExecutor]:
    made = RayExecutor(Observer(), cpus, gpus, insist_on_gpus=gpus > 0, owned=False)
    try:
        yield made
    finally:
        made.close()


def passed(by: Executor, stage: Modelled, count: int, store: str, publish_seconds: float = 0.0) -> list[Receipt]:
    """The receipts of `count` shards, as they came."""
    shards = Shards(stage.name, count, 1)
    return list(by.map(stage, shards, Waiting(Mapped(store, stage.name, "modelled", shards), publish_seconds)))


def steady_seconds(receipts: Sequence[Receipt]) -> float:
    """Between the first and the last shard that were published: without filling up."""
    finished = [receipt.finished for receipt in receipts]
    return max(finished) - min(finished)
