"""`raybench plan`: what a run will take, before it is started."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from raybench.benchmarks import BENCHMARKS
from raybench.cli.benchmarks import BenchmarkGroup
from raybench.cli.groups import GroupedCommand
from raybench.cli.lines import say
from raybench.errors import ConfigError

HELP = """Estimate what a run takes: shards, bytes, memory, time and cost, from a probe of at most a minute.

A small random sample of the real items goes through the real code, here or on the cluster that is joined; what is in
the --store already costs nothing. Runs nothing else and leaves nothing behind. Without GPUs the counts are CPUs.

\b
Examples:
  raybench plan disc2021 --data s3://bucket/disc --descriptor sscd:model.pt --gpus 1,8,64 --price-per-gpu-hour 1.2
  raybench plan hpatches --data hpatches --tasks tasks --descriptor sift --ray off --format json
"""


class PlanGroup(BenchmarkGroup):
    """`run`'s options, with a list of counts for `--gpus`, a price and a format."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            assert isinstance(command, GroupedCommand)
            command.declare_again(_with_counts)
        return command


def _with_counts(options: list[click.Option], groups: dict[str, str]) -> tuple[list[click.Option], dict[str, str]]:
    own = [
        click.Option(
            ["--gpus"],
            default="1,8,64",
            metavar="N,…",
            help="numbers of GPUs to estimate for; of CPUs where there are no GPUs [default: 1,8,64]",
        ),
        click.Option(
            ["--price-per-gpu-hour"],
            type=click.FloatRange(min=0),
            metavar="X",
            help="price of one GPU (or CPU) for an hour, for the cost [default: none]",
        ),
        click.Option(
            ["--format", "form"],
            type=click.Choice(["table", "json"]),
            default="table",
            help="how the estimate is printed [default: table]",
        ),
    ]
    return [*(one for one in options if one.name != "gpus"), *own], groups


def _plan(names: Sequence[str]) -> Callable[..., None]:
    def command(gpus: str, price_per_gpu_hour: float | None, form: str, **given: Any) -> None:
        from raybench.cli.options import jobs_of
        from raybench.cli.tables import show_table
        from raybench.runs.planning.plan import plan_all

        counts = _counts(gpus)
        if given["progress"] == "auto":  # a sample that fails, as some do for want of real inputs, is nobody's concern
            given["progress"] = "none"
        jobs, settings = jobs_of([BENCHMARKS[name].open() for name in names], {**given, "gpus": None})
        say("probing, for a minute at most; nothing is run", err=True)
        found = plan_all(jobs, settings, counts, price_per_gpu_hour, jobs[0].seed)
        if form == "json":
            click.echo(json.dumps(found.to_json(), indent=1))
            return
        stages, sums = found.tables()
        show_table(stages)
        show_table(sums)
        say(f"bottleneck: {found.bottleneck}")
        say(f"peak memory per worker: {found.peak_memory_bytes / 2**30:.2f} GiB")
        say(f"probe: {found.probe['seconds']} s {found.probe['where']}; counted are {found.probe['counted']}")
        for note in (*found.probe["notes"], *(f"not measured: {line}" for line in found.probe["not_measured"])):
            say(f"note: {note}")

    return command


def _counts(text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise ConfigError(f"--gpus {text}: expected numbers of GPUs with commas, such as 1,8,64")
    return list(dict.fromkeys(counts))


plan = PlanGroup("plan", HELP, _plan, out_required=False)
