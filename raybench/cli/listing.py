"""`raybench list`: benchmarks and descriptors, and what each needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click

from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.descriptors import (
    DESCRIPTORS,
    FLOW_METHODS,
    IMAGE_DESCRIPTORS,
    IMAGE_MODEL_FILES,
    MODEL_FILES,
    RUN_CODE,
)

TRUST = "runs code from that file: only use files you trust"


@click.command("list")
def list_() -> None:
    """Benchmarks and descriptors, and what each needs."""
    click.echo("benchmarks")
    for name, benchmark in BENCHMARKS.items():
        click.echo(f"  {name:<24} {benchmark.summary}\n  {'':<24} needs {benchmark.needs}")
    for family, names in FAMILIES.items():
        click.echo(f"  {family:<24} at once: {', '.join(names)}")
    _list_descriptors("patches (hbench-*, hpatches-*)", DESCRIPTORS, MODEL_FILES)
    _list_descriptors("images (disc2021, copydays)", IMAGE_DESCRIPTORS, IMAGE_MODEL_FILES)
    _list_descriptors("image pairs: flow methods (tss)", FLOW_METHODS, ())


def _list_descriptors(of: str, named: Iterable[str], files: Collection[str]) -> None:
    click.echo(f"\ndescriptors of {of}\n  {', '.join(named)}\n  module:Class (your own; see the README; {TRUST})")
    for kind in files:
        click.echo(f"  {kind}:URI (a model file; {TRUST if kind in RUN_CODE else 'runs no code from it'})")
