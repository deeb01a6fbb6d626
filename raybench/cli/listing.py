"""`raybench list [BENCHMARK]`: benchmarks and descriptors; of one its folders, where data come from, its options."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Collection, Iterable

import click

from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.guides import GUIDES, examples_of
from raybench.benchmarks.options import GROUPS
from raybench.cli.lines import command_lines
from raybench.descriptors import (
    CONTRIB_DESCRIPTORS,
    CONTRIB_INSTALL,
    DESCRIPTORS,
    FLOW_METHODS,
    IMAGE_DESCRIPTORS,
    IMAGE_MODEL_FILES,
    IMAGE_MODEL_NAMES,
    MODEL_FILES,
    RUN_CODE,
)
from raybench.errors import ConfigError, suggestion

MOST_WIDTH = 110
TREE_WORDS = re.compile(r"(.*\S\s{2,})(\S.*)")
NAMES = {  # what follows the kind of a model by name
    "hf": "FOLDER, hf:s3://… or hf:NAME (transformers; NAME from its local cache; runs no code from it",
    "timm": "NAME (timm; weights from its local cache or --weights; runs no code from them",
    "torchvision": "NAME (torchvision; weights from torch's local cache or --weights; runs no code from them",
}
TRUST = "runs code from that file: only use files you trust"


def names_beginning(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """For shells: the benchmarks and families that begin so."""
    return [name for name in (*BENCHMARKS, *FAMILIES) if name.startswith(incomplete)]


@click.command("list")
@click.argument("benchmark", required=False, shell_complete=names_beginning)
def list_(benchmark: str | None) -> None:
    """Benchmarks and descriptors, and what each needs; of one BENCHMARK the folders that it reads."""
    if benchmark is None:
        _list_all()
        return
    if benchmark not in (*BENCHMARKS, *FAMILIES):
        raise ConfigError(
            f"unknown benchmark {benchmark}{suggestion(benchmark, BENCHMARKS)}; they are {', '.join(BENCHMARKS)}"
        )
    for name in FAMILIES.get(benchmark, (benchmark,)):
        _list_one(name)


def _list_all() -> None:
    click.echo("benchmarks (`raybench list BENCHMARK` shows its folders)")
    for name, benchmark in BENCHMARKS.items():
        click.echo(f"  {name:<24} {benchmark.summary}\n  {'':<24} needs {benchmark.needs}")
    for family, names in FAMILIES.items():
        click.echo(f"  {family:<24} at once: {', '.join(names)}")
    plain = [name for name in DESCRIPTORS if name not in CONTRIB_DESCRIPTORS]
    _list_descriptors("patches (hbench-*, hpatches-*, patch-pairs)", plain, MODEL_FILES)
    click.echo(f"  with OpenCV's contrib modules: {', '.join(CONTRIB_DESCRIPTORS)}\n    {CONTRIB_INSTALL}")
    _list_descriptors("images (disc2021, copydays, revisited, image-retrieval)", IMAGE_DESCRIPTORS, IMAGE_MODEL_FILES)
    for kind in IMAGE_MODEL_NAMES:
        click.echo(f"  {kind}:{NAMES[kind]}; needs raybench[{kind}])")
    _list_descriptors("image pairs: flow methods (tss)", FLOW_METHODS, ())


def _list_one(name: str) -> None:
    from raybench.runs.jobs import options_for

    width = min(shutil.get_terminal_size().columns, MOST_WIDTH)
    listed, guide = BENCHMARKS[name], GUIDES.get(name)
    for line in (f"{name}: {listed.summary}", f"needs {listed.needs}"):
        click.echo(textwrap.fill(line, width, subsequent_indent="  "))
    click.echo()
    if guide is not None:
        click.echo("folders (every DIR may also be s3://… or another URL)")
        click.echo("".join(f"{tree_line(line, width)}\n" for line in guide.tree.splitlines()))
        click.echo("data\n" + "".join(f"  {source}\n" for source in guide.sources))
    click.echo(f"options (`raybench run {name} --help` explains them)")
    known = options_for(listed.open())
    for group in GROUPS:
        names = ", ".join(f"--{one.name}" for one in known if one.group == group)
        if names:
            text = f"  {group}: {names}"
            click.echo(textwrap.fill(text, width, subsequent_indent="    ", break_on_hyphens=False))
    if guide is not None:
        click.echo("\nexamples")
        for given in examples_of(name):
            click.echo(command_lines(f"raybench run {name} {given}", width))


def tree_line(line: str, width: int) -> str:
    """A line of a tree; words behind a name that do not fit go on below their beginning."""
    found = TREE_WORDS.match(line)
    if found is None:
        return f"  {line}"
    return textwrap.fill(f"  {line}", width, subsequent_indent=" " * (len(found[1]) + 2), break_on_hyphens=False)


def _list_descriptors(of: str, named: Iterable[str], files: Collection[str]) -> None:
    click.echo(f"\ndescriptors of {of}\n  {', '.join(named)}\n  module:Class (your own; see the README; {TRUST})")
    for kind in files:
        click.echo(f"  {kind}:URI (a model file; {TRUST if kind in RUN_CODE else 'runs no code from it'})")
