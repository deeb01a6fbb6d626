"""`raybench report`: one page over finished runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from raybench.cli.lines import say
from raybench.errors import InputError
from raybench.visible import AS_ESCAPES

if TYPE_CHECKING:
    from raybench.runs.report.page import Shown


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--out", default="report.html", show_default=True, metavar="FILE.html")
def report(runs: tuple[str, ...], out: str) -> None:
    """One self-contained page over finished runs, or over all runs of a folder."""
    from raybench import storage
    from raybench.runs.differing import with_differing_cases
    from raybench.runs.finished import runs_in
    from raybench.runs.report.page import write_report

    found = [run for folder in map(storage.checked, runs) for run in runs_in(folder)]
    shown = with_differing_cases([_shown(run) for run in found], lambda line: say(line, err=True))
    page = write_report(shown)
    target = storage.checked(out)
    storage.publish(target, page.encode(errors=AS_ESCAPES))
    say(f"report {target}")


def _shown(uri: str) -> Shown:
    """A run for the page, without pictures where what they show is gone."""
    from raybench.runs.finished import finished_manifest, shown_run

    finished_manifest(uri)
    try:
        return shown_run(uri)
    except InputError as error:
        found = shown_run(uri, pictured=False)
        say(f"{uri}: no pictures ({error})", err=True)
        return found
