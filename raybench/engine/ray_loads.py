"""Load tasks on Ray ahead of device actors: how many run, and what they left in the object store.

CPUs that join the cluster are used. A payload stays in the store of the node that loaded it until a device wants it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayError

from raybench.engine.attempts import Failure
from raybench.engine.backlog import Backlog
from raybench.engine.ray_pool import GPU_MODEL_LABEL, Stocked, load_ahead, of_ray
from raybench.engine.shards import Shard

STORE_SHARE = 0.4  # of the object stores, for what is loaded ahead
NODE_GROUP_LABEL = "ray.io/node-group"  # of nodes, the head among them, that an autoscaler looks after
QUEUED_SHARE = 8  # one load waits in Ray for every so many that run, so that no CPU waits for the driver


@dataclass(frozen=True)
class Machines:
    """What the nodes that are alive have, as far as pools and loading are concerned."""

    cpus: int
    room_bytes: float
    cpus_per_gpu: float  # of the node that has the fewest; 0 if there is no GPU
    gpus: Mapping[str, int]  # by kind; "" is one that Ray does not know
    groups: frozenset[str]  # of the autoscaler that looks after them; none if there is no autoscaler

    @classmethod
    def there(cls, is_lost: Callable[[str], bool] = lambda node: False) -> Machines:
        """What Ray lists, without nodes of which it is known that they are lost: Ray lists those for a while."""
        alive = [node for node in ray.nodes() if node["Alive"] and not is_lost(node["NodeID"])]
        nodes = [node["Resources"] for node in alive]
        gpus: Counter[str] = Counter()
        for node in alive:
            gpus[node["Labels"].get(GPU_MODEL_LABEL, "")] += int(node["Resources"].get("GPU", 0))
        groups = frozenset(node["Labels"][NODE_GROUP_LABEL] for node in alive if NODE_GROUP_LABEL in node["Labels"])
        loading = [(node["CPU"], node.get("object_store_memory", 0.0)) for node in nodes if node.get("CPU", 0) >= 1]
        cpus = sum(count for count, _ in loading)
        # Loads are spread over CPUs: the node with the least store per CPU is full first.
        room = STORE_SHARE * cpus * min((store / count for count, store in loading), default=0.0)
        per_gpu = min((node.get("CPU", 0.0) / node["GPU"] for node in nodes if node.get("GPU", 0)), default=0.0)
        return cls(int(cpus), room, per_gpu, +gpus, groups)

    def gpus_of(self, kinds: Collection[str]) -> int:
        """How many GPUs of these kinds there are; of any if there are none."""
        return sum(count for kind, count in self.gpus.items() if not kinds or kind in kinds)


@dataclass(frozen=True)
class Payload:
    """A loaded shard, and where its payload waits."""

    shard: Shard
    reference: Any
    stocked: Stocked


@dataclass(frozen=True)
class FailedLoad:
    """A shard that was not loaded: `failure` if it is known why, else `error`, what Ray said of its task."""

    shard: Shard
    began: float
    failure: Failure | None = None
    error: RayError | None = None


class LoadsAhead:
    """The load tasks of one stage. `asked` is `--cpus`; `own` device actors hold a CPU, and load themselves on it."""

    def __init__(self, job: Any, devices: int, asked: int | None, own: int, there: Machines) -> None:
        self.loaded: deque[Payload] = deque()
        self._job, self._asked, self._own = job, asked, own
        self._under_way: dict[Any, tuple[Shard, Any, float]] = {}  # with the payload, and since when
        self.backlog = Backlog(devices, 1, 0.0)
        self.look(there)
        # Spread, since a node whose store is full would stop all others. Not tried again by Ray, which would count a
        # lost node as it does a load that ends its process.
        options = {"num_cpus": 1, "num_returns": 2, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._load: Any = ray.remote(load_ahead).options(**options)

    def serve(self, devices: int, own: int) -> None:
        """So many device actors are up now, of which so many hold a CPU."""
        self.backlog.devices, self._own = max(devices, 1), own

    def look(self, there: Machines) -> None:
        """Fit the number of loads to what the cluster has now."""
        wanted = self._asked or there.cpus
        self.device_loads = self._own if wanted >= there.cpus else 0
        self._tasks = max(wanted - self.device_loads, 1)
        self.backlog.room_bytes = there.room_bytes

    def has_room(self, waiting: int) -> bool:
        """Whether a load may start, of `waiting` shards. The last ones queue for no CPU: a device may be free first."""
        queued = -(-self._tasks // QUEUED_SHARE) if self._asked is None and waiting > self._tasks else 0
        self.backlog.loaders = self._tasks + queued
        return self.backlog.has_room()

    def __contains__(self, reference: Any) -> bool:
        return reference in self._under_way

    def __len__(self) -> int:
        """Shards that are loading or loaded, and with no actor yet."""
        return len(self._under_way) + len(self.loaded)

    @property
    def references(self) -> Iterable[Any]:
        return self._under_way

    def start(self, shard: Shard) -> None:
        self.backlog.started()
        status, payload = self._load.remote([self._job], shard)
        self._under_way[status] = (shard, payload, time.monotonic())

    def hear(self, reference: Any) -> FailedLoad | None:
        """What came of a load: nothing to do, or a shard that failed."""
        shard, payload, began = self._under_way.pop(reference)
        try:
            report: Stocked | Failure = ray.get(reference)
        except RayError as error:
            report = of_ray(error)
            if not report.nobodys and not isinstance(error, OutOfMemoryError):
                self.backlog.failed()
                return FailedLoad(shard, began, error=error)
        if isinstance(report, Failure):
            self.backlog.failed()
            return FailedLoad(shard, began, failure=report)
        self.backlog.loaded(report.size_bytes)
        self.loaded.append(Payload(shard, payload, report))
        return None

    def drop_lost(self, is_lost: Callable[[str], bool]) -> list[Shard]:
        """Forget payloads that went with their nodes; their shards are to be loaded again."""
        lost = [payload for payload in self.loaded if is_lost(payload.stocked.node)]
        for payload in lost:
            self.loaded.remove(payload)
            self.backlog.gone(payload.stocked.size_bytes)
        return [payload.shard for payload in lost]
