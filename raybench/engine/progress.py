"""What a person sees while a run goes on: one live line on a terminal, JSON lines in a log, or nothing.

An Observer is told what happens; it never decides anything. Lines go to standard error, so that standard
output is left to tables.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from raybench.engine.stages import Receipt
from raybench.masking import masked

LOG_EVERY_SECONDS = 5.0  # job logs are read by people: one line per stage and every few seconds, not one per shard


class Observer:
    """Hears of stages, shards, retries and messages; this one shows nothing of them."""

    def stage_started(self, stage: str, shards: int, found: int) -> None: ...

    def published(self, receipt: Receipt) -> None: ...

    def retried(self, stage: str, cause: str) -> None: ...

    def in_flight(self, stage: str, shards: int, actors: int) -> None: ...

    def stage_ended(self, stage: str) -> None: ...

    def said(self, message: str) -> None: ...


class Observers(Observer):
    """Tells several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        for observer in self._observers:
            observer.stage_started(stage, shards, found)

    def published(self, receipt: Receipt) -> None:
        for observer in self._observers:
            observer.published(receipt)

    def retried(self, stage: str, cause: str) -> None:
        for observer in self._observers:
            observer.retried(stage, cause)

    def in_flight(self, stage: str, shards: int, actors: int) -> None:
        for observer in self._observers:
            observer.in_flight(stage, shards, actors)

    def stage_ended(self, stage: str) -> None:
        for observer in self._observers:
            observer.stage_ended(stage)

    def said(self, message: str) -> None:
        for observer in self._observers:
            observer.said(message)


class Pace:
    """Items per second and seconds left of one stage, from the shards published since it started."""

    def __init__(self, shards: int, found: int) -> None:
        self.shards, self.done, self.found, self.items, self.retries = shards, found, found, 0, 0
        self._started = time.monotonic()

    def add(self, receipt: Receipt) -> None:
        self.done += 1
        self.items += receipt.items

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


class JsonLines(Observer):
    """One JSON object per line: when a stage starts and ends, every few seconds between, and every retry."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._pace = Pace(0, 0)
        self._last = 0.0

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        self._pace = Pace(shards, found)
        self._last = time.monotonic()
        self._write(event="stage_started", stage=stage, shards=shards, found=found)

    def published(self, receipt: Receipt) -> None:
        self._pace.add(receipt)
        if time.monotonic() - self._last >= LOG_EVERY_SECONDS:
            self._last = time.monotonic()
            self._write(event="progress", stage=receipt.stage, **self._figures())

    def retried(self, stage: str, cause: str) -> None:
        self._write(event="retried", stage=stage, cause=cause)

    def stage_ended(self, stage: str) -> None:
        self._write(event="stage_ended", stage=stage, **self._figures())

    def said(self, message: str) -> None:
        self._write(event="message", message=message)

    def _figures(self) -> dict[str, float | int | None]:
        pace = self._pace
        left = pace.seconds_left
        return {
            "done": pace.done,
            "shards": pace.shards,
            "items_per_second": round(pace.rate, 1),
            "seconds": round(pace.seconds, 3),
            "seconds_left": None if left is None else round(left, 1),
        }

    def _write(self, **fields: object) -> None:
        shown = {name: masked(value) if isinstance(value, str) else value for name, value in fields.items()}
        self._stream.write(json.dumps(shown) + "\n")
        self._stream.flush()


def progress(kind: str) -> Observer:
    """The observer for `--progress auto|bar|json|none`; auto is a bar on a terminal, JSON lines elsewhere."""
    if kind == "auto":
        kind = "bar" if sys.stderr.isatty() else "json"
    if kind == "bar":
        from raybench.engine.progress_bar import Bar  # only a bar pays for importing Rich

        return Bar()
    return JsonLines() if kind == "json" else Observer()
