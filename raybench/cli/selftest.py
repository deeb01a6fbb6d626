"""`raybench selftest`: golden cases that come with the package, on this machine."""

from __future__ import annotations

import click

from raybench.cli.lines import say

DIFFERENT = 5  # the exit code


@click.command(epilog="\b\nExamples:\n  raybench selftest\n  raybench selftest --ray off")
@click.option(
    "--ray",
    type=click.Choice(["both", "off", "local"]),
    default="both",
    show_default=True,
    help="off: in this process; local: on a Ray that is started here",
)
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
@click.pass_context
def selftest(context: click.Context, ray: str) -> None:
    """Run a small case of every benchmark and hold its figures against those of the published tools.

    Under a minute. Exit code 0 if every figure is within its tolerance, else 5 with a line for each that is not.
    """
    import sys
    import tempfile
    from pathlib import Path

    from raybench.cli.tables import show_table
    from raybench.runs.selftest import tried_cases, unpack_cases, verdict_table

    with tempfile.TemporaryDirectory(prefix="raybench-selftest-") as place:
        folder = Path(place)
        cases = unpack_cases(folder)
        ways = ("off", "local") if ray == "both" else (ray,)
        verdicts = []
        for verdict in (one for way in ways for one in tried_cases(cases, folder, way)):
            verdicts.append(verdict)
            if sys.stderr.isatty():  # a log has enough of the table
                say(f"{verdict.case.name}, ray {verdict.ray}: done", err=True)
    show_table(verdict_table(verdicts))
    differences = [line for one in verdicts for line in one.differences]
    for line in differences:
        say(f"differs: {line}")
    if differences:
        context.exit(DIFFERENT)
    say("matches the published tools on this machine")
