"""The demo: make the data, run every benchmark with several descriptors on one Ray, join tables, write one page."""

from __future__ import annotations

from pathlib import Path

from raybench.benchmarks.job import Job
from raybench.demo.hpatches import make_hpatches
from raybench.engine.manifest import Manifest, read_manifest
from raybench.evaluate import Evaluation, Settings, evaluate, open_session
from raybench.report.page import write_report
from raybench.table import Table, joined

PATCH_DESCRIPTORS = ("meanstd", "resize", "orb", "sift", "rootsift")


def run_demo(out: Path, settings: Settings) -> tuple[list[Table], Path]:
    """The tables of the tour and the path of its page. Running it again finds everything done."""
    data = out / "data" / "hpatches"
    if not (data / "made").exists():
        make_hpatches(data)
        (data / "made").touch()
    jobs = {name: _classification(data, out, name) for name in PATCH_DESCRIPTORS}
    with open_session(next(iter(jobs.values())), settings) as session:
        found = {name: evaluate(job, settings, session) for name, job in jobs.items()}
    notes = found[PATCH_DESCRIPTORS[0]].tables[0].notes
    named = [(name, evaluation.tables[0]) for name, evaluation in found.items()]
    tables = [joined("hbench_classification", "descriptor", named, notes)]
    page = out / "report.html"
    summary = Manifest("demo", {"descriptor": ", ".join(PATCH_DESCRIPTORS)}, {}, {}, status="done")
    page.write_text(write_report([(summary, tables), *map(_read, found.values())], "raybench demo"))
    return tables, page


def _classification(data: Path, out: Path, descriptor: str) -> Job:
    return Job(
        "hbench-classification",
        out=str(out / "hbench-classification" / descriptor),
        store=str(out / "store"),
        data=str(data / "hpatches"),
        benchmarks=str(data / "benchmarks"),
        descriptor=descriptor,
    )


def _read(evaluation: Evaluation) -> tuple[Manifest, tuple[Table, ...]]:
    manifest = read_manifest(evaluation.out)
    assert manifest is not None, f"{evaluation.out} was just written"
    return manifest, evaluation.tables
