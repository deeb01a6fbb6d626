"""`raybench verify`: a random share of a finished run's shards computed again by other cuts and held against the store.

The run's own walk is walked again over its own store, in this process. Nothing is published: each chosen shard is
computed from the stored shards that it rests on, and compared to the byte; output files and tables likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Outcome
from raybench.errors import ConfigError
from raybench.runs.rescore import finished_run, job_again
from raybench.runs.sessions import coming_session
from raybench.runs.verifying.checked_run import CheckedRun, NotStored
from raybench.visible import AS_ESCAPES


@dataclass(frozen=True)
class Verified:
    """What was looked at, what differs (one line each), and what could not be verified."""

    looked_at: int
    stored: int
    stages: int
    tables: int
    differences: tuple[str, ...]
    not_verified: tuple[str, ...]

    @property
    def summary(self) -> str:
        looked = f"{self.looked_at:,} of {self.stored:,} shards and files of {self.stages} stages, {self.tables} tables"
        return f"{'different' if self.differences else 'unchanged'}: {looked}"


def verify(run: str, share: float = 0.01, seed: int = 0) -> Verified:
    """Compute a share of a run's shards again, at least one per stage.

    Raises ConfigError if no stage is stored, or inputs are not what they were.
    """
    manifest, _ = finished_run(run)
    device = "gpu" if manifest.execution.get("gpus") else manifest.arguments.get("device")
    here = {"out": run, "ray": "off", "progress": "none", "gpus": None, "accelerator_type": None, "device": device}
    job, settings = job_again(run, manifest, here)
    if not any(storage.list_files(storage.join(job.store, str(stage["digest"]))) for stage in manifest.stages):
        raise ConfigError(
            f"{run}: none of its stages is in the store {job.store} (--keep-stages no, or they were deleted); "
            "nothing to verify against: run it again and keep them"
        )
    plan = BENCHMARKS[job.benchmark].open().prepare(job)
    names = sorted(plan.inputs | manifest.inputs)
    changed = [name for name in names if plan.inputs.get(name) != manifest.inputs.get(name)]
    if changed:
        raise ConfigError(f"{run}: inputs changed since the run ({', '.join(changed)}); nothing to verify against")
    with coming_session(job, settings) as session:
        checked = CheckedRun(run, job.store, session.get(), share, seed)
        try:
            tables = _check_tables(checked, plan.execute(checked))
        except NotStored as missing:
            checked.not_verified.append(f"what comes after {missing}")
            tables = 0
    if not checked.looked_at:
        where = "; it ran on GPUs, so verify it where there is one" if manifest.cluster.get("gpus") else ""
        raise ConfigError(f"{run}: nothing could be verified ({'; '.join(checked.not_verified)}){where}")
    return Verified(
        checked.looked_at,
        checked.stored,
        checked.stages,
        tables,
        tuple(checked.differences),
        tuple(dict.fromkeys(checked.not_verified)),
    )


def _check_tables(checked: CheckedRun, outcome: Outcome) -> int:
    """Compare the tables that the stored stages give with those in the output folder; how many there are."""
    names = [outcome.main.file_name, *(f"tables/{table.file_name}" for table in outcome.further)]
    for name, table in zip(names, (outcome.main, *outcome.further), strict=True):
        if checked.file(name) != table.to_csv().encode(errors=AS_ESCAPES):
            checked.differences.append(f"{name}: differs from what the stored stages give")
    return len(names)
