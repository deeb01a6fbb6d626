"""Actors and tasks on Ray, one line each over plain functions, and the pool that holds and replaces actors.

No result lives in an actor: publishing is all it does. Which shard goes where is decided in `ray_flow`.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Mapping, Sequence
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
ELSEWHERE_AFTER_SECONDS = 300.0  # a node of a cloud takes less to come up, if it comes
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
    is_unheard: bool = False  # it does not answer, and it is open whose fault that is
    given: int = 0  # shards, over all stages
    calls: dict[Any, Given] = field(default_factory=dict)
    choice: int = 0  # of the pool's selectors: where it asks for a node
    made: float = field(default_factory=time.monotonic)
    looked_at: int = 0  # `given` when somebody last looked whether it is idle
    idle_since: float = field(default_factory=time.monotonic)

    @property
    def is_pending(self) -> bool:
        """Whether it never had work nor, as far as is known, a node: an autoscaler may be starting one for it."""
        return self.node is None and not self.given


@dataclass(frozen=True)
class Given:
    """A shard that is with an actor, and the bytes of its payload, None where the actor loads it itself."""

    shard: Shard
    payload_bytes: int | None


class Pool:
    """Actors of one kind, kept over stages; a dead one is replaced. Each holds `cpus` and, if it is for them, a GPU.

    `accelerators` are the kinds of GPU that will do, by Ray's names; any if there are none. `elsewhere` are labels of
    nodes that an autoscaler can add for them, each to be asked for by name if the first choice does not come.
    """

    def __init__(
        self,
        device: str,
        cpus: int,
        accelerators: Sequence[str] = (),
        elsewhere: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.device, self.cpus, self.accelerators = device, cpus, accelerators
        any_of_them = {GPU_MODEL_LABEL: f"in({','.join(accelerators)})"} if accelerators else {}
        self._selectors = [any_of_them, *elsewhere]
        self.seats: list[Seat] = []

    def grow_to(self, count: int) -> None:
        while len(self.seats) < count:
            self.seats.append(self._new_seat())

    def shrink_to(self, count: int, idle_seconds: float) -> None:
        """End actors beyond `count` that have nothing to do, so that an autoscaler may end their nodes.

        Those that were idle for less than so many seconds stay: the next stage may want them. Those that wait for a
        node go at once, else one would be started for nothing. One that does not answer is kept: it would be found
        dead, and its shard blamed. With `math.inf` all are kept.
        """
        if math.isinf(idle_seconds):
            return
        now = time.monotonic()
        for seat in self.seats:
            if seat.calls or seat.is_unheard or seat.given != seat.looked_at:
                seat.looked_at, seat.idle_since = seat.given, now
        free = [seat for seat in self.seats if not (seat.calls or seat.is_unheard)]
        spare = [seat for seat in free if seat.is_pending or now - seat.idle_since >= idle_seconds]
        at_work = {seat.node for seat in self.seats if seat.calls}
        # Whole nodes first: one that keeps a single actor stays.
        spare.sort(key=lambda seat: (not seat.is_pending, seat.node in at_work, seat.node or ""))
        for seat in spare[: max(len(self.seats) - count, 0)]:
            self.seats.remove(seat)
            _end(seat)

    def ask_elsewhere(self, waiting: Sequence[Seat], room: int) -> None:
        """Let actors that wait for a node in vain ask for another kind of node; `room`: nodes that are up, and free.

        Ray's autoscaler asks a cloud for the same type of node again and again, though it has none left and others
        would do (measured with 2.60: it never turned to the next).
        """
        for seat in waiting:
            in_vain = time.monotonic() - seat.made >= ELSEWHERE_AFTER_SECONDS
            if seat.choice and room > 0:
                choice, room = 0, room - 1  # what it asked for before has come in the meantime
            elif in_vain and len(self._selectors) > 1:
                choice = (seat.choice + 1) % len(self._selectors)
            else:
                continue
            _end(seat)
            self.replace(seat, choice=choice)

    def ask_who_is_there(self) -> None:
        """An actor may have died while it was idle: nobody is given work before it answers."""
        for seat in self.seats:
            seat.calls.clear()
            seat.is_unheard = False
            if seat.node is not None:
                seat.node, seat.ready = None, seat.actor.ready.remote()

    def replace(self, seat: Seat, failed_starts: int = 0, choice: int = 0) -> None:
        if seat in self.seats:  # else it was replaced before the last of its calls came back
            self.seats[self.seats.index(seat)] = self._new_seat(failed_starts, choice)

    def close(self) -> None:
        for seat in self.seats:
            _end(seat)
        self.seats = []

    def _new_seat(self, failed_starts: int = 0, choice: int = 0) -> Seat:
        grant = {"num_cpus": self.cpus, "num_gpus": int(self.device == "gpu"), "max_concurrency": MOST_PER_ACTOR + 1}
        where = {"label_selector": self._selectors[choice]} if self._selectors[choice] else {}
        remote: Any = ray.remote(Worker)  # Ray's own types do not know actors made this way
        actor = remote.options(max_restarts=0, **grant, **where).remote(self.device)
        return Seat(actor, actor.ready.remote(), failed_starts, choice=choice)


def _end(seat: Seat) -> None:
    with suppress(Exception):  # a Ray that is gone took the actor along; the error that matters is another
        ray.kill(seat.actor)
