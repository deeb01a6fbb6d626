"""The executor on Ray: CPU load tasks ahead of a pool of device actors, or load fused into CPU actors.

Here Ray is joined or started and the pools are kept over stages. How a stage's shards move is in `ray_flow`, load tasks
are in `ray_loads`, actors in `ray_pool`.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ray

from raybench.engine.demand import Demand
from raybench.engine.patience import HOUR, SAY_EVERY_SECONDS, Patience
from raybench.engine.progress import Observer
from raybench.engine.ray_devices import devices_to_use, gpu_nodes_to_add, kinds_there
from raybench.engine.ray_flow import Flow
from raybench.engine.ray_loads import LoadsAhead, Machines
from raybench.engine.ray_nodes import RAYS_OWN_SECONDS, Head, Nodes, patient_with_head
from raybench.engine.ray_pool import Pool, Seat
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt, Sink, Stage
from raybench.errors import ConfigError

CPUS_PER_GPU_TO_HOLD = 8  # from here on a device actor holds a CPU of its own
IDLE_SECONDS = 30.0  # longer than most gaps between stages; a node that nobody uses costs money for as long


class RayExecutor:
    """Runs stages on the Ray that is up.

    `cpus`: how many CPUs work, all if None. `gpus`: how many device actors to begin with; `insist_on_gpus` for just so
    many. Actors that are idle for `idle_seconds` are ended, so that an autoscaler may end their nodes.
    `patience_seconds`: for how long a stage may publish nothing; `head_seconds`: for how long the head may be silent.
    """

    def __init__(
        self,
        observer: Observer,
        cpus: int | None,
        gpus: int,
        insist_on_gpus: bool,
        owned: bool,
        *,
        accelerators: Sequence[str] = (),
        elsewhere: Sequence[Mapping[str, str]] = (),
        idle_seconds: float = IDLE_SECONDS,
        patience_seconds: float = HOUR,
        head_seconds: float = RAYS_OWN_SECONDS,
    ) -> None:
        self.gpus = gpus
        self._observer, self._cpus, self._owned = observer, cpus, owned
        self._insist_on_gpus, self._idle_seconds = insist_on_gpus, idle_seconds
        self._patience_seconds = patience_seconds
        self._cpu_pool = Pool("cpu", 1)
        self._gpu_pool = Pool("gpu", 0, accelerators, elsewhere)
        self._head = Head(ray.get_runtime_context().gcs_address, head_seconds)
        self._nodes = Nodes(self._head)

    def map(self, stage: Stage, shards: Sequence[Shard], sink: Sink) -> Iterator[Receipt]:
        """A receipt for each shard as it is published, in any order."""
        if not shards:
            return
        self._head.wait_for()
        job = ray.put((stage, sink))
        if stage.on_device and self.gpus:
            yield from self._on_devices(stage, shards, job).receipts()
        else:
            yield from self._on_cpus(stage, shards, job).receipts()

    def _on_devices(self, stage: Stage, shards: Sequence[Shard], job: Any) -> Flow:
        # CPU actors hold the CPUs that load tasks need: a pool that keeps them would stall its own loading.
        self._cpu_pool.close()
        pool, there = self._gpu_pool, self._there()
        if not pool.seats:
            # Where CPUs are few, loading is what devices wait for, and they leave it every CPU.
            pool.cpus = int(there.cpus_per_gpu >= CPUS_PER_GPU_TO_HOLD)
        demand = Demand(len(shards), self.gpus if self._insist_on_gpus else None)

        def fit(there: Machines, left: int) -> None:
            self._fit(pool, demand.wanted(there.gpus_of(pool.accelerators), left, grows=bool(there.groups)))
            waiting = [seat for seat in pool.seats if seat.is_pending]
            # Nodes beyond those that were asked for need not come at any price.
            if self._insist_on_gpus or len(waiting) == len(pool.seats):
                self._ask_elsewhere(pool, waiting, there)

        def look(there: Machines, left: int) -> None:
            fit(there, left)
            up = sum(seat.node is not None for seat in pool.seats)
            loads.serve(up, own=pool.cpus * up)
            loads.look(there)

        fit(there, len(shards))
        if self._insist_on_gpus:
            self._await(pool, stage)
        loads = LoadsAhead(job, len(pool.seats), self._cpus, own=pool.cpus * len(pool.seats), there=there)
        return self._flow(stage, shards, job, pool, loads, look)

    def _on_cpus(self, stage: Stage, shards: Sequence[Shard], job: Any) -> Flow:
        pool, demand = self._cpu_pool, Demand(len(shards), self._cpus)

        def look(there: Machines, left: int) -> None:
            self._gpu_pool.shrink_to(0, self._idle_seconds)
            held = self._gpu_pool.cpus * len(self._gpu_pool.seats)
            wanted = demand.wanted(there.cpus, left, grows=bool(there.groups))
            self._fit(pool, wanted if wanted > there.cpus else min(wanted, max(there.cpus - held, 1)))

        look(self._there(), len(shards))
        return self._flow(stage, shards, job, pool, None, look)

    def _fit(self, pool: Pool, wanted: int) -> None:
        """So many actors, as nodes come and as shards get fewer."""
        pool.grow_to(wanted)
        pool.shrink_to(wanted, self._idle_seconds)

    def _flow(
        self,
        stage: Stage,
        shards: Sequence[Shard],
        job: Any,
        pool: Pool,
        loads: LoadsAhead | None,
        look: Callable[[Machines, int], None],
    ) -> Flow:
        patience = self._patience(stage)
        return Flow(stage, shards, job, pool, loads, look, self._observer, self._nodes, self._head, patience)

    def _there(self) -> Machines:
        return Machines.there(self._nodes.is_lost)

    def _patience(self, stage: Stage) -> Patience:
        return Patience(stage.name, self._patience_seconds, self._observer)

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
        self._nodes.close()
        self._cpu_pool.close()
        self._gpu_pool.close()
        if self._owned:
            ray.shutdown()

    def _ask_elsewhere(self, pool: Pool, waiting: Sequence[Seat], there: Machines) -> None:
        pool.ask_elsewhere(waiting, there.gpus_of(pool.accelerators) - (len(pool.seats) - len(waiting)))

    def _await(self, pool: Pool, stage: Stage) -> None:
        """Wait until all actors are up, and say how many are."""
        patience, there, looked = self._patience(stage), self._there(), time.monotonic()
        while True:
            calls = [seat.ready for seat in pool.seats]
            _, missing = ray.wait(calls, num_returns=len(calls), timeout=1.0)
            if not missing:
                return
            is_late = time.monotonic() - looked > SAY_EVERY_SECONDS
            if self._head.is_there() and is_late and self._head.may_be_asked():
                there, looked = self._there(), time.monotonic()
                self._ask_elsewhere(pool, [seat for seat in pool.seats if seat.ready in missing], there)
            words = f"GPUs: {len(calls) - len(missing)} of {len(calls)} are up"
            if pool.accelerators:
                words += f"; asked for {' or '.join(pool.accelerators)}, the cluster has {kinds_there(there)}"
            patience.wait_for(words)


def connect(
    address: str,
    *,
    cpus: int | None,
    gpus: int | None,
    device: str,
    observer: Observer,
    accelerators: Sequence[str] = (),
    patience_seconds: float = HOUR,
) -> RayExecutor:
    """An executor on the Ray at `address`, on a new one on this machine (`local`), or on the one already joined."""
    owned = not ray.is_initialized()
    with patient_with_head(owned) as head_seconds:
        if owned:
            _start(address, cpus)
    own_machine = owned and address == "local"  # nothing joins or leaves it
    try:
        there = Machines.there()
        count = devices_to_use(gpus, device, accelerators, there, own_machine, observer)
        return RayExecutor(
            observer,
            cpus,
            count,
            insist_on_gpus=gpus is not None,
            owned=owned,
            accelerators=accelerators,
            elsewhere=[] if own_machine else gpu_nodes_to_add(accelerators, there),
            idle_seconds=math.inf if own_machine else IDLE_SECONDS,
            patience_seconds=patience_seconds,
            head_seconds=head_seconds,
        )
    except BaseException:
        if owned:
            ray.shutdown()
        raise


def _start(address: str, cpus: int | None) -> None:
    """Join the Ray at an address, or start one on this machine."""
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


def _probe(address: str) -> None:
    """Say at once that nobody listens at HOST:PORT, where Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ConfigError(f"--ray {address}: nobody listens there ({error}); give an address, local or off") from None
