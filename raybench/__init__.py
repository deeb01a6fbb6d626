"""raybench: distributed batch evaluation, on Ray, of image and patch descriptors, copy detection and dense flow.

From Python, with the command line's options by the same names:

    import raybench

    result = raybench.run("disc2021", features="descriptors", codecs=["Flat", "L2norm,Flat"], out="runs/mine")
    print(result.table)                              # as a terminal shows it; a notebook shows `result` itself
    best = max(one["value"] for one in result.figures if one["figure"] == "uAP")
    rows = pyarrow.table(result.table).to_pylist()   # polars.DataFrame(result.table), pandas and duckdb likewise
    paper = result.tables["disc_variants"].to_latex()
    same = raybench.load("runs/mine")                # a finished run, later or elsewhere

`__all__` is what stays; the rest may change. Nothing is imported before it is asked for.

Folders in the order in which data meets them; a module imports its own folder and those above it:

    visible.py                      text from data, made safe for a terminal and a page
    errors.py digests.py table.py   the error tree; what identifies a thing; rows at full precision
    formats/                        bytes <-> values
    metrics/                        figures and mergeable results
    storage.py                      URIs <-> bytes
    sources/                        patches, images and vectors, ordered, digested, readable by range
    descriptors/                    what describes them
    engine/                         shards, stages, runs, executors (in this process, Ray)
    extract/                        source x descriptor -> vector sets
    search/                         exact search, codecs, score normalisation
    benchmarks/                     one folder per family
    runs/                           one evaluation from job to folder; finished runs, the page
    api.py                          the calls of this module
    demo/                           small data sets made from real photos
    cli/                            the command line
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raybench.api import Result, check, compare, load, plan, run
    from raybench.errors import ConfigError, DataError, FigureBelow, InputError, RaybenchError, ShardFailed
    from raybench.table import Table

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "DataError",
    "FigureBelow",
    "InputError",
    "RaybenchError",
    "Result",
    "ShardFailed",
    "Table",
    "__version__",
    "check",
    "compare",
    "load",
    "plan",
    "run",
]

_HOMES = {
    **dict.fromkeys(("Result", "check", "compare", "load", "plan", "run"), "api"),
    **dict.fromkeys(
        ("ConfigError", "DataError", "FigureBelow", "InputError", "RaybenchError", "ShardFailed"), "errors"
    ),
    "Table": "table",
}


def __getattr__(name: str) -> Any:
    """What the package offers, imported when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
