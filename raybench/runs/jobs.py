"""Arguments, from the command line or a Python call, become a job and the settings under which it runs; all checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raybench import storage
from raybench.benchmarks.job import EXECUTION, Benchmark, Job
from raybench.benchmarks.option_values import fitting
from raybench.benchmarks.options import Option, option, options_of
from raybench.engine.patience import seconds_of
from raybench.engine.ray_environment import is_joined
from raybench.errors import ConfigError, suggestion
from raybench.masking import credential_in
from raybench.runs.floors import check_floors, floors_of

ACCELERATOR = re.compile(r"[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", re.ASCII)  # what may be the value of a label
PROGRESS_KINDS = ("auto", "bar", "lines", "json", "none")
PROGRESS = "how progress is shown; auto: a bar on a terminal, JSON lines in a Ray job, else lines for people"

ONE_FILE = (".csv", ".pt", ".parquet", ".tar", ".zip", ".txt", ".npz")  # inputs that are no folders
SEARCHED_BY_NAME = ("results", "benchmarks", "tasks")  # folders in which only files of known names are read


@dataclass(frozen=True)
class Settings:
    """Where and how a job runs. `ray` is an address, `auto` (RAY_ADDRESS, or what was joined), `local` or `off`."""

    ray: str = option("", "ADDRESS, local or off", EXECUTION, default_words="join RAY_ADDRESS if set, else a local Ray")
    cpus: int | None = option(None, "CPU workers", EXECUTION, default_words="all there are", least=1)
    patience: str = option(
        "1h",
        "how long nothing may be published (no node, no GPU, storage that does not answer) before the run stops with "
        "exit code 3, to be resumed: 90s, 15m, 1h, or seconds",
        EXECUTION,
    )
    progress: str = option("auto", PROGRESS, EXECUTION, choices=PROGRESS_KINDS)
    overwrite: bool = option(False, "replace another run's results in --out; the store stays", EXECUTION)
    keep_stages: bool = option(True, "no: remove this run's stages at its end", EXECUTION)
    fail_below: str = option(
        "",
        "FIGURE=VALUE or ROW:FIGURE=VALUE, several with commas: exit code 4 if that figure, of the best row or of "
        "ROW, is below; values are fractions such as 0.61",
        EXECUTION,
        separator=",",
    )

    def __post_init__(self) -> None:
        if not self.ray:
            object.__setattr__(self, "ray", "auto" if is_joined() or os.environ.get("RAY_ADDRESS") else "local")

    @property
    def patience_seconds(self) -> float:
        return seconds_of(str(self.patience))


def options_for(benchmark: Benchmark) -> list[Option]:
    """Everything that `make_job` takes for a benchmark: its own options, then those of every run."""
    return [*options_of(benchmark.options), *options_of(Job), *options_of(Settings)]


def make_job(benchmark: Benchmark, given: Mapping[str, Any]) -> tuple[Job[Any], Settings]:
    """The job that these arguments ask for, by key; None stands for the default. Raises ConfigError."""
    known = {one.key: one for one in options_for(benchmark)}
    for key in given:
        if key not in known:
            raise ConfigError(f"{benchmark.name}: unknown option {key}{suggestion(key, known)}")
    values = {key: _value(known[key], value) for key, value in given.items() if value is not None}
    _refuse_credentials(known, values)
    job = Job(benchmark.name, benchmark.options(**_part(values, benchmark.options)), **_part(values, Job))
    settings = Settings(**_part(values, Settings))
    _check(benchmark, job, settings)
    return job, settings


def make_jobs(members: Sequence[Benchmark], given: Mapping[str, Any]) -> tuple[list[Job[Any]], Settings]:
    """The job of a benchmark; or of each of a family, in its own folder below `out`, over one store."""
    jobs, settings = _one_or_several(members, given)
    check_floors(floors_of(settings.fail_below), [figure for member in members for figure in member.figures])
    return jobs, settings


def _one_or_several(members: Sequence[Benchmark], given: Mapping[str, Any]) -> tuple[list[Job[Any]], Settings]:
    if len(members) == 1:
        job, settings = make_job(members[0], given)
        return [job], settings
    out, jobs = os.fspath(given.get("out") or ""), []
    shared = {"store": given.get("store") or (storage.join(out, "stages") if out else None)}
    for member in members:
        own = {one.key for one in options_for(member)}
        values = {key: value for key, value in {**given, **shared}.items() if key in own}
        job, settings = make_job(member, {**values, "out": storage.join(out, member.name) if out else None})
        jobs.append(job)
    return jobs, settings


def _refuse_credentials(known: Mapping[str, Option], values: Mapping[str, Any]) -> None:
    """Arguments are written into the manifest, which is for anybody to read."""
    for key, value in values.items():
        found = credential_in(f"--{known[key].name}", value)
        if found:
            raise ConfigError(f"{found}; arguments are written into the manifest: leave it in the environment")


def _value(known: Option, value: Any) -> Any:
    fit = fitting(known, value)
    if not (known.is_uri and fit):
        return fit
    parts = fit.split(known.separator) if known.separator else [fit]
    return known.separator.join(storage.checked(part.strip()) for part in parts if part.strip())


def _part(values: Mapping[str, Any], declared: type) -> dict[str, Any]:
    return {one.key: values[one.key] for one in options_of(declared) if one.key in values}


def _check(benchmark: Benchmark, job: Job[Any], settings: Settings) -> None:
    """Arguments that mean nothing, or contradict each other."""
    seconds_of(str(settings.patience))
    if settings.ray == "off" and (job.gpus or settings.cpus):
        raise ConfigError("--ray off: runs in this process; --gpus and --cpus need a Ray")
    if job.gpus and job.device == "cpu":
        raise ConfigError("--gpus and --device cpu contradict each other; give one of them")
    if job.accelerator_type is not None:
        _check_accelerators(job, settings)
    _check_apart(benchmark, job)
    if not settings.keep_stages and job.store != job.own_store:
        raise ConfigError("--keep-stages no: the store is shared (--store), other runs may need its stages")
    if job.skip_bad_input and not benchmark.can_skip:
        raise ConfigError(
            f"{benchmark.name}: --on-bad-input skip: a ranking has no figure without some of what is ranked; "
            "mend the input"
        )


def _check_apart(benchmark: Benchmark, job: Job[Any]) -> None:
    """That the output folder is no folder of inputs, holds none, and is inside none that is read with all below it."""
    inputs = {one.name: getattr(job.options, one.key) for one in options_of(benchmark.options) if one.is_uri}
    for name, given in inputs.items():
        if not job.out or not given or given.endswith(ONE_FILE):
            continue
        out, uri = (f"{os.path.realpath(path) if (path := storage.local_path(u)) else u}/" for u in (job.out, given))
        if out == uri:
            raise ConfigError(f"--out {job.out}: is --{name} itself; name another folder for results")
        if out.startswith(uri) and name not in SEARCHED_BY_NAME:
            raise ConfigError(f"--out {job.out}: is inside --{name}; results would be taken for input")
        if uri.startswith(out):
            raise ConfigError(f"--out {job.out}: holds --{name} {given}; name a folder for results alone")


def _check_accelerators(job: Job[Any], settings: Settings) -> None:
    if settings.ray == "off" or job.device == "cpu":
        raise ConfigError("--accelerator-type: names a kind of GPU on a Ray; not with --ray off or --device cpu")
    wrong = [kind for kind in job.accelerators if not ACCELERATOR.fullmatch(kind)]
    if wrong or not job.accelerators:
        raise ConfigError(
            f"--accelerator-type {job.accelerator_type}: expected names as Ray has them, such as A10G or L4,T4"
        )
