"""How long a run waits for what may come back: nodes, GPUs, actors, storage. It says so, and in the end it stops."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from raybench.errors import ConfigError, Stalled, StorageUnavailable

if TYPE_CHECKING:
    from raybench.engine.progress import Observer

R = TypeVar("R")

HOUR = 3600.0  # seconds: the default
SAY_EVERY_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 60.0
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> float:
    """A duration of the command line in seconds.

    >>> [seconds_of(text) for text in ("90s", "15m", "1.5h", "20")]
    [90.0, 900.0, 5400.0, 20.0]
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([smhd]?)", text.strip())
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        raise ConfigError(f"--patience {text}: no duration; give one above 0 such as 90s, 15m or 1h, or plain seconds")
    return seconds


def in_words(seconds: float) -> str:
    """A duration for people.

    >>> [in_words(seconds) for seconds in (20.4, 90, 900, 5400)]
    ['20 s', '90 s', '15 min', '1.5 h']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.3g} h"


def pause_before(again: int) -> float:
    """Seconds to wait before something is asked for the `again`-th time, from 1: growing, up to a minute."""
    return float(min(2.0 ** (min(again, 10) - 1), LONGEST_PAUSE_SECONDS))


class Patience:
    """The time since a stage last published a shard, against the time that the user gives it."""

    def __init__(self, stage: str, seconds: float, observer: Observer) -> None:
        self._stage, self._seconds, self._observer = stage, seconds, observer
        self._since = self._said = time.monotonic()
        self._said_at_once = False

    def progressed(self) -> None:
        self._since = time.monotonic()

    @property
    def seconds_left(self) -> float:
        return self._since + self._seconds - time.monotonic()

    def wait_for(self, reason: str, loud: bool = True) -> None:
        """Say, if `loud` and now and then, what the stage waits for; raise Stalled once it did so for too long."""
        now = time.monotonic()
        if now - self._since >= self._seconds:
            raise Stalled(
                f"stage {self._stage}: nothing was published for {in_words(self._seconds)} (--patience); "
                f"it waited for {reason}; what takes longer needs a longer --patience"
            )
        if loud and now - max(self._since, self._said) >= SAY_EVERY_SECONDS:
            self._say(reason, now)

    def say_at_once(self, reason: str) -> None:
        """Say that the stage waits: the first time at once, then not more often than `wait_for` does."""
        now = time.monotonic()
        if not self._said_at_once or now - self._said >= SAY_EVERY_SECONDS:
            self._said_at_once = True
            self._say(reason, now)

    def wait_for_storage(self, cause: str, again: int) -> None:
        """Say that a store does not answer, and wait before it is asked for the `again`-th time."""
        self.wait_for(f"storage: {cause}", loud=False)
        self.say_at_once(f"storage: {cause}")
        time.sleep(max(min(pause_before(again), self.seconds_left), 0.0))

    def through_silence(self, action: Callable[[], R]) -> R:
        """The action's result; while a store does not answer, the action is begun anew."""
        again = 0
        while True:
            try:
                return action()
            except StorageUnavailable as error:
                again += 1
                self.wait_for_storage(str(error), again)

    def _say(self, reason: str, now: float) -> None:
        self._said = now
        waited, limit = in_words(now - self._since), in_words(self._seconds)
        self._observer.said(
            f"{self._stage}: waiting for {reason} (nothing published for {waited}; --patience ends it after {limit})"
        )
