"""Progress on a terminal: one live line for the whole run, and above it what is behind."""

from __future__ import annotations

import math
import sys
import time

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from raybench.engine.course import Course, Former, Pace
from raybench.engine.progress import Observer
from raybench.engine.progress_words import clock, duration, facts_of, per_second
from raybench.engine.stages import Receipt
from raybench.masking import masked
from raybench.visible import visible

DRAWS_PER_SECOND = 8
OWN_LINE_SECONDS = 0.5  # stages that took less have no line of their own,
TOGETHER_SECONDS = 1.0  # but one together, if they took so long
SHOWN_AFTER_SECONDS = 1.0  # of a wait between stages, since most are over at once
NAME_WIDTH, BAR_WIDTH = 28, 24


class _Wait:
    """Something other than a stage that takes time."""

    def __init__(self, what: str, shown_after: float, leaves_line_after: float) -> None:
        self.what, self.shown_after, self.leaves_line_after = what, shown_after, leaves_line_after
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started


NO_WAIT = _Wait("", math.inf, math.inf)


class Bar(Observer):
    """The live line: stage, share done, time left, rate. Stages, waits and messages that are behind stay above it."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._spinner = Spinner("dots")
        self._course = Course(Former())
        self._pace: Pace | None = None
        self._wait = NO_WAIT
        self._short: list[float] = []  # seconds of stages that are behind and have no line yet
        self._live = Live(
            get_renderable=self._line,
            console=self._console,
            refresh_per_second=DRAWS_PER_SECOND,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )  # asks for its line at once

    def run_started(self, former: Former) -> None:
        self._end_wait()
        self._course = Course(former)
        self._live.start()

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        self._end_wait()
        self._pace = Pace(stage, shards, found)
        self._live.start()

    def published(self, receipt: Receipt) -> None:
        if self._pace is not None:
            self._pace.add(receipt)

    def retried(self, stage: str, cause: str) -> None:
        if self._pace is not None:
            self._pace.retries += 1

    def stage_ended(self, stage: str) -> None:
        pace, self._pace = self._pace, None
        self._wait = _Wait(f"after {stage}", SHOWN_AFTER_SECONDS, leaves_line_after=math.inf)
        if pace is None:
            return
        self._course.passed(stage, pace.seconds)
        if pace.seconds < OWN_LINE_SECONDS and not pace.retries:
            self._short.append(pace.seconds)
            return
        self._leave_short()
        self._leave(stage, pace.seconds, *facts_of(pace))

    def run_ended(self) -> None:
        self._leave_short()

    def waiting(self, what: str, is_news: bool = False) -> None:
        self._end_wait()
        after = 0.0 if is_news else SHOWN_AFTER_SECONDS
        self._wait = _Wait(what, after, leaves_line_after=max(after, OWN_LINE_SECONDS))
        self._live.start()

    def said(self, message: str) -> None:
        self._leave_short()
        self._console.print(visible(masked(message)), markup=False)

    def closed(self) -> None:
        self._end_wait()
        self._leave_short()
        self._live.stop()

    def _end_wait(self) -> None:
        wait, self._wait = self._wait, NO_WAIT
        if wait.seconds >= wait.leaves_line_after:
            self._leave(wait.what, wait.seconds)

    def _leave_short(self) -> None:
        short, self._short = self._short, []
        if sum(short) >= TOGETHER_SECONDS:
            self._leave(f"{len(short)} short stages", sum(short))

    def _leave(self, what: str, seconds: float, *facts: str) -> None:
        text = f"{visible(masked(what)):<{NAME_WIDTH}} {duration(seconds):>9}  {' · '.join(facts)}"
        self._console.print(Text(text.rstrip(), style="dim", overflow="ellipsis", no_wrap=True))

    def _line(self) -> Table | Text:
        pace = self._pace
        if pace is None:
            return self._waiting_line()
        words = self._words(pace)
        room = self._console.width - 3 - min(len(pace.stage), NAME_WIDTH) - len(words[0]) - 4
        bar_width = max(min(BAR_WIDTH, room // 3), 6)
        shown = _as_many_as_fit(words, self._console.width - 8 - min(len(pace.stage), NAME_WIDTH) - bar_width)
        bar = ProgressBar(max(pace.shards, 1), pace.done, bar_width)
        return _row(self._spinner, Text(visible(pace.stage), overflow="ellipsis"), bar, Text(shown))

    def _waiting_line(self) -> Table | Text:
        wait = self._wait
        if wait.seconds < wait.shown_after:
            return Text("")
        return _row(self._spinner, Text(f"{visible(masked(wait.what))} {wait.seconds:.0f} s", overflow="ellipsis"))

    def _words(self, pace: Pace) -> list[str]:
        """What is told of a stage, the most wanted first."""
        place, left, in_all = self._course.position(pace.stage), pace.seconds_left, self._course.seconds_left(pace)
        words = [f"{pace.done:,}/{pace.shards:,}"]
        words += [] if left is None else [f"{clock(left)} left"]
        words += [f"{pace.retries:,} tried again"] if pace.retries else []
        words += [] if in_all is None else [f"run: about {clock(in_all)} left"]
        words += [per_second(pace.rate)] if pace.items else []
        words += [f"mostly {pace.held_up_by}"] if pace.held_up_by else []
        words += [f"stage {place[0]} of {place[1]}"] if place else []
        return [*words, f"{clock(self._course.seconds)} so far"]


def _row(*parts: Spinner | Text | ProgressBar) -> Table:
    row = Table.grid(padding=(0, 1))
    for _ in parts:
        row.add_column(no_wrap=True)
    row.add_row(*parts)
    return row


def _as_many_as_fit(words: list[str], width: int) -> str:
    """The first words, joined; the first one in any case."""
    text = words[0]
    for word in words[1:]:
        longer = f"{text} · {word}"
        if len(longer) > width:
            break
        text = longer
    return text
