"""One stage on its way through a pool of actors: which shard goes where, and which is given out again.

Waiting → (loading → loaded →) with an actor → published. What is in flight is bounded; the driver sees receipts, never
arrays, and what it keeps does not grow with the number of shards. Whose fault a dead actor is, is found in `ray_cases`.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, OutOfMemoryError, RayActorError, RayError

from raybench.engine.attempts import NODE_LOST, STORAGE, Attempts, Failure
from raybench.engine.blame import Fault
from raybench.engine.patience import Patience, pause_before
from raybench.engine.progress import Observer
from raybench.engine.ray_cases import Case, Cases
from raybench.engine.ray_loads import LoadsAhead, Machines
from raybench.engine.ray_nodes import Head, Nodes
from raybench.engine.ray_pool import MOST_PER_ACTOR, Given, Pool, Seat, of_ray
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt, Stage
from raybench.engine.waiting import Depth, Waiting

LOOK_EVERY_SECONDS = 10.0  # at what the cluster has


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
        nodes: Nodes,
        head: Head,
        patience: Patience,
    ) -> None:
        self._stage, self._job, self._pool, self._loads, self._observer = stage, job, pool, loads, observer
        self._look, self._nodes, self._head, self._patience = look, nodes, head, patience
        self._attempts = Attempts(stage)
        self._waiting = Waiting(shards)
        self._left = len(shards)
        self._depth = Depth(fused=loads is None, most=MOST_PER_ACTOR - 1)
        self._at_work: dict[Any, Seat] = {}
        self._cases = Cases(stage.name, pool, nodes)
        self._suspects: set[int] = set()  # shards in whose presence a worker died
        self._said_to_drain: set[str] = set()  # nodes
        self._storage = ""  # what a store said that does not answer
        pool.ask_who_is_there()

    def receipts(self) -> Iterator[Receipt]:
        """Keep everything moving until every shard is published."""
        looked = time.monotonic()
        self._patience.progressed()
        while self._left:
            self._leave_nodes()
            self._start_loading()
            self._hand_out()
            done = self._wait()
            now = time.monotonic()
            if self._head.is_there() and now - looked > LOOK_EVERY_SECONDS and self._head.may_be_asked():
                looked = now
                self._look(Machines.there(self._nodes.is_lost), self._left)
            for reference in done:
                receipt = self._hear(reference)
                if receipt is not None:
                    self._left -= 1
                    self._patience.progressed()
                    yield receipt
            for case, fault in self._cases.closed():
                self._settle(case, fault)
            self._observer.in_flight(self._stage.name, self._in_flight(), len(self._pool.seats))
            self._say_what_it_waits_for()

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
        idle = (seat for seat in self._pool.seats if self._takes_work(seat) and not seat.calls)
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
        if not self._takes_work(seat):
            return False
        loads_itself = self._loads is not None and any(given.payload_bytes is None for given in seat.calls.values())
        if len(seat.calls) >= self._depth.shards + loads_itself:
            return False
        if not self._suspects or not seat.calls:
            return True
        together = [*(given.shard for given in seat.calls.values()), shard]
        return not any(one.index in self._suspects for one in together)

    def _takes_work(self, seat: Seat) -> bool:
        return seat.node is not None and seat not in self._cases and seat.node not in self._nodes.draining

    def _leave_nodes(self) -> None:
        """Actors leave a node that is to be taken away, once they are idle; payloads of a lost one are loaded again."""
        for seat in [seat for seat in self._pool.seats if seat.node in self._nodes.draining]:
            if seat.node is not None and seat.node not in self._said_to_drain:
                self._said_to_drain.add(seat.node)
                self._observer.said(f"node {seat.node[:8]} is to be taken away: its actors leave it")
            if not seat.calls and seat not in self._cases:
                self._cases.give_up(seat)
        if self._loads is not None:
            for shard in self._loads.drop_lost(self._nodes.is_lost):
                self._again(shard, Failure("", nobodys=NODE_LOST))

    def _wait(self) -> list[Any]:
        self._cases.ask()
        ahead: Iterable[Any] = () if self._loads is None else self._loads.references
        starting = (seat.ready for seat in self._pool.seats if seat.node is None and seat not in self._cases)
        references = [*ahead, *self._at_work, *starting, *self._cases.questions]
        if not references:
            time.sleep(1.0)
            return []
        first, _ = ray.wait(references, num_returns=1, timeout=1.0, fetch_local=False)
        if not first:
            return []
        done, _ = ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)
        return list(done)

    def _hear(self, reference: Any) -> Receipt | None:
        if reference in self._at_work:
            return self._hear_work(reference)
        if self._loads is not None and reference in self._loads:
            self._hear_load(self._loads, reference)
            return None
        for seat in self._pool.seats:
            if seat.node is None and reference == seat.ready:
                self._hear_ready(seat)
                return None
        case = self._cases.hear_answer(reference)
        if case is not None:
            self._give_again(case.shards, "unavailable")
        return None

    def _hear_load(self, loads: LoadsAhead, reference: Any) -> None:
        failed = loads.hear(reference)
        if failed is not None and failed.error is not None:
            self._cases.open_for_load(failed.shard, failed.began, failed.error)
        elif failed is not None and failed.failure is not None:
            self._again(failed.shard, failed.failure)

    def _hear_ready(self, seat: Seat) -> None:
        try:
            seat.node, _ = ray.get(seat.ready)
            seat.failed_starts = 0
        except ActorUnavailableError as error:
            self._cases.open_for(seat, None, error)
        except RayError as error:
            self._cases.failed_start(seat, error)

    def _hear_work(self, call: Any) -> Receipt | None:
        seat = self._at_work[call]
        try:
            outcome = ray.get(call)
        except (RayActorError, OutOfMemoryError) as error:
            self._cases.open_for(seat, self._taken_back(seat, call), error)
            return None
        except RayError as error:
            outcome = of_ray(error)
        shard = self._taken_back(seat, call)
        if isinstance(outcome, Failure):
            self._again(shard, outcome)
            return None
        receipt: Receipt = outcome
        self._depth.heard(receipt)
        self._suspects.discard(shard.index)
        if self._loads is not None:
            self._loads.backlog.took(receipt.load_seconds, receipt.compute_seconds)
        lost = self._attempts.times_lost(shard)
        return dataclasses.replace(receipt, attempt=self._attempts.of(shard), lost=lost)

    def _taken_back(self, seat: Seat, call: Any) -> Shard:
        """The shard is with this actor no longer, nor is its payload needed."""
        del self._at_work[call]
        given = seat.calls.pop(call)
        if self._loads is not None and given.payload_bytes is not None:
            self._loads.backlog.gone(given.payload_bytes)
        return given.shard

    def _settle(self, case: Case, fault: Fault) -> None:
        """Give a dead worker's shards out again. One that was alone is to blame.

        Of several each runs alone from now on. Which of them was at work can't be told: the answer to the one before
        may have died with the process.
        """
        if fault is Fault.NOBODY:
            self._give_again(case.shards, NODE_LOST)
            return
        self._suspects.update(shard.index for shard in case.shards)
        if fault is Fault.SUSPECTS:
            self._give_again(case.shards, "actor_died")
            return
        for shard in case.shards:
            self._attempts.note(shard, Failure(f"its worker process died ({case.failure.cause})", case.failure.trace))
            self._observer.retried(self._stage.name, "actor_died")
        self._waiting.at_once(case.shards)

    def _give_again(self, shards: Sequence[Shard], cause: str) -> None:
        """What was nobody's fault is not counted as a failure, but as lost."""
        if shards:
            self._observer.retried(self._stage.name, cause)
        for shard in shards:
            self._attempts.lose(shard)
        self._waiting.at_once(shards)

    def _again(self, shard: Shard, failure: Failure) -> None:
        if failure.nobodys == STORAGE:
            self._storage = failure.cause
            self._patience.say_at_once(f"storage: {failure.cause}")
            self._observer.retried(self._stage.name, STORAGE)
            self._waiting.after(pause_before(self._attempts.pause(shard)), shard)
        elif failure.nobodys:
            self._give_again([shard], failure.nobodys)
        else:
            self._attempts.note(shard, failure)
            self._observer.retried(self._stage.name, "error")
            self._waiting.later(shard)

    def _say_what_it_waits_for(self) -> None:
        """Say it, or stop; shards at work are waited for as well, but in silence."""
        seats = self._pool.seats
        up = sum(seat.node is not None and seat not in self._cases for seat in seats)
        if self._waiting.paused:
            self._patience.wait_for(f"storage: {self._storage}")
        elif self._cases and not self._at_work:
            self._patience.wait_for(self._cases.words)
        elif up < len(seats):
            words = f"{self._pool.device} actors: {up} of {len(seats)} are up, the others find no room or no node"
            self._patience.wait_for(words)
        else:
            self._patience.wait_for(f"{self._in_flight()} shards that are loaded or computed", loud=False)
