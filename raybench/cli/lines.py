"""Lines for a terminal."""

from __future__ import annotations

import click

from raybench.masking import masked
from raybench.visible import visible


def say(line: str, err: bool = False) -> None:
    """One line for a terminal. Names from data in it can neither end it nor command the terminal; a signed URL, which a
    library's error may hold, is masked."""
    click.echo(visible(masked(line)), err=err)


def command_lines(command: str, width: int) -> str:
    r"""A command to copy, in lines that a shell reads as one; a break stands before an option only.

    >>> print(command_lines("raybench run tss --data Dataset --out runs/dis", 30))
      raybench run tss \
          --data Dataset \
          --out runs/dis
    """
    first, *options = command.split(" --")
    lines = [f"  {first}"]
    for option in options:
        if len(lines[-1]) + len(option) + len(" -- \\") > width:
            lines[-1] += " \\"
            lines.append(f"      --{option}")
        else:
            lines[-1] += f" --{option}"
    return "\n".join(lines)
