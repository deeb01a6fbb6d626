"""`raybench plan`: what a job will take, from a probe of at most a minute; nothing else is run and nothing stays."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Job, Plan
from raybench.engine.inline import InlineExecutor
from raybench.errors import ConfigError, ProblemList
from raybench.runs.jobs import Settings
from raybench.runs.planning.estimate import Estimate, Machines, cost_of
from raybench.runs.planning.measured import Measure
from raybench.runs.planning.probed_run import PlannedStage, ProbedRun
from raybench.runs.sessions import Session, coming_session

COUNTS = (1, 8, 64)
PROCESS_SECONDS = 0.5  # Python, imports, and the page at the end


def plan(
    job: Job[Any], settings: Settings, gpus: Sequence[int] = COUNTS, price: float | None = None, seed: int = 0
) -> Estimate:
    """What a job takes on these numbers of GPUs (of CPUs, without any), at a price per hour of one of them."""
    return plan_all([job], settings, gpus, price, seed)


def plan_all(
    jobs: Sequence[Job[Any]],
    settings: Settings,
    gpus: Sequence[int] = COUNTS,
    price: float | None = None,
    seed: int = 0,
) -> Estimate:
    """What jobs take one after the other in one session; later ones find what earlier ones leave in a shared store."""
    begun = time.monotonic()
    with coming_session(jobs[0], settings) as coming:
        coming.begin()
        plans = _prepared(jobs)
        session = coming.get()
        with scratch_folder(jobs[0], settings) as scratch:
            run = ProbedRun(jobs[0].store, scratch, session, seed)
            notes = [*_start_notes(jobs, settings), *(note for one in plans for note in _walked(run, one))]
        driver_seconds = max(time.monotonic() - begun - run.probing_seconds, 0.0)  # with the start
        return _estimate(run, session, driver_seconds, tuple(gpus), price, notes)


def _prepared(jobs: Sequence[Job[Any]]) -> list[Plan]:
    problems, plans = ProblemList(), []
    for job in jobs:
        with problems.noting():
            plans.append(BENCHMARKS[job.benchmark].open().prepare(job))
    problems.check()
    return plans


def _walked(run: ProbedRun, plan: Plan) -> list[str]:
    """Walk a plan; a note if its end was not reached."""
    run.has_guessed = False
    try:
        plan.execute(run)
    except Exception:
        if not run.has_guessed:  # else figures of stand-ins made no sense, which nobody will see
            raise
        last = run.planned[-1].name
        return [f"planned up to {last}; what may come after it depends on figures that only a run has"]
    return []


def _start_notes(jobs: Sequence[Job[Any]], settings: Settings) -> list[str]:
    notes = []
    if any(getattr(job.options, "results", None) for job in jobs):
        notes.append("begins from finished results: only figures and tables are computed")
    busy, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if settings.ray in ("off", "local") and busy > cpus + 1:
        notes.append(
            f"this machine is busy (load {busy:.0f} on {cpus} CPUs): on a quiet one a run takes less than this"
        )
    return notes


@contextmanager
def scratch_folder(job: Job[Any], settings: Settings) -> Iterator[str]:
    """A folder that every worker reaches, and that is removed at the end."""
    if settings.ray in ("off", "local"):
        with tempfile.TemporaryDirectory(prefix="raybench-plan-") as folder:
            yield folder
        return
    near = job.store or job.out
    if not near:
        raise ConfigError(
            "plan: on a cluster the probe needs a place that all nodes reach; give --out or --store "
            "(what it puts there is removed)"
        )
    folder = storage.join(near, f"plan-{time.time_ns():x}")
    path = storage.local_path(near)
    new = [] if path is None else [above for above in (path, *path.parents) if not above.exists()]
    try:
        yield folder
    finally:
        storage.delete_folder(folder)
        with suppress(OSError):  # somebody else put something there meanwhile
            for above in new:
                above.rmdir()


def _estimate(
    run: ProbedRun,
    session: Session,
    driver_seconds: float,
    counts: tuple[int, ...],
    price: float | None,
    notes: list[str],
) -> Estimate:
    stages = run.planned
    known: dict[str, list[Measure]] = defaultdict(list)
    for stage in stages:
        if not known[stage.name]:
            known[stage.name] = list(stage.measures)
    cluster = session.executor.cluster()
    gpus = session.executor.gpus  # none with --device cpu, whatever there is
    machines = Machines(
        gpus=gpus,
        cpus_per_gpu=max(float(cluster["cpus"]) / (cluster["gpus"] or gpus), 1.0) if gpus else 1.0,
        start_seconds=PROCESS_SECONDS + driver_seconds,
        stage_seconds=statistics.median(run.overheads or [0.0]),
    )
    probe = {
        "seconds": round(run.probing_seconds, 2),
        "counted": machines.counted,
        "where": "in this process" if isinstance(session.executor, InlineExecutor) else "on Ray",
        "cluster": cluster,
        "start_seconds": round(machines.start_seconds, 2),
        "rates": _rates(stages),
        "not_measured": sorted({f"{stage.name}: {stage.reason}" for stage in stages if stage.reason}),
        "notes": notes,
    }
    return Estimate(tuple(cost_of(stage, known) for stage in stages), counts, machines, price, probe)


def _rates(stages: Sequence[PlannedStage]) -> dict[str, float]:
    """Items per second of one worker, of stages that read data."""
    found: dict[str, float] = {}
    for stage in stages:
        if stage.reads_data and stage.measures and stage.measures[-1].seconds:
            found.setdefault(stage.name, round(stage.measures[-1].work / stage.measures[-1].seconds, 2))
    return found
