"""The page: every run's tables, arguments and stages in one HTML file, nothing from outside, all text escaped."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from raybench.benchmarks.job import ReportPicture
from raybench.runs.manifest import Manifest
from raybench.runs.report.curves import DrawnCurve, draw_curves
from raybench.table import Table
from raybench.visible import in_html

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.2rem;border-top:1px solid #d8dee4;padding-top:1rem}
table{border-collapse:collapse;margin:.8rem 0;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
th,td{padding:.25rem .7rem;border-bottom:1px solid #e4e8ec;text-align:left}th{background:#f4f6f8}
td.n{text-align:right}.note{color:#57606a;font-size:.9rem;margin:.2rem 0}
figure{margin:1rem 0}figure img{width:100%;border:1px solid #e4e8ec}figcaption{margin-bottom:.2rem}
summary{cursor:pointer;color:#0a58ca}pre{background:#f6f8fa;padding:.7rem;overflow-x:auto;font-size:.85rem}
"""
LONG_TABLE = 12  # rows
STAGE_COLUMNS = ("name", "shards", "found", "computed", "rows", "size_bytes", "seconds", "repaired", "workers")


@dataclass(frozen=True)
class Shown:
    """What the page shows of one run."""

    manifest: Manifest
    tables: Sequence[Table]
    pictures: Sequence[ReportPicture] = ()
    curves: Sequence[DrawnCurve] = ()


def write_report(runs: Sequence[Shown], title: str = "raybench report") -> str:
    """The page for these runs, in this order."""
    sections = "".join(map(_section, runs))
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{in_html(title)}</title>"
        f"<meta name=viewport content='width=device-width,initial-scale=1'><style>{STYLE}</style></head>"
        f"<body><h1>{in_html(title)}</h1>{sections}</body></html>\n"
    )


def heading(manifest: Manifest) -> str:
    """A run's name for people: the benchmark and what was evaluated."""
    arguments = manifest.arguments
    subject = arguments.get("descriptor") or arguments.get("features") or arguments.get("results") or ""
    return f"{manifest.benchmark} · {subject}"


def _section(shown: Shown) -> str:
    manifest, tables = shown.manifest, shown.tables
    stages = [tuple(stage.get(column) for column in STAGE_COLUMNS) for stage in manifest.stages]
    parts = [f"<h2>{in_html(heading(manifest))}</h2>"]
    if manifest.status != "done":
        parts.append(f"<p class=note>not finished: {in_html(manifest.status)}</p>")
    parts += [table.to_html() for table in tables[:1]]
    parts.append(draw_curves(shown.curves))
    parts += [_figure(picture) for picture in shown.pictures]
    parts += [_titled(table) for table in tables[1:]]
    parts.append("<p class=note>Figures are percent; the CSV files have full precision.</p>")
    parts.append(_folded("Arguments", manifest.arguments))
    if stages:
        table = Table("stages", STAGE_COLUMNS, tuple(stages))
        parts.append(f"<details><summary>Stages</summary>{table.to_html()}</details>")
    parts.append(_folded("Inputs, versions, cluster", [manifest.inputs, manifest.versions, manifest.cluster]))
    return "".join(parts)


def _titled(table: Table) -> str:
    """A further table under its name, folded away if it is long."""
    name = in_html(table.name.replace("_", " "))
    if len(table.rows) <= LONG_TABLE:
        return f"<h3>{name}</h3>{table.to_html()}"
    return f"<details><summary>{name} ({len(table.rows):,} rows)</summary>{table.to_html()}</details>"


def _figure(picture: ReportPicture) -> str:
    """A picture that is part of the page."""
    title, caption = in_html(picture.title), in_html(picture.caption)
    data = f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode()}"
    return f"<figure><figcaption><b>{title}</b> {caption}</figcaption><img src='{data}' alt='{caption}'></figure>"


def _folded(title: str, value: object) -> str:
    text = in_html(json.dumps(value, indent=1, ensure_ascii=False))
    return f"<details><summary>{in_html(title)}</summary><pre>{text}</pre></details>"
