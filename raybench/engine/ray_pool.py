"""Actors and tasks on Ray, one line each over plain functions, and the pool that holds and replaces actors.

No result lives in an actor: publishing is all it does. Which shard goes where is decided in `ray_core`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import ray

from raybench.engine.attempts import Failure
from raybench.engine.shards import Shard
from raybench.engine.stages import Loaded, Place, Receipt, Sink, Stage, finish_shard, load_shard

GPU_MODEL_LABEL = "ray.io/accelerator-type"  # Ray puts it on every node whose GPU it knows


class Worker:
    """An actor: keeps the stage it works on (and the model in it), publishes shards, returns receipts."""

    def __init__(self, device: str) -> None:
        self._job_key = ""
        self._stage: Any = None
        self._sink: Any = None
        self._place = place(device)

    def ready(self) -> tuple[str, Place]:
        """The node's id and where this actor is."""
        return ray.get_runtime_context().get_node_id(), self._place

    def work(self, job: list[Any], shard: Shard, loaded: Loaded | None = None) -> Receipt | Failure:
        """Load (unless it was done ahead), compute and publish one shard."""
        try:
            stage = self._open(job[0])
            if loaded is None:
                loaded = load_shard(stage, shard, self._place)
            return finish_shard(stage, shard, loaded, self._sink, self._place)
        except Exception as error:  # noqa: BLE001 (the driver decides what a failure means)
            return Failure.of(error)

    def _open(self, job: Any) -> Stage:
        if job.hex() != self._job_key:
            self._stage, self._sink = ray.get(job)
            self._job_key = job.hex()
        stage: Stage = self._stage
        return stage


def load_ahead(job: tuple[Stage, Sink], shard: Shard) -> tuple[Failure | None, Loaded | None]:
    """A CPU task: what the device actor will need, and whether it failed."""
    try:
        return None, load_shard(job[0], shard, place("cpu", actor="task"))
    except Exception as error:  # noqa: BLE001
        return Failure.of(error), None


def place(device: str, actor: str | None = None) -> Place:
    context = ray.get_runtime_context()
    if device == "gpu":
        ids = ",".join(context.get_accelerator_ids()["GPU"])
        device = f"gpu {ids} ({context.get_node_labels().get(GPU_MODEL_LABEL, 'logical')})"
    name = actor if actor is not None else str(context.get_actor_id())
    return dataclasses.replace(Place.here(name, device), node=context.get_node_id())


@dataclass(eq=False)
class Seat:
    """The driver's view of one actor: its handle, the shards it was given, where it is once it is ready."""

    actor: Any
    ready: Any
    failed_starts: int = 0  # of the actors that had this seat before, in a row
    node: str | None = None
    given: int = 0  # shards, over all stages
    queue: deque[tuple[Any, Shard]] = field(default_factory=deque)


class Pool:
    """Actors of one kind, kept over stages; a dead one is replaced."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.seats: list[Seat] = []

    def grow_to(self, count: int) -> None:
        while len(self.seats) < count:
            self.seats.append(self._new_seat())

    def ask_who_is_there(self) -> None:
        """An actor may have died while it was idle: nobody is given work before it answers."""
        for seat in self.seats:
            seat.queue.clear()
            if seat.node is not None:
                seat.node, seat.ready = None, seat.actor.ready.remote()

    def replace(self, seat: Seat, failed_starts: int = 0) -> None:
        self.seats[self.seats.index(seat)] = self._new_seat(failed_starts)

    def close(self) -> None:
        for seat in self.seats:
            with suppress(Exception):  # a Ray that is gone took the actor along; the error that matters is another
                ray.kill(seat.actor)
        self.seats = []

    def _new_seat(self, failed_starts: int = 0) -> Seat:
        grant = {"num_cpus": 0, "num_gpus": 1} if self.device == "gpu" else {"num_cpus": 1}
        remote: Any = ray.remote(Worker)  # Ray's own types do not know actors made this way
        actor = remote.options(max_restarts=0, **grant).remote(self.device)
        return Seat(actor, actor.ready.remote(), failed_starts)
