"""The executor on Ray: CPU load tasks ahead of a pool of device actors, or load fused into CPU actors.

Here Ray is joined or started and the pools are kept over stages. How a stage's shards move is in `ray_flow`, load tasks
are in `ray_loads`, actors in `ray_pool`.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray

from raybench.engine.patience import HOUR, Patience
from raybench.engine.progress import Observer
from raybench.engine.ray_flow import Flow
from raybench.engine.ray_loads import LoadsAhead, Machines
from raybench.engine.ray_nodes import RAYS_OWN_SECONDS, Head, Nodes, patient_with_head
from raybench.engine.ray_pool import Pool
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt, Sink, Stage
from raybench.errors import ConfigError

CPUS_PER_GPU_TO_HOLD = 8  # from here on a device actor holds a CPU of its own


class RayExecutor:
    """Runs stages on the Ray that is up. `cpus`: how many CPUs work, all if None; `gpus`: how many device actors.

    `patience_seconds`: for how long a stage may publish nothing; `head_seconds`: for how long the head may be silent.
    """

    def __init__(
        self,
        observer: Observer,
        cpus: int | None,
        gpus: int,
        insist_on_gpus: bool,
        owned: bool,
        patience_seconds: float = HOUR,
        head_seconds: float = RAYS_OWN_SECONDS,
    ) -> None:
        self.gpus = gpus
        self._observer, self._cpus, self._owned = observer, cpus, owned
        self._insist_on_gpus = insist_on_gpus
        self._cpu_pool = Pool("cpu", cpus=1)
        self._gpu_pool = Pool("gpu", cpus=0)
        self._patience_seconds = patience_seconds
        self._head = Head(ray.get_runtime_context().gcs_address, head_seconds)
        self._nodes = Nodes(self._head)

    def map(self, stage: Stage, shards: Sequence[Shard], sink: Sink) -> Iterator[Receipt]:
        """A receipt for each shard as it is published, in any order."""
        if not shards:
            return
        job = ray.put((stage, sink))
        if stage.on_device and self.gpus:
            yield from self._on_devices(stage, shards, job).receipts()
        else:
            yield from self._on_cpus(stage, shards, job).receipts()

    def _on_devices(self, stage: Stage, shards: Sequence[Shard], job: Any) -> Flow:
        # CPU actors hold the CPUs that load tasks need: a pool that keeps them would stall its own loading.
        self._cpu_pool.close()
        pool, there = self._gpu_pool, Machines.there()
        if not pool.seats:
            # Where CPUs are few, loading is what devices wait for, and they leave it every CPU.
            pool.cpus = int(there.cpus_per_gpu >= CPUS_PER_GPU_TO_HOLD)
        pool.grow_to(min(len(shards), self.gpus))
        if self._insist_on_gpus:
            self._await(pool, stage)
        loads = LoadsAhead(job, len(pool.seats), self._cpus, own=pool.cpus * len(pool.seats), there=there)
        return self._flow(stage, shards, job, pool, loads, lambda there, left: loads.look(there))

    def _on_cpus(self, stage: Stage, shards: Sequence[Shard], job: Any) -> Flow:
        pool = self._cpu_pool

        def grow(there: Machines, left: int) -> None:
            held = self._gpu_pool.cpus * len(self._gpu_pool.seats)
            wanted = self._cpus or there.cpus
            pool.grow_to(min(left, wanted if wanted > there.cpus else max(min(wanted, there.cpus - held), 1)))

        grow(Machines.there(), len(shards))
        return self._flow(stage, shards, job, pool, None, grow)

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

    def _await(self, pool: Pool, stage: Stage) -> None:
        waiting, patience = [seat.ready for seat in pool.seats], self._patience(stage)
        while waiting:
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=1.0)
            if waiting:
                self._head.is_there()
                patience.wait_for(f"GPUs: {len(pool.seats) - len(waiting)} of {len(pool.seats)} are up")


def connect(
    address: str,
    *,
    cpus: int | None,
    gpus: int | None,
    device: str,
    observer: Observer,
    patience_seconds: float = HOUR,
) -> RayExecutor:
    """An executor on the Ray at `address`, on a new one on this machine (`local`), or on the one already joined."""
    owned = not ray.is_initialized()
    head_seconds = patient_with_head(owned)
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
    except BaseException:
        if owned:
            ray.shutdown()
        raise
    return RayExecutor(
        observer,
        cpus,
        count,
        insist_on_gpus=gpus is not None,
        owned=owned,
        patience_seconds=patience_seconds,
        head_seconds=head_seconds,
    )


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
