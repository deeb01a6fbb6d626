"""The demo: make the data, run every benchmark with several descriptors on one Ray, join tables, write one page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Job
from raybench.demo.copies import make_copies
from raybench.demo.hpatches import make_hpatches
from raybench.demo.landmarks import make_landmarks
from raybench.demo.own_images import make_own_images
from raybench.demo.tss import make_tss
from raybench.descriptors import FLOW_METHODS
from raybench.runs.differing import with_differing_cases
from raybench.runs.evaluate import Evaluation, evaluate
from raybench.runs.finished import shown_run
from raybench.runs.jobs import Settings, make_job
from raybench.runs.report.page import write_report
from raybench.runs.sessions import ComingSession, coming_session
from raybench.table import Table, joined

PATCH_DESCRIPTORS = ("meanstd", "resize", "orb", "sift", "rootsift")
# PDQ's package comes as source: where it could not be built, the tour goes without it.
COPY_DESCRIPTORS = ("thumbnail", "pdq") if find_spec("pdqhash") else ("thumbnail",)
CODECS = "Flat;PCAW32,L2norm,Flat"  # whitening to no more dimensions than there are training images
STOPS = {  # the benchmarks of the tour, in its order, and what is evaluated by each
    "hbench-classification": PATCH_DESCRIPTORS,
    "hbench-matching": PATCH_DESCRIPTORS,
    "hbench-retrieval": PATCH_DESCRIPTORS,
    "hpatches-verification": PATCH_DESCRIPTORS,
    "hpatches-matching": PATCH_DESCRIPTORS,
    "hpatches-retrieval": PATCH_DESCRIPTORS,
    "patch-pairs": PATCH_DESCRIPTORS,
    "disc2021": COPY_DESCRIPTORS,
    "copydays": COPY_DESCRIPTORS,
    "revisited": COPY_DESCRIPTORS,
    "image-retrieval": COPY_DESCRIPTORS,
    "tss": tuple(FLOW_METHODS),
}
DRAWS = 1_000  # for the intervals on the page
SHOWN_POOLS = (0, 100, 500, 1_000)  # shown on the screen, where there are pools; the demo has no more distractors


def run_demo(out: Path, settings: Settings) -> tuple[list[Table], Path]:
    """The tables of the tour and the path of its page. Running it again finds everything done."""
    jobs = {(name, subject): _job(name, out, subject) for name, subjects in STOPS.items() for subject in subjects}
    with coming_session(next(iter(jobs.values())), settings) as session:
        _make_data(out / "data", session)
        found = {key: evaluate(job, settings, session) for key, job in jobs.items()}
        shown = with_differing_cases([shown_run(evaluation.out) for evaluation in found.values()], session.say)
    tables = [_joined(name, found) for name in STOPS]
    page = out / "report.html"
    page.write_text(write_report(shown))
    return tables, page


def _make_data(folder: Path, session: ComingSession) -> None:
    """The data sets that are not there yet, while Ray comes up."""
    makers = {
        "hpatches": make_hpatches,
        "copies": make_copies,
        "landmarks": make_landmarks,
        "own": make_own_images,
        "tss": make_tss,
    }
    missing = [name for name in makers if not (folder / name / "made").exists()]
    if missing:
        session.begin()
    for name in missing:
        session.waits_for(f"making the data set {name}")
        makers[name](folder / name)
        (folder / name / "made").touch()


def _job(benchmark: str, out: Path, subject: str) -> Job[Any]:
    patches, copies, flows = (out / "data" / name for name in ("hpatches", "copies", "tss"))
    own = out / "data" / "own"
    beside = {"distractors": copies / "distractors", "training": copies / "training"}
    inputs: dict[str, dict[str, Any]] = {
        "hpatches": {"data": patches / "hpatches", "tasks": patches / "tasks", "split": ("full",)},
        "hbench": {"data": patches / "hpatches", "benchmarks": patches / "benchmarks"},
        "patch": {"data": patches / "hpatches", "pairs": patches / "pairs"},
        "disc2021": {"data": copies / "disc", "codecs": CODECS},
        "copydays": {"data": copies / "copydays", "codecs": CODECS, **beside},
        "revisited": {"data": out / "data" / "landmarks"},
        "image": {"queries": own / "pictures", "references": own / "pictures", "ground_truth": own / "truth.csv"},
        "tss": {"data": flows / "Dataset"},
    }
    given = inputs[benchmark.split("-")[0]]
    places = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
    folders = {"out": str(out / benchmark / subject), "store": str(out / "store")}
    return make_job(BENCHMARKS[benchmark].open(), {"descriptor": subject, "bootstrap": DRAWS, **places, **folders})[0]


def _joined(benchmark: str, found: dict[tuple[str, str], Evaluation]) -> Table:
    """The main tables of one benchmark below each other; of the 2017 ones the means, the rest is on the page."""
    named = [(descriptor, found[benchmark, descriptor].tables[0]) for descriptor in STOPS[benchmark]]
    table = joined(named[0][1].name, "descriptor", named, named[0][1].notes)
    if "noise" not in table.columns:
        return table
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    shown = [row for row in rows if row["noise"] == "mean" and row.get("pool", 0) in SHOWN_POOLS]
    notes = (*table.notes, "Means over e, h, t; the page has each level and pool.")
    return Table(table.name, table.columns, tuple(tuple(row.values()) for row in shown), table.fractions, notes)
