"""What a person sees while a run goes on: a live line on a terminal, lines in a log, JSON for machines, or nothing.

An Observer is told what happens; it never decides anything. Lines go to standard error, so that standard
output is left to tables.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from raybench.engine.course import Former, Pace
from raybench.engine.stages import Receipt
from raybench.masking import masked

LOG_EVERY_SECONDS = 5.0  # logs are read by people: a line every few seconds, not one per shard, nor per short stage
IN_A_RAY_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # is set where `ray job submit` runs a command


class Observer:
    """Hears of runs, stages, shards, retries, waits and messages; this one shows nothing of them."""

    def run_started(self, former: Former) -> None: ...

    def stage_started(self, stage: str, shards: int, found: int) -> None: ...

    def published(self, receipt: Receipt) -> None: ...

    def retried(self, stage: str, cause: str) -> None: ...

    def in_flight(self, stage: str, shards: int, actors: int) -> None: ...

    def stage_ended(self, stage: str) -> None: ...

    def run_ended(self) -> None: ...

    def waiting(self, what: str, is_news: bool = False) -> None:
        """Something else than a stage takes time, until the next call; logs tell it only where it is news."""

    def said(self, message: str) -> None: ...

    def closed(self) -> None:
        """Nothing more will be told."""


class Observers(Observer):
    """Tells several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def run_started(self, former: Former) -> None:
        for observer in self._observers:
            observer.run_started(former)

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

    def run_ended(self) -> None:
        for observer in self._observers:
            observer.run_ended()

    def waiting(self, what: str, is_news: bool = False) -> None:
        for observer in self._observers:
            observer.waiting(what, is_news)

    def said(self, message: str) -> None:
        for observer in self._observers:
            observer.said(message)

    def closed(self) -> None:
        for observer in self._observers:
            observer.closed()


class JsonLines(Observer):
    """One JSON object per line. Messages and retries are told at once, stages in a line every few seconds at most.

    So a stage that is over before a line is due is told by its end only, together with others.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._pace = Pace("", 0, 0)
        self._ended: list[dict[str, Any]] = []
        self._last: float | None = None

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        self._pace = Pace(stage, shards, found)
        if self._is_due():
            self._flush()
            self._write(event="stage_started", stage=stage, shards=shards, found=found)

    def published(self, receipt: Receipt) -> None:
        self._pace.add(receipt)
        if self._is_due():
            self._flush()
            self._write(event="progress", **self._figures())

    def retried(self, stage: str, cause: str) -> None:
        self._write(event="retried", stage=stage, cause=cause)

    def stage_ended(self, stage: str) -> None:
        self._ended.append(self._figures())
        if self._is_due():
            self._flush()

    def run_ended(self) -> None:
        self._flush()

    def waiting(self, what: str, is_news: bool = False) -> None:
        if is_news:
            self.said(what)

    def said(self, message: str) -> None:
        self._write(event="message", message=message)

    def closed(self) -> None:
        self._flush()

    def _is_due(self) -> bool:
        """Whether a line on stages may be written; then the next is due some seconds later."""
        now = time.monotonic()
        due = self._last is None or now - self._last >= LOG_EVERY_SECONDS
        self._last = now if due else self._last
        return due

    def _flush(self) -> None:
        if self._ended:
            self._write(event="stages_ended", stages=self._ended)
            self._ended = []

    def _figures(self) -> dict[str, Any]:
        pace = self._pace
        left = pace.seconds_left
        return {
            "stage": pace.stage,
            "done": pace.done,
            "shards": pace.shards,
            "found": pace.found,
            "items_per_second": round(pace.rate, 1),
            "seconds": round(pace.seconds, 3),
            "seconds_left": None if left is None else round(left, 1),
        }

    def _write(self, **fields: object) -> None:
        shown = {name: masked(value) if isinstance(value, str) else value for name, value in fields.items()}
        self._stream.write(json.dumps(shown) + "\n")
        self._stream.flush()


def kind_shown(kind: str) -> str:
    """What `--progress auto` stands for here; the others stand for themselves."""
    if kind != "auto":
        return kind
    if sys.stderr.isatty():
        return "bar"
    return "json" if IN_A_RAY_JOB in os.environ else "lines"


def progress(kind: str) -> Observer:
    """The observer for `--progress auto|bar|lines|json|none`."""
    kind = kind_shown(kind)
    if kind == "bar":
        from raybench.engine.progress_bar import Bar  # only a bar pays for importing Rich

        return Bar()
    if kind == "lines":
        from raybench.engine.progress_lines import Lines

        return Lines()
    return JsonLines() if kind == "json" else Observer()
