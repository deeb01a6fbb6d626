"""result.json: what a run found, for trackers and CI. Figures, digests of inputs, versions, seconds; no arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from raybench import storage
from raybench.benchmarks.job import Benchmark
from raybench.errors import blamed_on_file
from raybench.metrics.bootstrap import Interval
from raybench.runs.manifest import Manifest
from raybench.table import Table, figure_cells
from raybench.visible import AS_ESCAPES

FILE_NAME = "result.json"


class MeasuredFigure(TypedDict):
    """A figure of a row of the main table; `low` and `high` are its interval, where one was drawn."""

    row: str
    figure: str
    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]


def measured(
    benchmark: Benchmark, main: Table, intervals: Mapping[tuple[str, str], Interval] | None = None
) -> list[MeasuredFigure]:
    """The figures of a main table, row by row, each with its interval if it has one."""
    cells = figure_cells(main, benchmark.keys, benchmark.figures)
    ends = {place: {"low": found.low, "high": found.high} for place, found in (intervals or {}).items()}
    return [
        {"row": cell.row, "figure": cell.figure, "value": cell.value, **ends.get((cell.row, cell.figure), {})}  # type: ignore[typeddict-item]
        for cell in cells
    ]


def publish_result(out: str, done: Manifest, figures: Sequence[MeasuredFigure], seconds: float) -> None:
    """Write the file into a run's folder."""
    content = {
        "benchmark": done.benchmark,
        "figures": figures,
        "inputs": done.inputs,
        "versions": done.versions,
        "seconds": round(seconds, 3),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    storage.publish(storage.join(out, FILE_NAME), text.encode(errors=AS_ESCAPES))


def read_figures(out: str, benchmark: Benchmark, main: Table) -> list[MeasuredFigure]:
    """The figures of a finished run, with their intervals; those of its table if it is older than this file."""
    uri = storage.join(out, FILE_NAME)
    try:
        return parsed_figures(storage.read(uri), uri)
    except FileNotFoundError:
        return measured(benchmark, main)


def parsed_figures(data: bytes, name: str) -> list[MeasuredFigure]:
    """The figures of a result file; raises DataError."""
    with blamed_on_file(f"{name}: no result of a run", "run again with --overwrite"):
        return [_figure(one) for one in json.loads(data)["figures"]]


def _figure(said: dict[str, Any]) -> MeasuredFigure:
    ends = {key: said[key] for key in ("low", "high") if key in said}
    words, numbers = (said["row"], said["figure"]), (said["value"], *ends.values())
    if not all(isinstance(one, str) for one in words) or not all(_is_number(one) for one in numbers):
        raise TypeError("a figure is a row, a column and numbers")
    return {"row": words[0], "figure": words[1], "value": numbers[0], **ends}  # type: ignore[typeddict-item]


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
