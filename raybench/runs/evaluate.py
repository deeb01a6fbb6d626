"""One evaluation from a job to its output folder: check, resume or refuse, run, publish. What the CLI and jobs call."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Job, Outcome, Plan
from raybench.descriptors.precision import EXACT
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, InputError, ProblemList
from raybench.parallel import in_parallel
from raybench.runs.driving import driving
from raybench.runs.finished import read_tables
from raybench.runs.floors import floors_of, refuse_below
from raybench.runs.former import former_run
from raybench.runs.intervals import with_samples
from raybench.runs.jobs import Settings
from raybench.runs.manifest import Manifest, differences_of, read_manifest, refuse_other_run
from raybench.runs.remembered import remember
from raybench.runs.report.curves import curves_of
from raybench.runs.report.page import Shown, write_report
from raybench.runs.report.references import published
from raybench.runs.result_file import FILE_NAME as RESULT_FILE
from raybench.runs.result_file import MeasuredFigure, measured, publish_result, read_figures
from raybench.runs.sessions import ComingSession, Session, coming_session
from raybench.sources.archive_index import FOLDER as INDEXES
from raybench.table import Table
from raybench.visible import AS_ESCAPES

# Arguments that change time and place, never a result: a run may be resumed with others.
TIME_AND_PLACE = (
    "out",
    "store",
    "gpus",
    "accelerator_type",
    "verify_inputs",
    "max_image_pixels",
    "max_unpacked_bytes",
)


@dataclass(frozen=True)
class Evaluation:
    """What is in the output folder now: tables, main table first; its figures; the page."""

    out: str
    tables: tuple[Table, ...]
    figures: list[MeasuredFigure]
    report: str
    already_done: bool = False


def evaluate(job: Job[Any], settings: Settings, session: ComingSession) -> Evaluation:
    """Run a job, or find that it is done; raises InputError before any compute, ShardFailed during it."""
    _check_out(job)
    return _evaluate(ready(job, settings), settings, session)


def evaluate_all(jobs: Sequence[Job[Any]], settings: Settings) -> list[Evaluation]:
    """Run jobs one after the other in one session, once all are found good; problems of all are raised together.

    Ray comes up while inputs are checked; where every job may be done already, only once one is found not to be.
    """
    for job in jobs:
        _check_out(job)
    with coming_session(jobs[0], settings) as session:
        if not all(_may_be_done(job, settings) for job in jobs):
            session.begin()
        session.waits_for("checking inputs")
        return [_evaluate(one, settings, session) for one in _all_ready(jobs, settings)]


def refuse_figures_below(found: Sequence[Evaluation], settings: Settings) -> None:
    """Raise FigureBelow if figures do not reach what `--fail-below` asks for."""
    refuse_below(floors_of(settings.fail_below), [cell for one in found for cell in one.figures])


def _check_out(job: Job[Any]) -> None:
    if not job.out:
        raise ConfigError(f"{job.benchmark}: --out is missing, the folder for tables and stages")


@dataclass(frozen=True)
class Ready:
    """A job whose inputs are good and whose output folder is free, or holds the same job."""

    job: Job[Any]
    plan: Plan
    asked: Manifest
    there: Manifest | None


def _all_ready(jobs: Sequence[Job[Any]], settings: Settings) -> list[Ready]:
    problems = ProblemList()
    found = []
    for job in jobs:
        with problems.noting():
            found.append(ready(job, settings))
    problems.check()
    return found


def ready(job: Job[Any], settings: Settings) -> Ready:
    storage.check_folder_name(job.out)
    storage.check_folder_name(job.store)
    asked = Manifest(job.benchmark, _arguments(job), _execution(job, settings), {})
    there = _manifest_there(asked, job.out, settings) if job.out else None
    plan = BENCHMARKS[job.benchmark].open().prepare(job)
    return Ready(job, plan, dataclasses.replace(asked, inputs=plan.inputs), there)


def _may_be_done(job: Job[Any], settings: Settings) -> bool:
    """Whether the output folder holds a finished run, or a manifest that can't be read; inputs are not looked at."""
    try:
        there = read_manifest(job.out)
    except InputError:
        there = None
    return not settings.overwrite and there is not None and there.status == "done"


def _evaluate(ready: Ready, settings: Settings, session: ComingSession) -> Evaluation:
    job, there = ready.job, ready.there
    if there is not None and _answers(there, ready.asked, settings):
        return _found(job, settings, there)
    with driving(job.out, session.say):
        there = _manifest_there(ready.asked, job.out, settings)  # as the last driver left it
        if there is not None and _answers(there, ready.asked, settings):
            return _found(job, settings, there)
        # What is there is removed only once the run has started, and until it is done the manifest knows of it.
        asked = dataclasses.replace(ready.asked, files=there.files if there else [])
        if there is not None and there.status != "done" and (differences := differences_of(there, asked)):
            session.say(f"{job.out}: takes the place of a run that did not end ({'; '.join(differences)})")
        return _perform(job, settings, asked, ready.plan, session.get())


def _answers(there: Manifest, asked: Manifest, settings: Settings) -> bool:
    return not settings.overwrite and there.is_done_as(asked)


def _perform(job: Job[Any], settings: Settings, asked: Manifest, plan: Plan, session: Session) -> Evaluation:
    began = time.monotonic()
    run = Run(job.out, job.store, session.executor, session.observer, settings.patience_seconds)
    session.observer.run_started(former_run(job.benchmark, job.out))
    run.say(f"{_title(job)}: {plan.summary}")
    asked = dataclasses.replace(asked, cluster=run.cluster())
    run.patiently("the manifest", lambda: _begin(asked, job))
    if settings.keep_stages:
        run.patiently("the listings", lambda: remember(job, plan))
    outcome = with_samples(run, job, _with_precision(job, plan.execute(run)))
    outcome = _with_notes(run, outcome)
    outcome = _beside_published(job.benchmark, outcome)
    tables = (outcome.main, *outcome.further)
    figures = measured(BENCHMARKS[job.benchmark].open(), outcome.main, outcome.intervals)
    files = [*_file_names(outcome), *run.files, RESULT_FILE, "report.html"]
    done = dataclasses.replace(
        asked,
        status="done",
        summary=plan.summary,
        stages=[dataclasses.asdict(record) for record in run.records],
        files=files,
        skipped=list(outcome.skipped),
        notes=list(outcome.main.notes),
        further_notes={table.name: list(table.notes) for table in outcome.further if table.notes},
    )
    report = storage.join(job.out, "report.html")

    def finish() -> None:
        for name, table in zip(_file_names(outcome), tables, strict=True):
            storage.publish(storage.join(job.out, name), table.to_csv().encode(errors=AS_ESCAPES))
        page = write_report([Shown(done, tables, outcome.pictures, curves_of(job.out, files))])
        storage.publish(report, page.encode(errors=AS_ESCAPES))
        publish_result(job.out, done, figures, time.monotonic() - began)
        done.publish(job.out)
        _remove_stages(job, settings, done)

    run.patiently("the tables", finish)
    session.observer.run_ended()
    return Evaluation(job.out, tables, figures, report)


def _title(job: Job[Any]) -> str:
    """The benchmark, and what is evaluated by it."""
    descriptor = getattr(job.options, "descriptor", None)
    return f"{job.benchmark} {descriptor}" if descriptor else job.benchmark


def _begin(asked: Manifest, job: Job[Any]) -> None:
    asked.publish(job.out)
    _remove_results(asked, job)


def _manifest_there(asked: Manifest, out: str, settings: Settings) -> Manifest | None:
    """The manifest in the folder; raises if it is of another run that may not be replaced."""
    try:
        there = read_manifest(out)
    except DataError:
        if not settings.overwrite:
            raise
        return None  # a broken one names no files to remove; it is replaced
    if there is not None and not settings.overwrite:
        refuse_other_run(there, asked, out)
    return there


def _remove_stages(job: Job[Any], settings: Settings, done: Manifest) -> None:
    if not settings.keep_stages:
        for stage in done.stages:
            storage.delete_folder(storage.join(job.store, stage["digest"]))
        storage.delete_folder(storage.join(job.store, INDEXES))


def _found(job: Job[Any], settings: Settings, there: Manifest) -> Evaluation:
    _remove_stages(job, settings, there)
    tables = read_tables(job.out, there)
    figures = read_figures(job.out, BENCHMARKS[there.benchmark].open(), tables[0])
    return Evaluation(job.out, tables, figures, storage.join(job.out, "report.html"), already_done=True)


def _with_precision(job: Job[Any], outcome: Outcome) -> Outcome:
    """The outcome with a note and a fact where descriptors were not computed in exact float32."""
    words = getattr(job.options, "precision", EXACT).words
    if not words:
        return outcome
    note = f"PRECISION: descriptors were computed by {words}, not in exact float32."
    main = dataclasses.replace(outcome.main, notes=(*outcome.main.notes, note))
    return dataclasses.replace(outcome, main=main, facts={**outcome.facts, "precision": words})


def _with_notes(run: Run, outcome: Outcome) -> Outcome:
    """The outcome with what was noted on the way to it."""
    main = dataclasses.replace(outcome.main, notes=(*outcome.main.notes, *run.notes))
    return dataclasses.replace(outcome, main=main)


def _beside_published(benchmark: str, outcome: Outcome) -> Outcome:
    """The outcome with published figures of the same kind among its further tables."""
    beside = published(benchmark, outcome.facts)
    return outcome if beside is None else dataclasses.replace(outcome, further=(*outcome.further, beside))


def _file_names(outcome: Outcome) -> list[str]:
    return [outcome.main.file_name, *(f"tables/{table.file_name}" for table in outcome.further)]


def _remove_results(there: Manifest, job: Job[Any]) -> None:
    """What the manifest says an earlier run wrote, its receipts, and what it was writing when it was killed.

    Nothing else, and the store stays.
    """
    in_parallel(storage.delete, [storage.join(job.out, name) for name in there.files])
    storage.delete_folder(storage.join(job.out, "receipts"))
    storage.remove_leftovers(job.out, beside=job.store)


def _arguments(job: Job[Any]) -> dict[str, Any]:
    """What can change a result, as JSON has it."""
    fields = dataclasses.asdict(job)
    options = fields.pop("options")
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in {**fields, **options}.items()}
    return {
        key: value
        for key, value in given.items()
        if value not in (None, {}, [], "") and key not in (*TIME_AND_PLACE, "benchmark")
    }


def _execution(job: Job[Any], settings: Settings) -> dict[str, Any]:
    return {**{key: getattr(job, key) for key in TIME_AND_PLACE}, **dataclasses.asdict(settings)}
