"""Actors that died or do not answer, with their shards: each is a case, open until it is known whose fault it is.

An actor that is only unavailable is asked again until it answers, or is found dead. Its shards wait meanwhile; all
others go on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, OutOfMemoryError, RayActorError, RayError

from raybench.engine.attempts import Failure
from raybench.engine.blame import Death, Fault, fault_of, node_left
from raybench.engine.patience import pause_before
from raybench.engine.ray_nodes import Nodes
from raybench.engine.ray_pool import Pool, Seat, of_ray
from raybench.engine.shards import Shard
from raybench.errors import ShardFailed

MOST_FAILED_STARTS = 5  # in a row: actors of one seat that die before they are ready
LONGEST_UNHEARD_SECONDS = 15.0  # between two questions to an actor that does not answer


@dataclass(eq=False)
class Case:
    """What is known so far. `died` is None while an actor is only unavailable; a load task has no seat."""

    seat: Seat | None
    node: str | None
    began: float
    shards: list[Shard] = field(default_factory=list)
    failure: Failure = field(default_factory=lambda: Failure(""))
    died: float | None = None
    preempted: bool = False
    out_of_memory: bool = False
    asked: Any = None  # the question whether it is there, if one is under way
    questions: int = 0
    next_question: float = 0.0

    def hear(self, error: RayError) -> None:
        """What Ray said of this actor or task."""
        self.failure = of_ray(error)
        if isinstance(error, ActorUnavailableError):
            return
        self.died = self.died or time.monotonic()
        self.preempted = self.preempted or getattr(error, "preempted", False)
        self.out_of_memory = self.out_of_memory or isinstance(error, OutOfMemoryError)

    def fault(self, nodes: Nodes, now: float) -> Fault:
        if self.died is not None and not (self.seat and self.seat.calls):
            death = Death(len(self.shards), self.node, self.began, self.died, self.preempted, self.out_of_memory)
            return fault_of(death, nodes, now)
        # It may answer again, but not from a node that is gone; or it is not known yet which shards it took along.
        gone = self.died is None and self.node is not None and nodes.leaves(self.node)
        return Fault.NOBODY if gone else Fault.OPEN


class Cases:
    """The open cases of one stage. Dead actors are replaced at once."""

    def __init__(self, stage: str, pool: Pool, nodes: Nodes) -> None:
        self._stage, self._pool, self._nodes = stage, pool, nodes
        self._of_seats: dict[Seat, Case] = {}
        self._of_loads: list[Case] = []

    def __contains__(self, seat: Seat) -> bool:
        return seat in self._of_seats

    def __len__(self) -> int:
        return len(self._of_seats) + len(self._of_loads)

    @property
    def words(self) -> str:
        """What is not known yet."""
        unheard = [case for case in self._of_seats.values() if case.died is None]
        if not unheard:
            return f"the verdict on {len(self)} dead workers"
        return f"{len(unheard)} actors that do not answer ({unheard[0].failure.cause})"

    @property
    def questions(self) -> Iterable[Any]:
        return [case.asked for case in self._of_seats.values() if case.asked is not None]

    def open_for(self, seat: Seat, shard: Shard | None, error: RayError) -> None:
        """An actor did not answer, or died; perhaps with a shard."""
        self._nodes.look_closely()
        case = self._of_seats.get(seat)
        if case is None:
            case = self._of_seats[seat] = Case(seat, seat.node, seat.made)
            seat.is_unheard = True
        case.shards += [] if shard is None else [shard]
        was_dead = case.died is not None
        case.hear(error)
        if case.died is not None and not was_dead:
            self._replace(case, seat, error)

    def open_for_load(self, shard: Shard, began: float, error: RayError) -> None:
        """A load task died with a shard; on which node Ray does not say."""
        self._nodes.look_closely()
        case = Case(None, None, began, [shard])
        case.hear(error)
        self._of_loads.append(case)

    def failed_start(self, seat: Seat, error: RayError) -> None:
        """Replace an actor that died before it was ready; too many on nodes that stay end the run."""
        self._nodes.look_closely()
        preempted = isinstance(error, RayActorError) and error.preempted
        lost = preempted or node_left(None, seat.made, self._nodes)
        failed = seat.failed_starts + (not lost)
        if failed >= MOST_FAILED_STARTS:
            raise ShardFailed(
                f"stage {self._stage}: actors die as they start; the last: {of_ray(error).cause}"
            ) from error
        self._pool.replace(seat, failed)

    def ask(self) -> None:
        """Ask those that do not answer again, less and less often."""
        now = time.monotonic()
        for seat, case in self._of_seats.items():
            if case.died is None and case.asked is None and now >= case.next_question:
                case.asked = seat.actor.ready.remote()
                case.questions += 1

    def hear_answer(self, reference: Any) -> Case | None:
        """The case of an actor that answered again, which is closed by that; None for any other outcome."""
        asked = [seat for seat, case in self._of_seats.items() if case.asked == reference]
        if not asked:
            return None
        seat = asked[0]
        case = self._of_seats[seat]
        case.asked = None
        try:
            seat.node, _ = ray.get(reference)
        except RayError as error:
            pause = min(pause_before(case.questions), LONGEST_UNHEARD_SECONDS)
            case.next_question = time.monotonic() + pause
            self.open_for(seat, None, error)
            return None
        del self._of_seats[seat]
        seat.is_unheard = False
        return case

    def closed(self) -> Iterator[tuple[Case, Fault]]:
        """Cases on which there is a verdict now."""
        if not len(self):
            return
        now = time.monotonic()
        self._nodes.look_closely()
        for case in [*self._of_seats.values(), *self._of_loads]:
            fault = case.fault(self._nodes, now)
            if fault is Fault.OPEN:
                continue
            if case.seat is None:
                self._of_loads.remove(case)
            else:
                del self._of_seats[case.seat]
                if case.died is None:
                    self.give_up(case.seat)
            yield case, fault

    def give_up(self, seat: Seat) -> None:
        """Replace an actor that may be alive, on a node that leaves."""
        with suppress(Exception):  # it may be gone by now
            ray.kill(seat.actor)
        self._pool.replace(seat)

    def _replace(self, case: Case, seat: Seat, error: RayError) -> None:
        if case.shards or case.node is not None:
            self._pool.replace(seat)
        else:
            del self._of_seats[seat]
            self.failed_start(seat, error)
