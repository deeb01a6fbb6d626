"""`raybench verify`: some shards of a finished run computed again by other cuts."""

from __future__ import annotations

import click

from raybench.cli.lines import say

DIFFERENT = 5  # the exit code


@click.command(
    epilog="\b\nExamples:\n  raybench verify runs/disc\n  raybench verify runs/disc --share 0.2 --seed 7",
)
@click.argument("run", metavar="RUN")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.01,
    show_default=True,
    metavar="X",
    help="share of the shards of each stage, at least one of each",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="which shards are drawn")
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
@click.pass_context
def verify(context: click.Context, run: str, share: float, seed: int) -> None:
    """Compute some shards of a finished run again, by other tiles and shard sizes, and compare them with its store.

    Says "unchanged" (exit code 0), or what differs, one line each (exit code 5). Nothing of the run is touched. Inputs
    that changed since the run are said with exit code 2: there is nothing to verify against.
    """
    from raybench import storage
    from raybench.runs.verifying.verify import verify as computed_again

    found = computed_again(storage.checked(run), share, seed)
    for line in found.not_verified:
        say(f"not verified: {line}", err=True)
    for line in found.differences:
        say(f"differs: {line}")
    say(found.summary)
    if found.differences:
        context.exit(DIFFERENT)
