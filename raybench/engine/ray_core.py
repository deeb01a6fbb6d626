"""The executor on Ray: CPU load tasks ahead of a pool of device actors, or load fused into CPU actors.

The driver sees receipts, never arrays. What is in flight is bounded; a dead actor's shards go back into the
queue, one by one, so that the one to blame is found. Actors and tasks themselves are in `ray_pool`.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from raybench.engine.attempts import Attempts, Failure
from raybench.engine.progress import Observer
from raybench.engine.ray_pool import Pool, Seat, load_ahead
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt, Sink, Stage
from raybench.errors import ConfigError, ShardFailed

QUEUE_PER_ACTOR = 2  # one shard at work, one waiting behind it
WINDOW_PER_DEVICE = 3  # shards between the start of loading and publishing, for each device actor
MOST_FAILED_STARTS = 5  # in a row: actors of one seat that die before they are ready
SAY_EVERY_SECONDS = 15.0


class RayExecutor:
    """Runs stages on the Ray that is up. `gpus`: how many device actors; 0 runs everything on CPUs."""

    def __init__(self, observer: Observer, cpus: int | None, gpus: int, insist_on_gpus: bool, owned: bool) -> None:
        self.gpus = gpus
        self._observer, self._cpus, self._owned = observer, cpus, owned
        self._insist_on_gpus = insist_on_gpus
        self._pools = {"cpu": Pool("cpu"), "gpu": Pool("gpu")}

    def map(self, stage: Stage, shards: Sequence[Shard], sink: Sink) -> Iterator[Receipt]:
        """A receipt for each shard as it is published, in any order."""
        if not shards:
            return
        ahead = stage.on_device and self.gpus > 0
        if ahead:
            # CPU actors hold the CPUs that load tasks need: a pool that keeps them would stall its own loading.
            self._pools["cpu"].close()
        pool = self._pools["gpu" if ahead else "cpu"]
        pool.grow_to(min(len(shards), self.gpus if ahead else self._cpu_seats()))
        if ahead and self._insist_on_gpus:
            self._await(pool)
        yield from Flow(stage, shards, sink, pool, ahead, self._observer).receipts()

    def cluster(self) -> dict[str, Any]:
        """What the manifest says of where the run ran."""
        total = ray.cluster_resources()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        return {
            "executor": "ray",
            "ray": ray.__version__,
            "nodes": len(nodes),
            "cpus": total.get("CPU", 0),
            "gpus": total.get("GPU", 0),
            "device_actors": self.gpus,
        }

    def close(self) -> None:
        """End the actors, and Ray itself if this executor started it."""
        for pool in self._pools.values():
            pool.close()
        if self._owned:
            ray.shutdown()

    def _cpu_seats(self) -> int:
        return self._cpus or max(1, _there_is("CPU"))

    def _await(self, pool: Pool) -> None:
        waiting = [seat.ready for seat in pool.seats]
        while waiting:
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=SAY_EVERY_SECONDS)
            if waiting:
                up = len(pool.seats) - len(waiting)
                self._observer.said(f"waiting for GPUs: {up} of {len(pool.seats)} are up")


class Flow:
    """One stage on its way through a pool: waiting → (loading → loaded →) an actor's queue → published."""

    def __init__(
        self, stage: Stage, shards: Sequence[Shard], sink: Sink, pool: Pool, ahead: bool, observer: Observer
    ) -> None:
        self._stage, self._pool, self._ahead, self._observer = stage, pool, ahead, observer
        self._job = ray.put((stage, sink))
        self._attempts = Attempts(stage)
        self._waiting = deque(shards)
        self._left = len(shards)
        self._loading: dict[Any, tuple[Shard, Any]] = {}
        self._loaded: deque[tuple[Shard, Any]] = deque()
        self._suspects: set[int] = set()  # shards in whose presence a worker died
        self._load: Any = ray.remote(load_ahead).options(num_cpus=1, num_returns=2, max_retries=3)
        pool.ask_who_is_there()

    def receipts(self) -> Iterator[Receipt]:
        """Keep everything moving until every shard is published."""
        heard = time.monotonic()
        while self._left:
            self._start_loading()
            self._hand_out()
            done = self._wait()
            if not done and time.monotonic() - heard > SAY_EVERY_SECONDS:
                heard = time.monotonic()
                self._say_stalled()
            for ref in done:
                receipt = self._hear(ref)
                if receipt is not None:
                    self._left -= 1
                    heard = time.monotonic()
                    yield receipt
            self._observer.in_flight(self._stage.name, self._in_flight(), len(self._pool.seats))

    def _in_flight(self) -> int:
        queued = sum(len(seat.queue) for seat in self._pool.seats)
        return len(self._loading) + len(self._loaded) + queued

    def _start_loading(self) -> None:
        window = WINDOW_PER_DEVICE * max(sum(seat.node is not None for seat in self._pool.seats), 1)
        while self._ahead and self._waiting and self._in_flight() < window:
            shard = self._waiting.popleft()
            status, payload = self._load.remote(self._job, shard)
            self._loading[status] = (shard, payload)

    def _hand_out(self) -> None:
        source: deque[Any] = self._loaded if self._ahead else self._waiting
        while source:
            shard, loaded = source[0] if self._ahead else (source[0], None)
            seats = [seat for seat in self._pool.seats if self._may_take(seat, shard)]
            if not seats:
                return
            source.popleft()
            # Among equals the one that was given least: shards that are done at once else all go to the first seat.
            seat = min(seats, key=lambda candidate: (len(candidate.queue), candidate.given))
            seat.given += 1
            seat.queue.append((seat.actor.work.remote([self._job], shard, loaded), shard))

    def _may_take(self, seat: Seat, shard: Shard) -> bool:
        if seat.node is None or len(seat.queue) >= QUEUE_PER_ACTOR:
            return False
        together = [*(queued for _, queued in seat.queue), shard]
        return len(together) == 1 or not any(one.index in self._suspects for one in together)

    def _wait(self) -> list[Any]:
        refs = list(self._loading)
        for seat in self._pool.seats:
            refs += [call for call, _ in seat.queue] if seat.node else [seat.ready]
        first, _ = ray.wait(refs, num_returns=1, timeout=1.0, fetch_local=False)
        if not first:
            return []
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
        return list(done)

    def _hear(self, ref: Any) -> Receipt | None:
        if ref in self._loading:
            self._hear_load(ref)
            return None
        for seat in self._pool.seats:
            if seat.node is None and ref == seat.ready:
                self._hear_ready(seat)
                return None
            for call, shard in seat.queue:
                if ref == call:
                    return self._hear_work(seat, call, shard)
        return None  # of an actor that died while this list was walked; its shards are waiting again

    def _hear_load(self, ref: Any) -> None:
        shard, payload = self._loading.pop(ref)
        try:
            failure = ray.get(ref)
        except RayError as error:
            failure = _of_ray(error)
        if failure is None:
            self._loaded.append((shard, payload))
        else:
            self._again(shard, failure)

    def _hear_ready(self, seat: Seat) -> None:
        try:
            seat.node, _ = ray.get(seat.ready)
            seat.failed_starts = 0
        except RayError as error:
            if seat.failed_starts + 1 >= MOST_FAILED_STARTS:
                raise ShardFailed(
                    f"stage {self._stage.name}: actors die as they start; the last: {_of_ray(error).cause}"
                ) from error
            self._pool.replace(seat, seat.failed_starts + 1)

    def _hear_work(self, seat: Seat, call: Any, shard: Shard) -> Receipt | None:
        try:
            outcome = ray.get(call)
        except RayActorError as error:
            self._bury(seat, _of_ray(error).cause)
            return None
        except RayError as error:
            outcome = _of_ray(error)
        seat.queue.remove((call, shard))
        if isinstance(outcome, Failure):
            self._again(shard, outcome)
            return None
        receipt: Receipt = outcome
        return dataclasses.replace(receipt, attempt=self._attempts.of(shard))

    def _bury(self, seat: Seat, cause: str) -> None:
        """Replace a dead actor; its shards wait again, and those that were together do so one by one from now on.

        Which of them was at work can't be told: the answer to the one before may have died with the process. So each
        counts a failure, and alone it can't be blamed for another's again. A lost node is nobody's fault.
        """
        self._observer.retried(self._stage.name, "actor_died")
        self._pool.replace(seat)
        shards = [shard for _, shard in seat.queue]
        self._waiting.extendleft(reversed(shards))
        if seat.node in {node["NodeID"] for node in ray.nodes() if node["Alive"]}:
            self._suspects.update(shard.index for shard in shards)
            for shard in shards:
                self._attempts.note(shard, Failure(f"its worker process died ({cause})"))

    def _again(self, shard: Shard, failure: Failure) -> None:
        self._attempts.note(shard, failure)
        self._observer.retried(self._stage.name, "error")
        self._waiting.append(shard)

    def _say_stalled(self) -> None:
        seats = self._pool.seats
        up = sum(seat.node is not None for seat in seats)
        if up < len(seats):
            self._observer.said(f"{self._stage.name}: {up} of {len(seats)} {self._pool.device} actors are up")


def _of_ray(error: RayError) -> Failure:
    """What Ray says went wrong, in one line; the rest is its trace."""
    text = str(error).strip()
    return Failure(f"{type(error).__name__}: {text.splitlines()[0] if text else ''}", text)


def connect(address: str, *, cpus: int | None, gpus: int | None, device: str, observer: Observer) -> RayExecutor:
    """An executor on the Ray at `address`, on a new one on this machine (`local`), or on the one already joined."""
    owned = not ray.is_initialized()
    if owned:
        # Workers run at niceness 15 by default: a local run would lose to any other process.
        os.environ.setdefault("RAY_worker_niceness", "0")
        if address == "local":
            # Nothing is scaled there, but the monitor of the first autoscaler takes a second to end; this one none.
            os.environ.setdefault("RAY_enable_autoscaler_v2", "1")
        _probe(address)
        local: dict[str, Any] = {"num_cpus": cpus, "include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **local)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigError(f"--ray {address}: no Ray there ({error}); give an address, local or off") from error
    try:
        count = _gpus_to_use(gpus, device, fixed=owned and address == "local")
    except ConfigError:
        if owned:
            ray.shutdown()
        raise
    return RayExecutor(observer, cpus, count, insist_on_gpus=gpus is not None, owned=owned)


def _probe(address: str) -> None:
    """Say at once that nobody listens at HOST:PORT, where Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ConfigError(f"--ray {address}: nobody listens there ({error}); give an address, local or off") from None


def _gpus_to_use(asked: int | None, device: str, fixed: bool) -> int:
    if device == "cpu":
        return 0
    there = _there_is("GPU")
    if asked and fixed and asked > there:
        raise ConfigError(f"--gpus {asked}: this machine has {there}; give at most that, or --ray ADDRESS")
    if device == "gpu" and not there and not asked:
        raise ConfigError("--device gpu: this Ray has no GPU; give --device cpu, or --ray ADDRESS of one that has")
    return there if asked is None else asked


def _there_is(resource: str) -> int:
    """How much of a resource the cluster has now. What its autoscaler may add Ray tells nobody: it is asked for by
    `--gpus` and `--cpus` (ray-project/ray issue 49501 wishes for a public call)."""
    return int(ray.cluster_resources().get(resource, 0))
