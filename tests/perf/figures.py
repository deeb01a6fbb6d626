"""What a bench reports: a number with all its repeats, beside a baseline or a target where there is one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Best(float):
    """The least of several repeats, in seconds: a number as any other, which remembers them all when it is scaled."""

    repeats: tuple[float, ...]

    def __new__(cls, repeats: Sequence[float]) -> Best:
        made = super().__new__(cls, min(repeats))
        made.repeats = tuple(map(float, repeats))
        return made

    def __mul__(self, factor: float) -> Best:
        return Best([one * factor for one in self.repeats])

    def __truediv__(self, divisor: float) -> Best:
        return Best([one / divisor for one in self.repeats])


def repeats_of(value: float) -> tuple[float, ...]:
    """All repeats behind a number; itself where it has no others."""
    return value.repeats if isinstance(value, Best) else (float(value),)


def number_record(repeats: Sequence[float]) -> dict[str, Any]:
    """Repeats and their median, as the bench's JSON has them."""
    return {"repeats": list(repeats), "median": statistics.median(repeats)}


@dataclass(frozen=True)
class Figure:
    """One line of the bench. `note` says what the ratio does not; a ratio above 1 means that ours is faster."""

    what: str
    ours_seconds: float
    baseline: str
    baseline_seconds: float
    target: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.baseline_seconds / self.ours_seconds

    @property
    def verdict(self) -> str:
        return "no target" if self.target is None else "ok" if self.ratio >= self.target else "MISSED"

    def line(self) -> str:
        """The figure as a line of text: what, ours, baseline, ratio, target, verdict."""
        wanted = "" if self.target is None else f"target {self.target:g}x  "
        return (
            f"{self.what:<40} ours {self.ours_seconds:7.3f} s   {self.baseline} {self.baseline_seconds:7.3f} s   "
            f"{self.ratio:6.2f}x   {wanted}{self.verdict}" + (f"\n    {self.note}" if self.note else "")
        )

    def record(self) -> dict[str, Any]:
        """The figure for the bench's JSON."""
        baseline = {"name": self.baseline, **number_record(repeats_of(self.baseline_seconds))}
        return {
            "name": self.what,
            "unit": "s",
            **number_record(repeats_of(self.ours_seconds)),
            "better": "lower",
            "baseline": baseline,
            "ratio": self.ratio,
            "target": self.target,
            "verdict": self.verdict,
            "note": self.note,
        }


@dataclass(frozen=True)
class Measured:
    """One line of the bench without a baseline: a rate, a share, seconds per item. `most` says that less is better."""

    what: str
    unit: str
    repeats: Sequence[float]
    least: float | None = None
    most: float | None = None
    note: str = ""
    lower_is_better: bool = False

    @property
    def value(self) -> float:
        return statistics.median(self.repeats)

    @property
    def verdict(self) -> str:
        if self.least is None and self.most is None:
            return "no target"
        low = self.least is not None and self.value < self.least
        return "MISSED" if low or (self.most is not None and self.value > self.most) else "ok"

    def line(self) -> str:
        """The figure as a line of text: what, the median and the range of its repeats, target, verdict."""
        low, high = (shown(end, self.unit) for end in (min(self.repeats), max(self.repeats)))
        spread = f"  ({low} to {high})" if low != high else ""
        bound = "" if self.least is None else f"at least {shown(self.least, self.unit)}  "
        bound = bound if self.most is None else f"at most {shown(self.most, self.unit)}  "
        verdict = f"   {bound}{self.verdict}" if bound else ""
        note = f"\n    {self.note}" if self.note else ""
        return f"{self.what:<56} {shown(self.value, self.unit):>10} {self.unit}{spread}{verdict}{note}"

    def record(self) -> dict[str, Any]:
        """The figure for the bench's JSON."""
        lower = self.lower_is_better or self.most is not None
        return {
            "name": self.what,
            "unit": self.unit,
            **number_record(self.repeats),
            "better": "lower" if lower else "higher",
            "target": self.least if self.most is None else self.most,
            "verdict": self.verdict,
            "note": self.note,
        }


def shown(value: float, unit: str) -> str:
    """A number with three digits or more; a share in percent."""
    return f"{100 * value:.0f}%" if unit == "share" else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Wait:
    """One line of the bench on the seconds that a user waits for a command, beside the most that it should take."""

    what: str
    seconds: float
    most_seconds: float
    note: str = ""

    def line(self) -> str:
        """The figure as a line of text: what, seconds, target, verdict."""
        verdict = "ok" if self.seconds <= self.most_seconds else "MISSED"
        words = f"{self.what:<40} {self.seconds:7.2f} s   target {self.most_seconds:g} s  {verdict}"
        return words + (f"\n    {self.note}" if self.note else "")


@dataclass(frozen=True)
class Memory:
    """One line of the bench on the peak resident size of a process."""

    what: str
    peak_bytes: int
    most_bytes: float
    note: str = ""

    @property
    def verdict(self) -> str:
        return "ok" if self.peak_bytes < self.most_bytes else "MISSED"

    def line(self) -> str:
        """The figure as a line of text: what, peak, target, verdict."""
        return (
            f"{self.what:<40} peak {self.peak_bytes / 1e6:,.0f} MB   target {self.most_bytes / 1e6:,.0f} MB  "
            f"{self.verdict}" + (f"\n    {self.note}" if self.note else "")
        )

    def record(self) -> dict[str, Any]:
        """The figure for the bench's JSON."""
        return {
            "name": self.what,
            "unit": "B",
            **number_record([self.peak_bytes]),
            "better": "lower",
            "target": self.most_bytes,
            "verdict": self.verdict,
            "note": self.note,
        }


def peak_resident_bytes() -> int:
    """The most that this process held so far. `ru_maxrss` would count what its parent held before the exec."""
    return _status_bytes("VmHWM")


def resident_bytes() -> int:
    """What this process holds now."""
    return _status_bytes("VmRSS")


def _status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1_024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def cpu_seconds_of(action: Callable[[], object]) -> float:
    """CPU seconds of one call in this process, all its threads together.

    Files are in the page cache, so this is the wall time of a quiet machine; a busy neighbour leaves it almost alone.
    """
    started = time.process_time()
    action()
    return time.process_time() - started


def wall_seconds_of(action: Callable[[], object]) -> float:
    """Seconds of one call by the clock: for what other processes and the disk do."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def best_of_each(ours: Callable[[], object], baseline: Callable[[], object], rounds: int) -> tuple[Best, Best]:
    """The best CPU seconds of either, taken in turns: a neighbour that fills the caches slows both."""
    turns = [(cpu_seconds_of(ours), cpu_seconds_of(baseline)) for _ in range(rounds)]
    return Best([own for own, _ in turns]), Best([other for _, other in turns])
