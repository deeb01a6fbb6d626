"""What a bench reports: seconds of ours and of a baseline from one run, their ratio, and the target if there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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

    def line(self) -> str:
        """The figure as a line of text: what, ours, baseline, ratio, target, verdict."""
        if self.target is None:
            verdict = "no target"
        else:
            verdict = f"target {self.target:g}x  {'ok' if self.ratio >= self.target else 'MISSED'}"
        return (
            f"{self.what:<40} ours {self.ours_seconds:7.3f} s   {self.baseline} {self.baseline_seconds:7.3f} s   "
            f"{self.ratio:6.2f}x   {verdict}" + (f"\n    {self.note}" if self.note else "")
        )


@dataclass(frozen=True)
class Memory:
    """One line of the bench on the peak resident size of a process."""

    what: str
    peak_bytes: int
    most_bytes: float

    def line(self) -> str:
        """The figure as a line of text: what, peak, target, verdict."""
        verdict = "ok" if self.peak_bytes < self.most_bytes else "MISSED"
        return (
            f"{self.what:<40} peak {self.peak_bytes / 1e6:,.0f} MB   target {self.most_bytes / 1e6:,.0f} MB  {verdict}"
        )


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


def best_of_each(ours: Callable[[], object], baseline: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The best CPU seconds of either, taken in turns: a neighbour that fills the caches slows both."""
    turns = [(cpu_seconds_of(ours), cpu_seconds_of(baseline)) for _ in range(rounds)]
    return min(own for own, _ in turns), min(other for _, other in turns)
