"""The command line: parse, call the library, print. Options, outputs and exit codes are a contract (see the README).

Every option is accepted with `-` or `_`. A problem of the user's is one line on standard error and exit code 2; a shard
that failed for good, or a class of the user's own that raises in a run, is 3; a figure below `--fail-below` is 4;
figures that differ from what they should be are 5; an interrupt is 130 and says how to go on. Each command imports what
it needs when it runs, so that help and lists are there at once.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from raybench import __version__
from raybench.cli.groups import UncutGroup
from raybench.cli.interrupts import end_in_order_on_signals, say_interrupted
from raybench.cli.lines import say
from raybench.errors import ConfigError, FigureBelow, InputError, OwnCodeFailed, ShardFailed, suggestion
from raybench.masking import masked
from raybench.visible import visible_lines

COMMANDS = {  # in the order of help: module and name below raybench.cli
    "list": "listing:list_",
    "demo": "demo:demo",
    "check": "benchmarks:check",
    "plan": "plan:plan",
    "run": "benchmarks:run",
    "compare": "compare:compare",
    "report": "report:report",
    "rescore": "rescore:rescore",
    "verify": "verify:verify",
    "selftest": "selftest:selftest",
    "tasks": "tasks:tasks",
    "datasets": "datasets:datasets",
    "doctor": "doctor:doctor",
    "completion": "completion:completion",
}
MOST_LINES = 50  # problems shown at once; a wrong folder can give thousands


def main(arguments: Sequence[str] | None = None) -> None:
    """The `raybench` command."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    end_in_order_on_signals()
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str]) -> int:
    """Run one command and say what went wrong with it, if anything."""
    try:
        ended = cli.main(arguments, prog_name="raybench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except (KeyboardInterrupt, click.Abort):
        return say_interrupted()
    except Exception as error:  # noqa: BLE001 (the last line of defence: say it in one line)
        code = _say_error(error)
        if "--debug" in arguments:
            trace = error.trace if isinstance(error, OwnCodeFailed) else "".join(traceback.format_exception(error))
            click.echo(masked(visible_lines(trace)), err=True)
        return code
    return ended if isinstance(ended, int) else 0  # what a command ended with by `ctx.exit`


def _say_error(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, InputError | click.ClickException):
        _say_problems(error)
        return 2
    if isinstance(error, FigureBelow):
        for line in error.lines():
            say(f"below: {line}", err=True)
        return 4
    if isinstance(error, OwnCodeFailed):
        say(f"error: {error}", err=True)
        say("mend the class, then the same command goes on; --debug shows the whole traceback", err=True)
        return 3
    if isinstance(error, ShardFailed):
        say(f"error: {error}", err=True)
        say("what is published stays; the same command goes on from there", err=True)
        return 3
    say(f"error: {type(error).__name__}: {error} (unexpected; --debug shows where)", err=True)
    return 1


def _say_problems(error: InputError | click.ClickException) -> None:
    lines = error.lines() if isinstance(error, InputError) else [_usage_line(error)]
    for line in lines[:MOST_LINES]:
        say(f"error: {line}", err=True)
    if len(lines) > MOST_LINES:
        click.echo(f"error: … and {len(lines) - MOST_LINES:,} more problems", err=True)


def _usage_line(error: click.ClickException) -> str:
    """What click says of a wrong option in one line; of one that other benchmarks have, which."""
    line = " ".join(error.format_message().split())
    if line.startswith("Got unexpected extra argument") and line.rstrip(")").endswith((".tar", ".zip")):
        return f"{line}; a shell takes braces apart: put 'name-{{000..009}}.tar' in quotes"
    if not isinstance(error, click.NoSuchOption):
        return line
    from raybench.benchmarks import BENCHMARKS
    from raybench.benchmarks.options import options_of

    having = [
        name
        for name, listed in BENCHMARKS.items()
        if any(f"--{one.name}" == error.option_name for one in options_of(listed.open().options))
    ]
    if error.possibilities and not having:
        return line
    command = error.ctx.command_path if error.ctx is not None else "raybench"
    what = f"{', '.join(having)} take it" if having else "nothing takes it"
    return f"{command}: no such option {error.option_name}; {what}; `{command} --help` lists what there is"


class Commands(UncutGroup):
    """The commands, each of which is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = COMMANDS.get(cmd_name)
        if where is None:
            return None
        module, _, name = where.partition(":")
        found: click.Command = getattr(importlib.import_module(f"raybench.cli.{module}"), name)
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        unknown = args and not args[0].startswith("-") and args[0] not in COMMANDS
        if unknown and not ctx.resilient_parsing:  # a shell that completes a line wants no error
            raise ConfigError(f"no command {args[0]}{suggestion(args[0], COMMANDS)}; they are {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={
        "token_normalize_func": lambda token: token.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
)
@click.version_option(__version__)
def cli() -> None:
    """Evaluate descriptors, copy detection and dense flow: images → descriptors → results → table."""
