"""`raybench doctor`: versions, devices, Ray, room and storage in one table to paste into an issue. No secrets.

Nothing that is missing is an error: the table says so, and the exit code is 0.
"""

from __future__ import annotations

import textwrap

import click

from raybench.visible import visible


@click.command()
@click.argument("uris", nargs=-1, metavar="[URI…]")
@click.option("--ray", "with_ray", is_flag=True, help="also start a local Ray, or join RAY_ADDRESS; takes seconds")
@click.option("--format", "kind", type=click.Choice(["table", "markdown"]), default="table", show_default=True)
def doctor(uris: tuple[str, ...], with_ray: bool, kind: str) -> None:
    """What is installed and reachable here, in a table for an issue.

    Each URI, such as s3://bucket/path, is tried: a small file is written there, listed, read and deleted.
    """
    from raybench.cli.findings import examined
    from raybench.cli.probes import LOOK
    from raybench.cli.tables import terminal_width
    from raybench.masking import masked
    from raybench.table import Table

    rows = [(masked(what), masked(found), state) for what, found, state in examined(uris, with_ray)]
    table = Table("doctor", ("what", "found", "state"), tuple(rows))
    if kind == "markdown":
        click.echo(table.to_markdown())
        return
    width = terminal_width()
    head, body = table.to_text().splitlines()[:2], table.to_text().splitlines()[2:]
    if width is not None and max(map(len, body)) > width:
        head, body = [], [_told(row, width) for row in rows]
    for line in head:
        click.echo(line)
    for line, (_, _, state) in zip(body, rows, strict=True):
        click.echo(click.style(line, fg="yellow") if state == LOOK else line)


def _told(row: tuple[str, str, str], width: int) -> str:
    """A row for a terminal that is too narrow for the table."""
    what, found, state = row
    return textwrap.fill(visible(f"{what}: {found} ({state})"), width, subsequent_indent="  ", break_on_hyphens=False)
