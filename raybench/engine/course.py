"""How far a run has come: the pace of its stage, the stages behind it, and the time left, as far as that can be known.

Stages come one after the other, and a run does not know which will follow. Of the stage that is on, the time left
follows from the shards published so far. Of the whole run it is told only if a finished run of the same benchmark lies
beside it: its later stages then take as long as there, times how much slower or faster the stages were so far.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from raybench.engine.stages import Receipt

HELD_UP_SHARE = 0.6  # of the seconds of all workers: from here on one part is what a stage waits for
LEAST_SECONDS = 1.0  # of stages behind, before another run's seconds are scaled by them


@dataclass(frozen=True)
class Former:
    """A finished run of the same benchmark: its stages' names and seconds, in order; none if there is no such run."""

    stages: tuple[tuple[str, float], ...] = ()


class Pace:
    """Items per second and seconds left of one stage, from the shards published since it started."""

    def __init__(self, stage: str, shards: int, found: int) -> None:
        self.stage, self.shards, self.done, self.found, self.items, self.retries = stage, shards, found, found, 0, 0
        self._parts = {"loading": 0.0, "computing": 0.0, "publishing": 0.0}
        self._started = time.monotonic()

    def add(self, receipt: Receipt) -> None:
        self.done += 1
        self.items += receipt.items
        self._parts["loading"] += receipt.load_seconds
        self._parts["computing"] += receipt.compute_seconds
        self._parts["publishing"] += receipt.publish_seconds

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        return self.items / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        computed = self.done - self.found
        return (self.shards - self.done) * self.seconds / computed if computed else None

    @property
    def held_up_by(self) -> str:
        """The part that takes most of the workers' seconds; empty if none stands out."""
        part = max(self._parts, key=self._parts.__getitem__)
        total = sum(self._parts.values())
        return part if total and self._parts[part] >= HELD_UP_SHARE * total else ""


class Course:
    """The stages of one run that are behind it, beside those of a former run."""

    def __init__(self, former: Former) -> None:
        self._former = former.stages
        self._passed: list[tuple[str, float]] = []
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def passed(self, stage: str, seconds: float) -> None:
        self._passed.append((stage, seconds))

    def position(self, stage: str) -> tuple[int, int] | None:
        """Which stage this is, of how many, if the former run went the same way so far."""
        names = [*(name for name, _ in self._passed), stage]
        same = [name for name, _ in self._former[: len(names)]] == names
        return (len(names), len(self._former)) if same else None

    def seconds_left(self, pace: Pace) -> float | None:
        """Of the whole run; None if it can't be told."""
        left = pace.seconds_left
        if left is None or self.position(pace.stage) is None:
            return None
        behind, ahead = self._former[: len(self._passed)], self._former[len(self._passed) + 1 :]
        return left + _scale(self._passed, behind) * sum(seconds for _, seconds in ahead)


def _scale(own: Sequence[tuple[str, float]], former: Sequence[tuple[str, float]]) -> float:
    """How much longer our stages took than the same ones of the former run; one while that is too little to tell."""
    ours, theirs = (sum(seconds for _, seconds in stages) for stages in (own, former))
    return ours / theirs if min(ours, theirs) >= LEAST_SECONDS else 1.0
