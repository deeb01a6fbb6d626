"""Published figures beside the user's own: each with its source and whether it is comparable, and why.

The rows are in `reference_rows.csv`. Nothing is comparable by default: protocol, split, pool and flavour of AP must all
be known and be those of the run.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from importlib.resources import files

from raybench.table import Cell, Table

COLUMNS = ("method", "set", "metric", "value", "comparable", "source")
# The task in the published rows that a benchmark asks for, and why the 2016 benchmarks can't be set beside them.
TASKS = {
    "hbench-classification": "patch_verification",
    "hbench-matching": "image_matching",
    "hbench-retrieval": "patch_retrieval",
    "hpatches-verification": "patch_verification",
    "hpatches-matching": "image_matching",
    "hpatches-retrieval": "patch_retrieval",
}
MEANS = {
    "hpatches-verification": "ap_imbalanced, mean over e, h, t and intra, inter",
    "hpatches-matching": "map, mean over e, h, t",
}


def published(benchmark: str, splits: Iterable[str]) -> Table | None:
    """The published rows for a benchmark, comparable ones first; None if there are none."""
    task = TASKS.get(benchmark)
    text = (files("raybench.report") / "reference_rows.csv").read_text(encoding="utf-8")
    found = [row for row in csv.DictReader(text.splitlines()) if row["benchmark"] == "hpatches" and row["task"] == task]
    if not found:
        return None
    known = set(splits)
    rows: list[tuple[Cell, ...]] = []
    for row in found:
        verdict = comparable(benchmark, row["split_or_set"], row["metric"], known)
        source = f"{row['source_repo']}: {row['source_path']}"
        value = float(row["value"]) / 100
        rows.append((row["method"], row["split_or_set"], row["metric"], value, verdict, source))
    rows.sort(key=lambda row: str(row[4]).startswith("no"))
    note = "Published figures as their sources print them; none was computed here."
    return Table("published", COLUMNS, tuple(rows), frozenset({"value"}), (note,))


def comparable(benchmark: str, stated: str, metric: str, splits: set[str]) -> str:
    """`yes: …` or `no, because …`, from protocol, split, pool and flavour of AP.

    >>> comparable("hpatches-matching", "full", "mAP_percent", {"a"})
    'no, because it is for split full; this run has a'
    """
    if benchmark.startswith("hbench"):
        return "no, because it follows the 2017 protocol (other lists, trapezoid AP); this run is of 2016 (TREC AP)"
    if stated.startswith("split not stated"):
        return "no, because its split is not stated"
    if "assumed" in stated:
        return "no, because its split is only assumed to be full"
    split = stated.split()[0]
    if split not in splits:
        return f"no, because it is for split {split}; this run has {', '.join(sorted(splits)) or 'none'}"
    if benchmark == "hpatches-retrieval":
        return "no, because its pool size is not stated"
    if metric != "mAP_percent":
        return f"no, because {metric} is another mean than those of this table"
    return f"yes: {MEANS[benchmark]}, split {split}"
