"""Durations, counts and finished stages in words, for the live line, for logs and for the end of a run."""

from __future__ import annotations

from raybench.engine.course import Pace

KILO = 1_000


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are some.

    >>> clock(7.9), clock(75), clock(3_675)
    ('0:07', '1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def duration(seconds: float) -> str:
    """How long something took.

    >>> duration(0.04), duration(7.94), duration(75)
    ('0.0 s', '7.9 s', '1:15 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return f"{clock(seconds)} {'h' if seconds >= 3_600 else 'min'}"


def per_second(rate: float) -> str:
    """A rate, with a decimal where it is small.

    >>> per_second(0.25), per_second(1_234.5)
    ('0.2/s', '1,234/s')
    """
    return f"{rate:,.1f}/s" if rate < 10 else f"{rate:,.0f}/s"


def size(count: float) -> str:
    """Bytes in decimal units.

    >>> size(512), size(2_300_000)
    ('512 B', '2.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < KILO:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= KILO
    return f"{count:.1f} TB"


def facts_of(pace: Pace) -> list[str]:
    """What a stage that is behind did, beside its time; one that was interrupted or failed did not do all."""
    facts = [f"{pace.items:,} items", per_second(pace.rate)] if pace.items else []
    if pace.done < pace.shards:
        facts.insert(0, f"stopped at {pace.done:,} of {pace.shards:,} shards")
    if pace.found:
        facts.append("found in the store" if not pace.items else f"{pace.found:,} of {pace.shards:,} shards found")
    if pace.retries:
        facts.append(f"{pace.retries:,} tried again")
    return facts
