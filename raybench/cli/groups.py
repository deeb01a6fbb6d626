"""A command whose options stand in groups in its help, and are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from raybench.benchmarks.options import GROUPS
from raybench.cli.lines import command_lines

LONGEST_SUMMARY = 200  # of a command, in lists, where click would cut it to a line
Declared = Callable[[], tuple[list[click.Option], dict[str, str]]]  # options, and the group of each by its key


class UncutGroup(click.Group):
    """A group whose help shows the first sentence of each command in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(LONGEST_SUMMARY)) for name, one in commands if one])


class GroupedCommand(click.Command):
    """A command of a benchmark, whose module is imported only once its options are asked for: lists do without."""

    def __init__(self, name: str, declared: Declared, examples: Sequence[str] = (), **more: Any) -> None:
        super().__init__(name, **more)
        self._declared, self._examples = declared, examples
        self._groups: dict[str, str] = {}  # what is in none comes with the last

    def declare_again(self, change: Callable[[list[click.Option], dict[str, str]], Any]) -> None:
        """Let these options be others, made from them when they are asked for."""
        declared = self._declared
        self._declared = lambda: change(*declared())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            options, self._groups = self._declared()
            self.params = list(options)
        return super().get_params(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self._examples:
            formatter.write_paragraph()
            formatter.write("Examples:\n")
            for given in self._examples:
                formatter.write(f"{command_lines(f'{ctx.command_path} {given}', formatter.width)}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            own = [one for one in self.get_params(ctx) if self._groups.get(one.name or "", GROUPS[-1]) == group]
            records = [record for one in own if (record := one.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(records)
