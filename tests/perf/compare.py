"""`make bench-compare A=one.json B=two.json`: which figures changed beyond their own noise from A to B.

What is compared is the median of the repeats; where ours and a baseline took turns, of ours / baseline of each turn, so
that a machine that was slower on one of the days shows in neither. The noise of a figure is the wider of the two ranges
of its repeats, and at least 5%; of a number that was taken once 20% are assumed.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LEAST_NOISE = 0.05
NOISE_OF_ONE = 0.2
SAME = ("cpu", "cores", "versions")  # of the machine, or the figures are of two things

Json = Mapping[str, Any]
Key = tuple[str, str]


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.compare", description=__doc__)
    parser.add_argument("a", type=Path, metavar="A", help="JSON of the bench before")
    parser.add_argument("b", type=Path, metavar="B", help="JSON of the bench after")
    given = parser.parse_args()
    for line in compared(json.loads(given.a.read_text()), json.loads(given.b.read_text())):
        print(line)


def compared(a: Json, b: Json) -> Iterator[str]:
    """What differs between two files of the bench, a line each, machines first."""
    yield from _conditions(a, b)
    before, after = _numbers(a), _numbers(b)
    both = [key for key in before if key in after]
    changes = {key: line for key in both if (line := _change(before[key], after[key]))}
    for (bench, name), line in changes.items():
        yield f"{bench}: {name}: {line}"
    if not changes:
        yield "no change beyond noise"
    yield f"{len(both)} figures compared, {len(changes)} changed"
    for which, here, there in (("A", before, after), ("B", after, before)):
        for bench, name in here:
            if (bench, name) not in there:
                yield f"only in {which}: {bench}: {name}"


def _conditions(a: Json, b: Json) -> Iterator[str]:
    for name, one in (("A", a), ("B", b)):
        of = one["machine"]
        modified = " with changes" if of["modified"] else ""
        low, high = one["load"]
        commit = f"commit {of['commit'][:10]}{modified}"
        yield f"{name}: {one['started']}, {commit}, {of['cores']} x {of['cpu']}, load {low:.1f} to {high:.1f}"
    for key in SAME:
        if a["machine"][key] != b["machine"][key]:
            yield f"warning: another {key}: {a['machine'][key]} in A, {b['machine'][key]} in B"


def _numbers(file: Json) -> dict[Key, Json]:
    return {(one["bench"], one["name"]): one for one in file["figures"] if "repeats" in one}


def _change(a: Json, b: Json) -> str | None:
    """In words, if the medians differ by more than the noise."""
    paired = all(_took_turns(one) for one in (a, b)) and a["baseline"]["name"] == b["baseline"]["name"]
    before, after = (_per_turn(one) if paired else one["repeats"] for one in (a, b))
    noise = max(_noise(before), _noise(after))
    change = statistics.median(after) / statistics.median(before) - 1
    if abs(change) <= noise:
        return None
    lower = b["better"] == "lower"
    word = ("slower" if change > 0 else "faster") if b["unit"] == "s" else ("more" if change > 0 else "less")
    if b["unit"] != "s":
        word += ", which is " + ("worse" if (change > 0) == lower else "better")
    shown = f"{a['median']:.4g} -> {b['median']:.4g} {b['unit']}"
    if paired:
        shown += f", {b['baseline']['name']} {a['baseline']['median']:.4g} -> {b['baseline']['median']:.4g} s"
    return f"{abs(change):.0%} {word} ({shown}; noise {noise:.0%})"


def _took_turns(one: Json) -> bool:
    baseline = one.get("baseline")
    return baseline is not None and len(baseline["repeats"]) == len(one["repeats"]) > 1


def _per_turn(one: Json) -> list[float]:
    return [own / other for own, other in zip(one["repeats"], one["baseline"]["repeats"], strict=True)]


def _noise(repeats: list[float]) -> float:
    """The range of the repeats as a share of their median."""
    if len(repeats) == 1:
        return NOISE_OF_ONE
    return max(LEAST_NOISE, (max(repeats) - min(repeats)) / statistics.median(repeats))


if __name__ == "__main__":
    main()
