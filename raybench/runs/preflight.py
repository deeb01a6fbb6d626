"""What running jobs would trip over, found in seconds: inputs, the model on a small batch, folders to write to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from raybench import storage
from raybench.benchmarks.job import Job
from raybench.engine.progress import progress
from raybench.errors import ProblemList
from raybench.runs.evaluate import ready
from raybench.runs.jobs import Settings


def preflight(
    jobs: Sequence[Job[Any]], settings: Settings, tell: Callable[[str], None] = lambda line: None
) -> list[str]:
    """What was found for each job; everything that running them would trip over is raised together.

    Some inputs are read whole, one small batch is described and folders are written to; `tell` gets what was tried.
    """
    shown = progress(settings.progress)
    shown.waiting("checking inputs")
    try:
        return _found_good(jobs, settings, tell)
    finally:
        shown.closed()


def _found_good(jobs: Sequence[Job[Any]], settings: Settings, tell: Callable[[str], None]) -> list[str]:
    problems, found = ProblemList(), []
    for folder in _folders_to_write(jobs):
        with problems.noting():
            storage.try_writing(folder)
    for job in jobs:
        with problems.noting():
            plan = ready(job, settings).plan
            for line in plan.trial.attempt(job.seed, problems):
                tell(f"{job.benchmark}: {line}")
            for note in plan.trial.notes:
                tell(f"note: {note}")
            found.append(plan.summary)
    problems.check()
    return found


def _folders_to_write(jobs: Sequence[Job[Any]]) -> list[str]:
    """Each folder once, but for a store that is inside an output folder."""
    outs = [job.out for job in jobs if job.out]
    stores = [job.store for job in jobs if job.store and not any(job.store.startswith(f"{out}/") for out in outs)]
    return list(dict.fromkeys([*outs, *stores]))
