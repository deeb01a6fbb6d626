"""Actors and tasks on Ray, one line each over plain functions, and the pool that holds and replaces actors.

No result lives in an actor: publishing is all it does. Which shard goes where is decided in `ray_flow`.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import NodeDiedError, ObjectLostError, RayError

from raybench.engine.attempts import NODE_LOST, Failure
from raybench.engine.memory import give_back
from raybench.engine.shards import Shard
from raybench.engine.stages import Loaded, Place, Receipt, Sink, Stage, load_shard
from raybench.engine.stations import Stations

GPU_MODEL_LABEL = "ray.io/accelerator-type"  # Ray puts it on every node whose GPU it knows
MOST_PER_ACTOR = 5  # shards with one actor at once: one per place of its stations, and one on its way


class Worker:
    """An actor: keeps the stage it works on (and the model in it), publishes shards, returns receipts."""

    def __init__(self, device: str) -> None:
        self._opening = threading.Lock()
        self._place = place(device)
        self._stations = Stations(self._place)

    def ready(self) -> tuple[str, Place]:
        """The node's id and where this actor is."""
        return ray.get_runtime_context().get_node_id(), self._place

    def work(self, job: list[Any], shard: Shard, loaded: Loaded | None = None) -> Receipt | Failure:
        """Load (unless it was done ahead), compute and publish one shard; several calls overlap."""
        try:
            with self._opening:  # the model in a stage is opened once
                stage, sink = opened(job[0])
            return self._stations.pass_through(stage, shard, sink, loaded)
        except RayError as error:
            return of_ray(error)
        except Exception as error:  # noqa: BLE001 (the driver decides what a failure means)
            return Failure.of(error)


@dataclass(frozen=True)
class Stocked:
    """A payload waits in the object store of this node."""

    node: str
    size_bytes: int


def load_ahead(job: list[Any], shard: Shard) -> tuple[Stocked | Failure, Loaded | None]:
    """A CPU task: what the device actor will need, after what the driver needs to know of it."""
    try:
        stage, _ = opened(job[0])
        loaded = load_shard(stage, shard, place("cpu", actor="task"))
        return Stocked(loaded.place.node, _pickled_bytes(loaded)), loaded
    except RayError as error:
        return of_ray(error), None
    except Exception as error:  # noqa: BLE001
        return Failure.of(error), None


@lru_cache(maxsize=1)
def opened(job: Any) -> tuple[Stage, Sink]:
    """The stage and sink behind a reference: fetched once per process, not once per shard; a stage may be large."""
    give_back()
    found: tuple[Stage, Sink] = ray.get(job)
    return found


def _pickled_bytes(value: Any) -> int:
    """The size of a value in the object store; arrays are not copied to find out."""
    buffers: list[Any] = []
    inside = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(inside) + sum(int(buffer.raw().nbytes) for buffer in buffers)


def place(device: str, actor: str | None = None) -> Place:
    context = ray.get_runtime_context()
    if device == "gpu":
        ids = ",".join(context.get_accelerator_ids()["GPU"])
        device = f"gpu {ids} ({context.get_node_labels().get(GPU_MODEL_LABEL, 'logical')})"
    name = actor if actor is not None else str(context.get_actor_id())
    return dataclasses.replace(Place.here(name, device), node=context.get_node_id())


def of_ray(error: RayError) -> Failure:
    """What Ray says went wrong, in one line; the rest is its trace."""
    text = str(error).strip()
    nobodys = NODE_LOST if isinstance(error, ObjectLostError | NodeDiedError) else ""
    return Failure(f"{type(error).__name__}: {text.splitlines()[0] if text else ''}", text, nobodys=nobodys)


@dataclass(eq=False)
class Seat:
    """The driver's view of one actor: its handle, the shards it was given, where it is once it is ready."""

    actor: Any
    ready: Any
    failed_starts: int = 0  # of the actors that had this seat before, in a row
    node: str | None = None
    given: int = 0  # shards, over all stages
    calls: dict[Any, Given] = field(default_factory=dict)
    made: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Given:
    """A shard that is with an actor, and the bytes of its payload, None where the actor loads it itself."""

    shard: Shard
    payload_bytes: int | None


class Pool:
    """Actors of one kind, kept over stages; a dead one is replaced. Each holds `cpus` and, if it is for them, a GPU."""

    def __init__(self, device: str, cpus: int) -> None:
        self.device, self.cpus = device, cpus
        self.seats: list[Seat] = []

    def grow_to(self, count: int) -> None:
        while len(self.seats) < count:
            self.seats.append(self._new_seat())

    def ask_who_is_there(self) -> None:
        """An actor may have died while it was idle: nobody is given work before it answers."""
        for seat in self.seats:
            seat.calls.clear()
            if seat.node is not None:
                seat.node, seat.ready = None, seat.actor.ready.remote()

    def replace(self, seat: Seat, failed_starts: int = 0) -> None:
        if seat in self.seats:  # else it was replaced before the last of its calls came back
            self.seats[self.seats.index(seat)] = self._new_seat(failed_starts)

    def close(self) -> None:
        for seat in self.seats:
            with suppress(Exception):  # a Ray that is gone took the actor along; the error that matters is another
                ray.kill(seat.actor)
        self.seats = []

    def _new_seat(self, failed_starts: int = 0) -> Seat:
        grant = {"num_cpus": self.cpus, "num_gpus": int(self.device == "gpu"), "max_concurrency": MOST_PER_ACTOR + 1}
        remote: Any = ray.remote(Worker)  # Ray's own types do not know actors made this way
        actor = remote.options(max_restarts=0, **grant).remote(self.device)
        return Seat(actor, actor.ready.remote(), failed_starts)
