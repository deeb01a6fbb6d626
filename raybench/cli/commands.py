"""The command line: parse, call the library, print. Options, outputs and exit codes are a contract (see the README).

Every option is accepted with `-` or `_`. A problem of the user's is one line on standard error and exit code 2; a shard
that failed for good is 3; an interrupt is 130 and says how to go on. Each command imports what it needs when it runs,
so that help and lists are there at once.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybench import __version__
from raybench.atomic_files import not_for_everybody
from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.list_sizes import ListSizes
from raybench.cli.groups import GroupedCommand
from raybench.cli.interrupts import end_in_order_on_signals, say_interrupted
from raybench.descriptors import (
    DESCRIPTORS,
    FLOW_METHODS,
    IMAGE_DESCRIPTORS,
    IMAGE_MODEL_FILES,
    MODEL_FILES,
    RUN_CODE,
)
from raybench.errors import ConfigError, InputError, ShardFailed, suggestion
from raybench.masking import masked
from raybench.parallel import in_parallel
from raybench.visible import AS_ESCAPES, visible, visible_lines

if TYPE_CHECKING:
    from raybench.runs.report.page import Shown

POSITIVE = click.IntRange(min=1)
TRUST = "runs code from that file: only use files you trust"
MOST_LINES = 50  # problems shown at once; a wrong folder can give thousands


def main(arguments: Sequence[str] | None = None) -> None:
    """The `raybench` command."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    end_in_order_on_signals()
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str]) -> int:
    """Run one command and say what went wrong with it, if anything."""
    try:
        cli.main(arguments, prog_name="raybench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except (KeyboardInterrupt, click.Abort):
        return say_interrupted()
    except Exception as error:  # noqa: BLE001 (the last line of defence: say it in one line)
        code = _say_error(error)
        if "--debug" in arguments:
            click.echo(masked(visible_lines(traceback.format_exc())), err=True)
        return code
    return 0


def _say_error(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, InputError | click.ClickException):
        _say_problems(error)
        return 2
    if isinstance(error, ShardFailed):
        _say(f"error: {error}", err=True)
        _say("what is published stays; the same command goes on from there", err=True)
        return 3
    _say(f"error: {type(error).__name__}: {error} (unexpected; --debug shows where)", err=True)
    return 1


def _say(line: str, err: bool = False) -> None:
    """One line for a terminal. Names from data in it can neither end it nor command the terminal; a signed URL, which a
    library's error may hold, is masked."""
    click.echo(visible(masked(line)), err=err)


def _say_problems(error: InputError | click.ClickException) -> None:
    lines = error.lines() if isinstance(error, InputError) else [" ".join(error.format_message().split())]
    for line in lines[:MOST_LINES]:
        _say(f"error: {line}", err=True)
    if len(lines) > MOST_LINES:
        click.echo(f"error: … and {len(lines) - MOST_LINES:,} more problems", err=True)


@click.group(
    context_settings={
        "token_normalize_func": lambda token: token.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    }
)
@click.version_option(__version__)
def cli() -> None:
    """Evaluate descriptors, copy detection and dense flow: images → descriptors → results → table."""


Action = Callable[[Sequence[str]], Callable[..., None]]  # from the names of benchmarks to what runs them


class BenchmarkGroup(click.Group):
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

        return GroupedCommand(cmd_name, options, callback=self._action(names), help=described)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            raise ConfigError(
                f"unknown benchmark {args[0]}{suggestion(args[0], BENCHMARKS)}; they are {', '.join(BENCHMARKS)}, "
                f"and all at once {', '.join(FAMILIES)}"
            )
        return super().resolve_command(ctx, args)


def _run(names: Sequence[str]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from raybench import storage
        from raybench.cli.options import jobs_of
        from raybench.runs.evaluate import evaluate_all

        jobs, settings = jobs_of([BENCHMARKS[name].open() for name in names], given)
        for found in evaluate_all(jobs, settings):
            if found.already_done:
                _say(f"{found.out}: done already, with the same arguments and inputs; nothing computed", err=True)
            click.echo(found.tables[0].to_text())
            _say(f"table {storage.join(found.out, found.tables[0].file_name)}")
            _say(f"report {found.report}")

    return command


def _check(names: Sequence[str]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from raybench.cli.options import jobs_of
        from raybench.runs.evaluate import preflight

        for found in preflight(*jobs_of([BENCHMARKS[name].open() for name in names], given)):
            _say(f"good: {found}")

    return command


cli.add_command(BenchmarkGroup("run", "Run a benchmark, or resume it.", _run, out_required=True))
cli.add_command(
    BenchmarkGroup("check", "Find in seconds what `run` would trip over; computes nothing.", _check, out_required=False)
)


@cli.command("list")
def list_() -> None:
    """Benchmarks and descriptors, and what each needs."""
    click.echo("benchmarks")
    for name, benchmark in BENCHMARKS.items():
        click.echo(f"  {name:<24} {benchmark.summary}\n  {'':<24} needs {benchmark.needs}")
    for family, names in FAMILIES.items():
        click.echo(f"  {family:<24} at once: {', '.join(names)}")
    _list_descriptors("patches (hbench-*, hpatches-*)", DESCRIPTORS, MODEL_FILES)
    _list_descriptors("images (disc2021, copydays)", IMAGE_DESCRIPTORS, IMAGE_MODEL_FILES)
    _list_descriptors("image pairs: flow methods (tss)", FLOW_METHODS, ())


def _list_descriptors(of: str, named: Iterable[str], files: Collection[str]) -> None:
    click.echo(f"\ndescriptors of {of}\n  {', '.join(named)}\n  module:Class (your own; see the README; {TRUST})")
    for kind in files:
        click.echo(f"  {kind}:URI (a model file; {TRUST if kind in RUN_CODE else 'runs no code from it'})")


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--out", default="report.html", show_default=True, metavar="FILE.html")
def report(runs: tuple[str, ...], out: str) -> None:
    """One self-contained page over finished runs."""
    from raybench import storage
    from raybench.runs.report.page import write_report

    page = write_report([_shown(uri) for uri in map(storage.checked, runs)])
    target = storage.checked(out)
    storage.publish(target, page.encode(errors=AS_ESCAPES))
    _say(f"report {target}")


def _shown(uri: str) -> Shown:
    """A run for the page, without pictures where what they show is gone."""
    from raybench.runs.finished import finished_manifest, shown_run

    finished_manifest(uri)
    try:
        return shown_run(uri)
    except InputError as error:
        found = shown_run(uri, pictured=False)
        _say(f"{uri}: no pictures ({error})", err=True)
        return found


@cli.command()
@click.argument("protocol", type=click.Choice(["hbench", "hpatches"]))
@click.option("--data", metavar="URI", help="folder of SEQ/IM.png strips")
@click.option("--features", metavar="URI", help="or folder of descriptors, SEQ/IM.csv and other kinds")
@click.option("--out", required=True, metavar="URI", help="where the task files go; becomes --benchmarks or --tasks")
@click.option(
    "--positives", type=POSITIVE, default=ListSizes.positives, show_default=True, help="pairs per list of matches"
)
@click.option(
    "--negatives", type=POSITIVE, default=ListSizes.negatives, show_default=True, help="pairs per list of others"
)
@click.option("--queries", type=POSITIVE, default=ListSizes.queries, show_default=True, help="of a retrieval task")
@click.option(
    "--distractors", type=POSITIVE, default=ListSizes.distractors, show_default=True, help="hpatches: of a split"
)
@click.option(
    "--pool-sequences", type=POSITIVE, default=ListSizes.pool_sequences, show_default=True, help="hbench: of a pool"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def tasks(protocol: str, data: str | None, features: str | None, out: str, seed: int, **sizes: int) -> None:
    """Make task files for patch data of your own: .benchmark sets (hbench) or split CSVs (hpatches)."""
    from raybench import storage
    from raybench.benchmarks.task_files import hbench_tasks, hpatches_tasks, patch_counts
    from raybench.sources.strips import Strips
    from raybench.sources.vector_files import VectorFiles

    if (data is None) == (features is None):
        raise ConfigError("tasks: give one of --data, --features")
    source = Strips.scan(storage.checked(data)) if data else VectorFiles.scan(storage.checked(features or ""))
    patches = patch_counts(source)
    make = hbench_tasks if protocol == "hbench" else hpatches_tasks
    files = make(patches, ListSizes(**sizes), seed)
    folder = storage.checked(out)
    in_parallel(lambda name: storage.publish(storage.join(folder, name), files[name].encode()), files)
    _say(f"{len(files)} task files over {len(patches)} sequences in {folder}")


@cli.command()
@click.option("--out", default="raybench-demo", show_default=True, metavar="DIR")
@click.option("--ray", default="local", show_default=True, metavar="ADDRESS|local|off")
@click.option("--progress", type=click.Choice(["auto", "bar", "json", "none"]), default="auto", show_default=True)
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
def demo(out: str, ray: str, progress: str) -> None:
    """Make small data sets from real photos, run every benchmark, write one report."""
    from raybench.demo.tour import run_demo
    from raybench.runs.jobs import Settings

    with not_for_everybody():
        tables, page = run_demo(Path(out).absolute(), Settings(ray=ray, progress=progress))
    for table in tables:
        click.echo(table.to_text())
    _say(f"report {page}")
