"""`raybench demo`: every benchmark on small data sets made from real photos."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from raybench.atomic_files import not_for_everybody
from raybench.cli.lines import command_lines, say
from raybench.visible import visible


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
    _say_what_next(Path(out) / "data/hpatches")


def _say_what_next(patches: Path) -> None:
    """A command to try, and how `raybench` is found where it is not."""
    click.echo("\nNow try one benchmark yourself:", err=True)
    if shutil.which("raybench") is None:
        click.echo(f"  {_how_it_is_found(Path(sys.executable).parent / 'activate')}", err=True)
    given = f"--data {patches / 'hpatches'} --benchmarks {patches / 'benchmarks'} --descriptor sift --out runs/sift"
    width = shutil.get_terminal_size().columns
    click.echo(command_lines(f"raybench run hbench-classification {visible(given)}", width), err=True)


def _how_it_is_found(activate: Path) -> str:
    if not activate.is_file():
        return "# raybench is not on your PATH: write `python -m raybench` for it"
    near = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
    return f"source {near}  # once per terminal: then raybench is found"
