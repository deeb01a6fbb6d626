"""Lines for a terminal."""

from __future__ import annotations

import click

from raybench.masking import masked
from raybench.visible import visible


def say(line: str, err: bool = False) -> None:
    """One line for a terminal. Names from data in it can neither end it nor command the terminal; a signed URL, which a
    library's error may hold, is masked."""
    click.echo(visible(masked(line)), err=err)
