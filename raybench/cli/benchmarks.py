"""`run` and `check`: commands whose next word is a benchmark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.guides import examples_of
from raybench.cli.groups import GroupedCommand, UncutGroup
from raybench.cli.lines import say
from raybench.errors import ConfigError, suggestion

Action = Callable[[Sequence[str]], Callable[..., None]]  # from the names of benchmarks to what runs them


class BenchmarkGroup(UncutGroup):
    """A command whose next word is a benchmark or a family of them, whose options are made when it is asked for."""

    def __init__(self, name: str, text: str, action: Action, out_required: bool) -> None:
        super().__init__(name, help=text)
        self._action, self._out_required = action, out_required

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*BENCHMARKS, *FAMILIES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        names = FAMILIES.get(cmd_name, (cmd_name,))
        if not BENCHMARKS.keys() >= set(names):
            return None
        first = BENCHMARKS[names[0]]
        summary = first.summary if len(names) == 1 else ", ".join(names)
        described = f"{summary}.\n\nNeeds {first.needs}."

        def options() -> tuple[list[click.Option], dict[str, str]]:
            from raybench.cli.options import command_options

            return command_options([BENCHMARKS[name].open() for name in names], self._out_required)

        return GroupedCommand(cmd_name, options, examples_of(cmd_name), callback=self._action(names), help=described)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise ConfigError(
                f"unknown benchmark {args[0]}{suggestion(args[0], BENCHMARKS)}; they are {', '.join(BENCHMARKS)}, "
                f"and all at once {', '.join(FAMILIES)}"
            )
        return super().resolve_command(ctx, args)


def _run(names: Sequence[str]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from raybench import storage
        from raybench.cli.options import jobs_of
        from raybench.cli.tables import show_table
        from raybench.engine.progress import kind_shown
        from raybench.runs.evaluate import evaluate_all, refuse_figures_below

        started = time.monotonic()
        jobs, settings = jobs_of([BENCHMARKS[name].open() for name in names], given)
        evaluations = evaluate_all(jobs, settings)
        seconds = time.monotonic() - started
        for number, found in enumerate(evaluations):
            if number:
                click.echo()
            if found.already_done:
                say(f"{found.out}: done already, with the same arguments and inputs; nothing computed", err=True)
            place = storage.join(found.out, found.tables[0].file_name)
            show_table(found.tables[0], f"{place} and on the page")
            say(f"table {place}")
            say(f"report {found.report}")
            if any(table.name == "intervals" for table in found.tables):
                say(f"intervals {storage.join(found.out, 'tables/intervals.csv')}")
            if not (sys.stdout.isatty() and sys.stderr.isatty()):  # where it stands in the table's notes already
                for note in found.tables[0].notes:
                    if note.startswith("WARNING"):
                        say(note, err=True)
        if kind_shown(settings.progress) in ("bar", "lines"):
            _end(names, given, [found.out for found in evaluations if not found.already_done], seconds)
        refuse_figures_below(evaluations, settings)

    return command


def _end(names: Sequence[str], given: dict[str, Any], outs: Sequence[str], seconds: float) -> None:
    """Say where the time of the runs into these folders went, if there are any, and how to repeat them on a cluster."""
    from raybench.cli.ending import cluster_words, show_ending
    from raybench.runs.jobs import options_for
    from raybench.runs.manifest import read_manifest

    if outs:
        manifests = [manifest for out in outs if (manifest := read_manifest(out)) is not None]
        records = [record for manifest in manifests for record in manifest.stages]
        known = [one for name in names for one in options_for(BENCHMARKS[name].open())]
        called = str(click.get_current_context().info_name)
        show_ending(records, seconds, cluster_words(called, known, given))


def _check(names: Sequence[str]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from raybench.cli.options import jobs_of
        from raybench.runs.preflight import preflight

        jobs, settings = jobs_of([BENCHMARKS[name].open() for name in names], given)
        for found in preflight(jobs, settings, lambda line: say(line, err=True)):
            say(f"good: {found}")

    return command


run = BenchmarkGroup("run", "Run a benchmark, or resume it.", _run, out_required=True)
check = BenchmarkGroup(
    "check",
    "Find in seconds what `run` would trip over: inputs, model, folders; publishes nothing.",
    _check,
    out_required=False,
)
