"""Progress in a log that people read: few lines, each with the time since the start."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from raybench.engine import progress
from raybench.engine.course import Course, Former, Pace
from raybench.engine.progress import Observer
from raybench.engine.progress_words import clock, duration, facts_of, per_second
from raybench.engine.stages import Receipt
from raybench.masking import masked
from raybench.visible import visible

OWN_LINE_SECONDS = 1.0  # a stage that took less leaves no line


class Lines(Observer):
    """One line per stage that took a second, every few seconds while one is on, and per message."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._course = Course(Former())
        self._pace = Pace("", 0, 0)
        self._started = self._last = time.monotonic()

    def run_started(self, former: Former) -> None:
        self._course = Course(former)

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        self._pace = Pace(stage, shards, found)
        self._last = time.monotonic()

    def published(self, receipt: Receipt) -> None:
        self._pace.add(receipt)
        if time.monotonic() - self._last >= progress.LOG_EVERY_SECONDS:
            self.said(f"{self._pace.stage}: {', '.join(self._on_the_way())}")

    def retried(self, stage: str, cause: str) -> None:
        self._pace.retries += 1

    def stage_ended(self, stage: str) -> None:
        self._course.passed(stage, self._pace.seconds)
        if self._pace.seconds >= OWN_LINE_SECONDS or self._pace.retries:
            self.said(f"{stage}: {', '.join([duration(self._pace.seconds), *facts_of(self._pace)])}")

    def waiting(self, what: str, is_news: bool = False) -> None:
        if is_news:
            self.said(what)

    def said(self, message: str) -> None:
        self._last = time.monotonic()
        self._stream.write(f"[{clock(self._last - self._started)}] {visible(masked(message))}\n")
        self._stream.flush()

    def _on_the_way(self) -> list[str]:
        pace, left = self._pace, self._pace.seconds_left
        words = [f"{pace.done:,} of {pace.shards:,} shards ({pace.done / pace.shards:.0%})", per_second(pace.rate)]
        words += [] if left is None else [f"{clock(left)} left in this stage"]
        in_all = self._course.seconds_left(pace)
        words += [] if in_all is None else [f"about {clock(in_all)} in all"]
        words += [f"mostly {pace.held_up_by}"] if pace.held_up_by else []
        return words + ([f"{pace.retries:,} tried again"] if pace.retries else [])
