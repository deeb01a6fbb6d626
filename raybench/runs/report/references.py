"""Published figures beside the user's own: each with its source and whether it is comparable, and why.

The rows are in `reference_rows.csv`; the verdicts are `report.comparable`'s.
"""

from __future__ import annotations

import csv
from importlib.resources import files

from raybench.runs.report.comparable import Facts, Row, comparable
from raybench.table import Cell, Table

COLUMNS = ("method", "set", "metric", "value", "comparable", "source")
# Benchmark and task of the published rows that stand beside a benchmark of ours.
ROWS = {
    "hbench-classification": {("hpatches", "patch_verification")},
    "hbench-matching": {("hpatches", "image_matching")},
    "hbench-retrieval": {("hpatches", "patch_retrieval")},
    "hpatches-verification": {("hpatches", "patch_verification")},
    "hpatches-matching": {("hpatches", "image_matching")},
    "hpatches-retrieval": {("hpatches", "patch_retrieval")},
    "disc2021": {("disc2021", "copy_detection"), ("isc2021", "descriptor_track"), ("isc2021", "matching_track")},
    "copydays": {("copydays10k", "copy_detection")},
    "revisited": {("revisited", "image_retrieval")},
    "tss": {("tss", "dense_flow"), ("tss", "cosegmentation")},
}
NOTE = "Published figures as their sources print them; none was computed here."


def published(benchmark: str, facts: Facts) -> Table | None:
    """The published rows for a benchmark, comparable ones first; None if there are none."""
    wanted = ROWS.get(benchmark, set())
    text = (files("raybench.runs.report") / "reference_rows.csv").read_text(encoding="utf-8")
    found = [row for row in csv.DictReader(text.splitlines()) if _is_wanted(row, wanted)]
    if not found:
        return None
    rows: list[tuple[Cell, ...]] = [
        (
            row["method"],
            row["split_or_set"],
            row["metric"],
            float(row["value"]) / (100 if "_percent" in row["metric"] else 1),
            comparable(benchmark, row, facts),
            f"{row['source_repo']}: {row['source_path']}",
        )
        for row in found
    ]
    rows.sort(key=lambda row: str(row[4]).startswith("no"))
    return Table("published", COLUMNS, tuple(rows), frozenset({"value"}), (NOTE,))


def _is_wanted(row: Row, wanted: set[tuple[str, str]]) -> bool:
    """Whether it is one of the wanted rows; thresholds are scores of one descriptor, nothing to set beside another."""
    return (row["benchmark"], row["task"]) in wanted and not row["metric"].startswith("threshold")
