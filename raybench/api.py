"""The Python calls behind `import raybench`: run, check, plan, compare and load.

Options are those of the command line, by the same names with `_`; values may be paths, numbers and lists. What the
command line says as an error is raised with the same words (`raybench.errors`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raybench import storage
from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.job import Benchmark, Job
from raybench.errors import ConfigError, suggestion
from raybench.runs.evaluate import evaluate_all, refuse_figures_below
from raybench.runs.finished import finished_manifest, read_tables
from raybench.runs.jobs import Settings, make_jobs
from raybench.runs.preflight import preflight
from raybench.runs.result_file import MeasuredFigure, read_figures
from raybench.table import Table
from raybench.visible import in_html

if TYPE_CHECKING:
    from raybench.runs.comparing.compare import Comparison
    from raybench.runs.planning.estimate import Estimate

Folder = str | os.PathLike[str]  # or any URI


@dataclass(frozen=True)
class Result:
    """A finished run: `table` is its main table, `tables` has every table by name, `figures` are those of result.json.

    A notebook shows the main table and where the page is; `print` the main table as a terminal has it.
    """

    benchmark: str
    out: str
    table: Table = field(repr=False)
    tables: dict[str, Table] = field(repr=False)
    figures: list[MeasuredFigure] = field(repr=False)
    report: str

    def __str__(self) -> str:
        return self.table.to_text()

    def _repr_html_(self) -> str:
        title = f"<p><b>{in_html(self.benchmark)}</b> in {in_html(self.out)}</p>"
        return f"{title}{self.table.to_html()}<p>report: {in_html(self.report)}</p>"


def run(benchmark: str, out: Folder, **options: Any) -> Result:
    """Run a benchmark into a folder, or find there that it is done, as `raybench run` does.

    A Ray that this process has joined already is used; else `ray` says which ("off": none). Progress is shown on
    standard error (`progress="none"`: nowhere). Raises what `raybench.errors` has: InputError before any compute,
    ShardFailed during it, FigureBelow (`fail_below`) once it is done.
    """
    jobs, settings = _asked(benchmark, {**options, "out": out})
    refuse_figures_below(evaluate_all(jobs, settings), settings)
    return load(jobs[0].out)


def check(benchmark: str, **options: Any) -> str:
    """What was found for a run, in one line; raises every problem that `run` would trip over, all at once."""
    (found,) = preflight(*_asked(benchmark, options))
    return found


def plan(
    benchmark: str, gpus: Sequence[int] = (1, 8, 64), price_per_gpu_hour: float | None = None, **options: Any
) -> Estimate:
    """What a run would take with these numbers of GPUs, from a short probe, as `raybench plan` has it."""
    from raybench.runs.planning import plan as planning

    (job,), settings = _asked(benchmark, options)
    return planning.plan(job, settings, gpus, price_per_gpu_hour)


def compare(
    runs: Iterable[Result | Folder],
    baseline: Result | Folder | None = None,
    draws: int = 1000,
    seed: int = 0,
    force: bool = False,
) -> Comparison:
    """Finished runs side by side, as `raybench compare` has them; `.table` is the comparison's table."""
    from raybench.runs.comparing import compare as comparing

    if isinstance(runs, str | os.PathLike | Result):
        raise ConfigError("compare: expected a list of at least two finished runs, found one run by itself")
    named = [_folder(one) for one in runs]
    against = None if baseline is None else _folder(baseline)
    return comparing.compare(named, baseline=against, draws=draws, seed=seed, force=force)


def load(out: Folder) -> Result:
    """A finished run, read from its folder."""
    folder = storage.checked(os.fspath(out))
    manifest = finished_manifest(folder)
    tables = {table.name: table for table in read_tables(folder, manifest)}
    main = next(iter(tables.values()))
    figures = read_figures(folder, BENCHMARKS[manifest.benchmark].open(), main)
    return Result(manifest.benchmark, folder, main, tables, figures, storage.join(folder, "report.html"))


def _asked(benchmark: str, options: dict[str, Any]) -> tuple[list[Job[Any]], Settings]:
    return make_jobs([_named(benchmark)], options)


def _named(benchmark: str) -> Benchmark:
    """The benchmark of a name. A family is refused, since one call gives one result."""
    if benchmark in FAMILIES:
        members = ", ".join(FAMILIES[benchmark])
        words = f"call once for each of {members}; with one `store` they share what is computed"
        raise ConfigError(f"{benchmark}: is several benchmarks; {words}")
    if benchmark not in BENCHMARKS:
        known = f"they are {', '.join(BENCHMARKS)}"
        raise ConfigError(f"unknown benchmark {benchmark}{suggestion(benchmark, BENCHMARKS)}; {known}")
    return BENCHMARKS[benchmark].open()


def _folder(run: Result | Folder) -> str:
    return run.out if isinstance(run, Result) else storage.checked(os.fspath(run))
