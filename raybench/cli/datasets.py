"""`raybench datasets`: the published sets; of one its folders and how to get it; whether a folder holds it."""

from __future__ import annotations

import dataclasses
import json
import shutil
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from raybench.cli.groups import UncutGroup
from raybench.cli.lines import say
from raybench.cli.listing import MOST_WIDTH, tree_line
from raybench.datasets.parts import Counted, Exactly, Grouped, Numbered, Part, PublishedSet
from raybench.datasets.published import PUBLISHED
from raybench.errors import ConfigError, Problems, suggestion

if TYPE_CHECKING:
    from raybench.datasets.checking import Checked

HELP = """Published data sets: size, licence, links; of one its folders and steps. Downloads nothing.

`raybench datasets NAME` shows one set: its tree, its counts and known digests, and the steps to get it.

\b
Examples:
  raybench datasets disc2021
  raybench datasets check hpatches s3://BUCKET/hpatches-release
"""
CHECK_HELP = """Say what a folder lacks of a published set, or what is broken in it.

PATH may be a folder, s3:// or another URL. It is listed once. Exit code 0: all is there; 2: one line per problem.

\b
Examples:
  raybench datasets check copydays data/copydays
  raybench datasets check disc2021 s3://BUCKET/disc --read headers --format json
"""

OF_PHOTOTOUR = ("liberty", "notredame", "yosemite")
# What sets are called elsewhere, and which they are here.
CALLED_ELSEWHERE = {
    **dict.fromkeys(("phototour", "photo-tour", "photo-tourism", "brown", "ubc"), OF_PHOTOTOUR),
    **dict.fromkeys(("hpatches-release", "hpatches-benchmark"), ("hpatches", "hpatches-tasks")),
    **dict.fromkeys(("oxford", "oxford5k", "roxford"), ("roxford5k",)),
    **dict.fromkeys(("paris", "paris6k", "rparis"), ("rparis6k",)),
    **dict.fromkeys(("revisited", "revisitop"), ("roxford5k", "rparis6k", "revisitop1m")),
    **dict.fromkeys(("disc", "disc21", "isc2021"), ("disc2021",)),
}


def format_option() -> Callable[[Any], Any]:
    return click.option(
        "--format", "form", type=click.Choice(["table", "json"]), default="table", help="[default: table]"
    )


class SetsGroup(UncutGroup):
    """`check`, and a command for each set, which shows it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["check", *PUBLISHED]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "check":
            return check
        one = PUBLISHED.get(cmd_name)
        if one is None:
            return None

        @click.command(cmd_name, help=f"{one.title}.", short_help=one.title)
        @format_option()
        def show(form: str) -> None:
            if form == "json" or ctx.params.get("form") == "json":
                click.echo(json.dumps({"set": cmd_name, **_shown(one)}, indent=2))
            else:
                _show(cmd_name, one)

        return show

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise ConfigError(_unknown(args[0]))
        return super().resolve_command(ctx, args)


@click.group(cls=SetsGroup, help=HELP, invoke_without_command=True)
@format_option()
@click.pass_context
def datasets(ctx: click.Context, form: str) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if form == "json":
        rows = [{"set": name, **_shown(one)} for name, one in PUBLISHED.items()]
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo("published sets (`raybench datasets NAME` shows folders, counts and steps; nothing is downloaded)")
    for name, one in PUBLISHED.items():
        click.echo(_filled(f"  {name:<15} {one.title}", 18))
        click.echo(_filled(f"  {'':<15} size: {one.size}; licence: {one.licence}", 18))
        for command in dict.fromkeys(use.command for use in one.uses):
            click.echo(_filled(f"  {'':<15} for {command}", 22))
        for link in one.links:
            click.echo(f"  {'':<15} {link}")


def _names_beginning(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For shells: the sets that begin so."""
    return [name for name in PUBLISHED if name.startswith(incomplete)]


@click.command("check", help=CHECK_HELP)
@click.argument("name", shell_complete=_names_beginning)
@click.argument("path", type=click.Path())
@click.option(
    "--read",
    type=click.Choice(["sample", "headers", "all"]),
    default="sample",
    help="what is read of files: first bytes of a sample of each part, of all files, or all files whole "
    "[default: sample]",
)
@format_option()
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
def check(name: str, path: str, read: str, form: str) -> None:
    if name not in PUBLISHED:
        raise ConfigError(_unknown(name))
    from raybench import storage
    from raybench.datasets.checking import check_set

    found = check_set(name, PUBLISHED[name], storage.checked(path), read, lambda line: say(line, err=True))
    if form == "json":
        click.echo(json.dumps(_checked_json(found), indent=2))
    else:
        _show_checked(found)
    if found.problems:
        raise Problems(found.problems)
    if form == "table":
        say(f"good: {found.root} holds {name}")


def _unknown(name: str) -> str:
    meant = CALLED_ELSEWHERE.get(name.lower())
    hint = f" (did you mean {', '.join(meant)}?)" if meant else suggestion(name.lower(), PUBLISHED)
    return f"unknown set {name}{hint}; they are {', '.join(PUBLISHED)}"


def _shown(one: PublishedSet) -> dict[str, Any]:
    """A set for machines; patterns instead of many names."""
    shown = dataclasses.asdict(dataclasses.replace(one, parts=()))
    shown["parts"] = [
        {
            "role": part.role,
            "folders": list(part.folders),
            "needed": part.is_needed,
            "rule": type(part.names).__name__.lower(),
            **dataclasses.asdict(part.names),
        }
        for part in one.parts
    ]
    return shown


def _show(name: str, one: PublishedSet) -> None:
    for line in (f"{name}: {one.title}", f"size: {one.size}", f"licence: {one.licence}"):
        click.echo(_filled(line, 2))
    click.echo("\nlinks\n" + "".join(f"  {link}\n" for link in one.links))
    click.echo("folders (PATH, which may also be s3://… or another URL)")
    click.echo("".join(f"{tree_line(line, _width())}\n" for line in one.tree.splitlines()))
    click.echo(f"checks (`raybench datasets check {name} PATH`)")
    for part in one.parts:
        folders = " or ".join(f"{folder}/" if folder else "PATH" for folder in part.folders)
        optional = "" if part.is_needed else " (optional)"
        click.echo(_filled(f"  {part.role}{optional}: {_rule(part)} in {folders}", 4))
        for file in part.names.files if isinstance(part.names, Exactly) else ():
            if file.sha256:
                click.echo(f"    {file.name}: {file.size_bytes:,} bytes, sha256 {file.sha256}")
    click.echo("\nsteps (none is taken here)")
    for number, step in enumerate(one.steps, 1):
        click.echo(f"  {number}. {step}")
    click.echo(f"  {len(one.steps) + 1}. raybench datasets check {name} PATH")
    click.echo("\nfor")
    for use in one.uses:
        words = f"   ({use.words})" if use.words else ""
        click.echo(_filled(f"  raybench run {use.command}{words}: {', '.join(use.needs)}", 4))
    click.echo("\nwhere figures are from\n" + "\n".join(_filled(f"  {line}", 4) for line in one.figures_from))


def _rule(part: Part) -> str:
    """How many files of which names a part has."""
    rule = part.names
    if isinstance(rule, Grouped):
        return f"{rule.count:,} folders with {rule.files[0]} … {rule.files[-1]} ({len(rule.files)} files)"
    if isinstance(rule, Numbered):
        return f"{rule.count:,} files {rule.name(rule.starts[0])} … {rule.name(rule.starts[0] + rule.count - 1)}"
    if isinstance(rule, Counted):
        return f"{rule.count:,} files {rule.suffix}"
    if isinstance(rule, Exactly):
        names = [file.name for file in rule.files]
        return " or ".join(names) if rule.is_choice or not names[1:] else f"{len(names)} files, {names[0]} …"
    return f"{rule.count:,} files, as {rule.by} names them,"


def _checked_json(found: Checked) -> dict[str, Any]:
    shown = dataclasses.asdict(dataclasses.replace(found, parts=()))
    shown["parts"] = [
        {
            "role": one.part.role,
            "folder": one.folder,
            "needed": one.part.is_needed,
            "found": one.seen.found,
            "expected": one.seen.expected,
            "good": one.is_good,
        }
        for one in found.parts
    ]
    return shown


def _show_checked(found: Checked) -> None:
    from raybench.cli.tables import show_table
    from raybench.engine.progress_words import size
    from raybench.table import Table

    say(f"{found.name} in {found.root}: {found.files:,} files, {size(found.size_bytes)}")
    if not found.parts:
        return
    rows = [
        (
            one.part.role,
            f"{one.folder}/" if one.folder else ".",
            f"{one.seen.found:,}" if one.is_there else "–",
            f"{one.seen.expected:,}",
            "good" if one.is_good else "look below" if one.is_there or one.part.is_needed else "optional",
        )
        for one in found.parts
    ]
    show_table(Table("parts", ("part", "folder", "found", "expected", "state"), tuple(rows), notes=found.notes))
    for heading, lines in (("enough for", found.runs), ("not enough for", found.lacking)):
        if lines:
            say(heading)
        for line in lines:
            say(f"  {line}")


def _width() -> int:
    return min(shutil.get_terminal_size().columns, MOST_WIDTH)


def _filled(line: str, indent: int) -> str:
    return textwrap.fill(line, _width(), subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)
