"""What `run` says at its end, on standard error: where the time went, what was found and tried again, and the line that
repeats the run on a cluster. Standard output has the tables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from raybench import storage
from raybench.benchmarks.options import Option
from raybench.cli.lines import command_lines, say
from raybench.cli.tables import show_table, terminal_width
from raybench.engine.progress_words import duration, size
from raybench.masking import masked
from raybench.table import Cell, Table
from raybench.visible import visible_lines

MOST_STAGES = 6  # with a line of their own, the longest
LEAST_SHARE = 0.02  # of the stages' seconds, for a line of its own
# Options of this machine and of this call: a cluster has its own CPUs, a job joins the Ray that runs it.
OF_THIS_CALL = ("ray", "cpus", "progress", "overwrite")


@dataclass(frozen=True)
class Spent:
    """One or several stages of a name: seconds, shards, and what went through them."""

    name: str
    stages: int
    seconds: float
    shards: int
    found: int
    items: int
    size_bytes: int
    tried_again: int
    lost: int
    repaired: int

    @classmethod
    def of(cls, name: str, records: Sequence[Mapping[str, Any]]) -> Spent:
        def total(key: str) -> int:
            return sum(record.get(key, 0) for record in records)

        return cls(
            name=name,
            stages=len(records),
            seconds=sum(record["seconds"] for record in records),
            shards=total("shards"),
            found=total("found"),
            items=total("items"),
            size_bytes=total("size_bytes"),
            tried_again=total("attempts") - total("computed"),
            lost=total("lost"),
            repaired=total("repaired"),
        )


def show_ending(records: Sequence[Mapping[str, Any]], seconds: float, again: Sequence[str]) -> None:
    """Where `seconds` went, by the manifests' records of stages; and `again`, the words of a command, for a cluster."""
    click.echo(err=True)
    if records:
        show_table(time_table(records), err=True)
        say(sums_line(records, seconds), err=True)
    text = f"on a cluster, where nodes reach these paths:{command_text(again, terminal_width(err=True))}"
    click.echo(masked(visible_lines(text)), err=True)


def time_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """Seconds by stage in the order of the run, those of one name together, the shortest as `others`."""
    names = dict.fromkeys(record["name"] for record in records)
    spent = [Spent.of(name, [one for one in records if one["name"] == name]) for name in names]
    least = LEAST_SHARE * sum(one.seconds for one in spent)
    longest = sorted((one for one in spent if one.seconds >= least), key=lambda one: -one.seconds)[:MOST_STAGES]
    rows = [_row(one) for one in spent if one in longest]
    others = [record for record in records if record["name"] not in {one.name for one in longest}]
    if others:
        rows.append(_row(Spent.of(f"{len(others)} others", others), of_one_kind=False))
    columns = ("stage", "seconds", "items", "items/s", "written", "found")
    shown = len(columns) if any(row[-1] for row in rows) else -1  # `found` stands only where something was
    return Table("stages", columns[:shown], tuple(row[:shown] for row in rows))


def _row(one: Spent, of_one_kind: bool = True) -> tuple[Cell, ...]:
    """Items of several kinds are not added up."""
    items = one.items if of_one_kind else None
    rate = round(items / one.seconds, 1) if items and one.seconds else None
    found = f"{one.found:,} of {one.shards:,}" if one.found else ""
    return (one.name, round(one.seconds, 2), items, rate, size(one.size_bytes), found)


def sums_line(records: Sequence[Mapping[str, Any]], seconds: float) -> str:
    """The run in one line; what did not happen is not named."""
    every = Spent.of("", records)
    words = [f"{duration(seconds)} in all, {duration(every.seconds)} of them in {every.stages} stages"]
    words.append(f"{size(every.size_bytes)} written")
    if every.found:
        words.append(f"{every.found:,} of {every.shards:,} shards found in the store")
    if every.tried_again:
        words.append(f"{every.tried_again:,} shards tried again after a failure")
    if every.lost:
        words.append(f"{every.lost:,} given out again after a lost worker")
    if every.repaired:
        words.append(f"{every.repaired:,} broken shards repaired")
    return "; ".join(words)


def command_text(words: Sequence[str], width: int | None) -> str:
    """A command for a shell: behind the words before it, or on a terminal below them, in lines that fit."""
    command = shlex.join(words)
    if width is None or any(" --" in word for word in words):
        return f" {command}"
    return f"\n{command_lines(command, width)}"


def cluster_words(benchmark: str, known: Sequence[Option], given: Mapping[str, Any]) -> list[str]:
    """The command that submits the same run as a Ray job from this folder, which holds a class of the user's own."""
    words = ["ray", "job", "submit", "--working-dir", ".", "--", "python", "-m", "raybench", "run", benchmark]
    for one in {one.key: one for one in known}.values():
        value = given.get(one.key)
        if one.key not in OF_THIS_CALL and value not in (None, (), "", one.default):
            for part in value if one.several else (value,):
                words += [f"--{one.name}", _text(one, part)]
    return words


def _text(one: Option, value: Any) -> str:
    if one.kind is bool:
        return str(value).lower()
    return storage.checked(value) if one.is_uri else str(value)
