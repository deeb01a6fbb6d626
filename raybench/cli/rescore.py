"""`raybench rescore`: a command whose next word is a finished run, which says what options there are."""

from __future__ import annotations

from typing import Any

import click

from raybench.cli.groups import GroupedCommand
from raybench.cli.lines import say
from raybench.errors import ConfigError

HELP = """Score the features of a finished run by other rules: codecs, score norms, k, distance, split or tasks.

No image is read again: vectors come from the run's store, where new stages go, too, and the images may be gone. Options
that are not given are those of the finished run. `raybench rescore RUN --help` shows what a run's benchmark offers.

\b
Examples:
  raybench rescore runs/disc --out runs/disc-k20 --k 20 --score-norm none
  raybench rescore runs/sift --out runs/sift-l1 --distance L1
"""


class RescoreGroup(click.Group):
    """The command, whose options are made when the run is known."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return []

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from raybench import storage
        from raybench.runs.rescore import finished_run, offered

        run = storage.checked(cmd_name)
        _, benchmark = finished_run(run)
        keys = [*offered(benchmark), "debug"]

        def options() -> tuple[list[click.Option], dict[str, str]]:
            from raybench.cli.options import command_options

            every, groups = command_options([benchmark], out_required=True)
            return [one for one in every if one.name in keys], groups

        return GroupedCommand(cmd_name, options, callback=_rescore(run), help=f"Score {run} ({benchmark.name}) again.")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0].startswith("-"):
            raise ConfigError(f"rescore: name the run first: raybench rescore RUN {args[0]} …")
        run, command = args[0], self.get_command(ctx, args[0])
        return run, command, args[1:]


def _rescore(run: str) -> Any:
    def command(**_: Any) -> None:
        from raybench import storage
        from raybench.cli.tables import show_table
        from raybench.runs.evaluate import evaluate_all
        from raybench.runs.rescore import rescoring

        context = click.get_current_context()
        given = {
            key: value
            for key, value in context.params.items()
            if context.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE
        }
        job, settings = rescoring(run, given)
        (found,) = evaluate_all([job], settings)
        if found.already_done:
            say(f"{found.out}: done already, with the same arguments and inputs; nothing computed", err=True)
        place = storage.join(found.out, found.tables[0].file_name)
        show_table(found.tables[0], f"{place} and on the page")
        say(f"table {place}")
        say(f"report {found.report}")

    return command


rescore = RescoreGroup("rescore", help=HELP, subcommand_metavar="RUN --out URI [OPTIONS]")
