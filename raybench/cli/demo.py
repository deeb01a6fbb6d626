"""`raybench demo`: every benchmark on small data sets made from real photos."""

from __future__ import annotations

from pathlib import Path

import click

from raybench.atomic_files import not_for_everybody
from raybench.cli.lines import say


@click.command()
@click.option("--out", default="raybench-demo", show_default=True, metavar="DIR")
@click.option("--ray", default="local", show_default=True, metavar="ADDRESS|local|off")
@click.option(
    "--progress", type=click.Choice(["auto", "bar", "lines", "json", "none"]), default="auto", show_default=True
)
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
def demo(out: str, ray: str, progress: str) -> None:
    """Make small data sets from real photos, run every benchmark, write one report."""
    from raybench.cli.tables import show_table
    from raybench.demo.tour import run_demo
    from raybench.runs.jobs import Settings

    with not_for_everybody():
        tables, page = run_demo(Path(out).absolute(), Settings(ray=ray, progress=progress))
    for table in tables:
        show_table(table, "the page")
    say(f"report {page}")
