"""One stage on its way through a pool of actors: which shard goes where, and what a dead actor means.

Waiting → (loading → loaded →) with an actor → published. What is in flight is bounded; the driver sees receipts, never
arrays, and what it keeps does not grow with the number of shards.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from raybench.engine.attempts import Attempts, Failure
from raybench.engine.progress import Observer
from raybench.engine.ray_loads import LoadsAhead, Machines
from raybench.engine.ray_pool import MOST_PER_ACTOR, Given, Pool, Seat, of_ray
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt, Stage
from raybench.engine.stations import PUBLISHED_AT_ONCE
from raybench.errors import ShardFailed

FIRST_DEPTH = 2  # shards with each actor until receipts tell how long each part takes
MOST_FAILED_STARTS = 5  # in a row: actors of one seat that die before they are ready
SAY_EVERY_SECONDS = 15.0
LOOK_EVERY_SECONDS = 10.0  # at what the cluster has


class Waiting:
    """Shards that nobody works on: a dead actor's first, then the rest in order, last those that failed."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._first: deque[Shard] = deque()
        self._rest = iter(shards)
        self._last: deque[Shard] = deque()
        self._count = len(shards)

    def __len__(self) -> int:
        return self._count

    @property
    def next(self) -> Shard:
        """The shard that `take` would give; there must be one."""
        if not self._first:
            self._first.extend(itertools.islice(self._rest, 1))
        if not self._first:
            self._first.append(self._last.popleft())
        return self._first[0]

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


class Depth:
    """How many shards an actor has at once: one at each station that takes its time, and one on its way."""

    def __init__(self, fused: bool) -> None:
        self.shards = FIRST_DEPTH
        self._fused = fused
        self._load = self._compute = self._publish = 0.0  # seconds in all

    def heard(self, receipt: Receipt) -> None:
        self._load += receipt.load_seconds if self._fused else 0.0
        self._compute += receipt.compute_seconds
        self._publish += receipt.publish_seconds
        slowest = max(self._load, self._compute, self._publish / PUBLISHED_AT_ONCE, 1e-9)
        at_stations = round((self._load + self._compute + self._publish) / slowest)
        self.shards = min(1 + at_stations, MOST_PER_ACTOR - 1)


class Flow:
    """Moves one stage's shards. `loads` run ahead of the pool, or (None) its actors load themselves.

    `look` is called now and then with what the cluster has.
    """

    def __init__(
        self,
        stage: Stage,
        shards: Sequence[Shard],
        job: Any,
        pool: Pool,
        loads: LoadsAhead | None,
        look: Callable[[Machines, int], None],
        observer: Observer,
    ) -> None:
        self._stage, self._job, self._pool, self._loads, self._observer = stage, job, pool, loads, observer
        self._look = look
        self._attempts = Attempts(stage)
        self._waiting = Waiting(shards)
        self._left = len(shards)
        self._depth = Depth(fused=loads is None)
        self._at_work: dict[Any, Seat] = {}
        self._suspects: set[int] = set()  # shards in whose presence a worker died
        pool.ask_who_is_there()

    def receipts(self) -> Iterator[Receipt]:
        """Keep everything moving until every shard is published."""
        heard = looked = time.monotonic()
        while self._left:
            self._start_loading()
            self._hand_out()
            done = self._wait()
            now = time.monotonic()
            if not done and now - heard > SAY_EVERY_SECONDS:
                heard = now
                self._say_stalled()
            if now - looked > LOOK_EVERY_SECONDS:
                looked = now
                self._look(Machines.there(), self._left)
            for reference in done:
                receipt = self._hear(reference)
                if receipt is not None:
                    self._left -= 1
                    heard = now
                    yield receipt
            self._observer.in_flight(self._stage.name, self._in_flight(), len(self._pool.seats))

    def _in_flight(self) -> int:
        ahead = 0 if self._loads is None else len(self._loads)
        return ahead + len(self._at_work)

    def _start_loading(self) -> None:
        if self._loads is not None:
            while self._waiting and self._loads.has_room(len(self._waiting)):
                self._loads.start(self._waiting.take())

    def _hand_out(self) -> None:
        if self._loads is None:
            while self._waiting and (seat := self._seat_for(self._waiting.next)):
                self._give(seat, Given(self._waiting.take(), None))
            return
        loaded = self._loads.loaded
        while loaded and (seat := self._seat_for(loaded[0].shard, loaded[0].stocked.node)):
            payload = loaded.popleft()
            self._give(seat, Given(payload.shard, payload.stocked.size_bytes), payload.reference)
        # An actor that has nothing to do loads the next shard itself, on the CPU that it holds.
        idle = (seat for seat in self._pool.seats if seat.node is not None and not seat.calls)
        for seat in itertools.islice(idle, self._loads.device_loads):
            if self._waiting:
                self._give(seat, Given(self._waiting.take(), None))

    def _give(self, seat: Seat, given: Given, payload: Any = None) -> None:
        call = seat.actor.work.remote([self._job], given.shard, payload)
        seat.given += 1
        seat.calls[call] = given
        self._at_work[call] = seat

    def _seat_for(self, shard: Shard, node: str | None = None) -> Seat | None:
        """The actor with the fewest shards, on the payload's node if there is one.

        Among equals the one that was given least: shards that are done at once else all go to the first seat.
        """
        free = [seat for seat in self._pool.seats if self._may_take(seat, shard)]
        return min(free, key=lambda seat: (len(seat.calls), seat.node != node, seat.given), default=None)

    def _may_take(self, seat: Seat, shard: Shard) -> bool:
        if seat.node is None:
            return False
        loads_itself = self._loads is not None and any(given.payload_bytes is None for given in seat.calls.values())
        if len(seat.calls) >= self._depth.shards + loads_itself:
            return False
        if not self._suspects or not seat.calls:
            return True
        together = [*(given.shard for given in seat.calls.values()), shard]
        return not any(one.index in self._suspects for one in together)

    def _wait(self) -> list[Any]:
        ahead: Iterable[Any] = () if self._loads is None else self._loads.references
        starting = (seat.ready for seat in self._pool.seats if seat.node is None)
        references = [*ahead, *self._at_work, *starting]
        first, _ = ray.wait(references, num_returns=1, timeout=1.0, fetch_local=False)
        if not first:
            return []
        done, _ = ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)
        return list(done)

    def _hear(self, reference: Any) -> Receipt | None:
        if reference in self._at_work:
            return self._hear_work(reference)
        if self._loads is not None and reference in self._loads:
            failed = self._loads.hear(reference)
            if failed is not None:
                self._again(*failed)
            return None
        for seat in self._pool.seats:
            if seat.node is None and reference == seat.ready:
                self._hear_ready(seat)
                break
        return None  # or of an actor that died while this list was walked; its shards are waiting again

    def _hear_ready(self, seat: Seat) -> None:
        try:
            seat.node, _ = ray.get(seat.ready)
            seat.failed_starts = 0
        except RayError as error:
            if seat.failed_starts + 1 >= MOST_FAILED_STARTS:
                raise ShardFailed(
                    f"stage {self._stage.name}: actors die as they start; the last: {of_ray(error).cause}"
                ) from error
            self._pool.replace(seat, seat.failed_starts + 1)

    def _hear_work(self, call: Any) -> Receipt | None:
        seat = self._at_work[call]
        try:
            outcome = ray.get(call)
        except RayActorError as error:
            self._bury(seat, of_ray(error).cause)
            return None
        except RayError as error:
            outcome = of_ray(error)
        shard = self._taken_back(seat, call)
        if isinstance(outcome, Failure):
            self._again(shard, outcome)
            return None
        receipt: Receipt = outcome
        self._depth.heard(receipt)
        if self._loads is not None:
            self._loads.backlog.took(receipt.load_seconds, receipt.compute_seconds)
        return dataclasses.replace(receipt, attempt=self._attempts.of(shard))

    def _taken_back(self, seat: Seat, call: Any) -> Shard:
        """The shard is with this actor no longer, nor is its payload needed."""
        del self._at_work[call]
        given = seat.calls.pop(call)
        if self._loads is not None and given.payload_bytes is not None:
            self._loads.backlog.gone(given.payload_bytes)
        return given.shard

    def _bury(self, seat: Seat, cause: str) -> None:
        """Replace a dead actor; its shards wait again, and those that were together do so one by one from now on.

        Which of them was at work can't be told: the answer to the one before may have died with the process. So each
        counts a failure, and alone it can't be blamed for another's again. A lost node is nobody's fault.
        """
        self._observer.retried(self._stage.name, "actor_died")
        self._pool.replace(seat)
        shards = [self._taken_back(seat, call) for call in list(seat.calls)]
        self._waiting.at_once(shards)
        if seat.node in {node["NodeID"] for node in ray.nodes() if node["Alive"]}:
            self._suspects.update(shard.index for shard in shards)
            for shard in shards:
                self._attempts.note(shard, Failure(f"its worker process died ({cause})"))

    def _again(self, shard: Shard, failure: Failure) -> None:
        self._attempts.note(shard, failure)
        self._observer.retried(self._stage.name, "error")
        self._waiting.later(shard)

    def _say_stalled(self) -> None:
        seats = self._pool.seats
        up = sum(seat.node is not None for seat in seats)
        if up < len(seats):
            self._observer.said(f"{self._stage.name}: {up} of {len(seats)} {self._pool.device} actors are up")
