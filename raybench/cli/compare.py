"""`raybench compare`: finished runs side by side, with intervals and significance."""

from __future__ import annotations

from pathlib import PurePosixPath

import click

from raybench.cli.lines import say
from raybench.errors import ConfigError
from raybench.visible import AS_ESCAPES

FORMATS = ("table", "csv", "markdown", "latex", "json")
BY_SUFFIX = {"": "table", ".txt": "table", ".csv": "csv", ".md": "markdown", ".tex": "latex", ".json": "json"}


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN…")
@click.option("--baseline", metavar="RUN", help="what the others are compared with [default: the first run]")
@click.option(
    "--draws", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N", help="bootstrap draws"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="of the draws")
@click.option("--format", "form", type=click.Choice(FORMATS), help="[default: by the suffix of --out, else table]")
@click.option(
    "--out", metavar="FILE", help="write to a file (any URI), not to the terminal: .txt, .csv, .md, .tex or .json"
)
@click.option("--force", is_flag=True, help="compare what all have, though they do not measure the same")
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
def compare(
    runs: tuple[str, ...], baseline: str | None, draws: int, seed: int, form: str | None, out: str | None, force: bool
) -> None:
    """Finished runs side by side: intervals, differences to a baseline, and whether chance explains them.

    What is independent (queries, sequences or image pairs) is drawn with replacement, the same draws for all runs. Runs
    that share a letter can't be told apart at 5%. Nothing is computed again but figures, and no Ray is started.

    \b
    Examples:
      raybench compare runs/sift runs/mine
      raybench compare runs/a runs/b runs/c --baseline runs/b --out table.tex
    """
    from raybench import storage
    from raybench.cli.tables import fitted, terminal_width
    from raybench.runs.comparing.compare import compare as compare_runs
    from raybench.runs.comparing.words import FORMATS as WRITERS

    target = None if out is None else storage.checked(out)
    form = form or _format_of(target or "")
    comparison = compare_runs(runs, baseline, draws, seed, force)
    text = WRITERS[form](comparison)
    if target is None:
        click.echo(fitted(text, terminal_width()) if form == "table" else text, nl=False)
    else:
        storage.publish(target, text.encode(errors=AS_ESCAPES))
        say(f"comparison {target}")
    for note in comparison.notes if form == "csv" else ():  # which has no room for notes
        say(note, err=True)


def _format_of(target: str) -> str:
    """The format that a file's suffix names; a file without one gets the terminal's table."""
    suffix = PurePosixPath(target).suffix
    if suffix.lower() not in BY_SUFFIX:
        known = ", ".join(one for one in BY_SUFFIX if one)
        raise ConfigError(f"--out {target}: {suffix} names no format; expected one of {known}, or give --format, too")
    return BY_SUFFIX[suffix.lower()]
