"""Finished runs, read back from their output folders: tables, pictures and curves for a page or another look."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.samples import INDEX
from raybench.errors import ConfigError, DataError
from raybench.runs.manifest import FILE_NAME, Manifest, read_manifest
from raybench.runs.report.curves import curves_of
from raybench.runs.report.shown import Shown
from raybench.table import Table, read_csv

SHOWN_RUNS = 3  # of those below a folder that is none itself


def finished_manifest(out: str) -> Manifest:
    """The manifest of a run that is done; anything else is the user's to mend."""
    manifest = read_manifest(out)
    if manifest is None:
        below = runs_below(out)
        some = " ".join(storage.join(out, name) for name in below[:SHOWN_RUNS])
        more = f" … ({len(below)} runs)" if len(below) > SHOWN_RUNS else ""
        advice = f"name those below it: {some}{more}" if below else "name the --out of a run"
        raise ConfigError(f"{out}: no run there (no manifest.json); {advice}")
    if manifest.status != "done":
        raise ConfigError(f"{out}: that run is not finished; run it again to resume")
    return manifest


def runs_below(folder: str) -> list[str]:
    """Names of runs below a folder by name or BENCHMARK/name, as `run hbench` and `demo` leave them, in name order."""
    path = storage.local_path(folder)
    if path is None:
        names = [
            entry.name.rpartition("/")[0]
            for entry in storage.list_files(folder)
            if entry.name.endswith("/manifest.json")
        ]
    else:  # not by a listing of everything below: stores have many files
        found = [*path.glob("*/manifest.json"), *path.glob("*/*/manifest.json")]
        names = [file.parent.relative_to(path).as_posix() for file in found]
    return sorted(name for name in names if name.count("/") <= 1)


def read_tables(out: str, manifest: Manifest) -> tuple[Table, ...]:
    """The tables of a finished run, main table first."""
    if manifest.benchmark not in BENCHMARKS:
        raise DataError(f"{out}: its benchmark {manifest.benchmark!r} is none of {', '.join(BENCHMARKS)}")
    benchmark = BENCHMARKS[manifest.benchmark].open()
    tables = []
    further = [name for name in manifest.files if name.startswith("tables/") and name.endswith(".csv")]
    for name in [benchmark.main_file, *further]:
        try:
            text = storage.read(storage.join(out, name)).decode()
            table = read_csv(Path(name).stem, text, benchmark.fractions | {"value", "low", "high"})
        except FileNotFoundError:
            raise DataError(f"{out}: {name} is missing; run again with --overwrite") from None
        except ValueError as error:
            raise DataError(f"{out}: {name} is no table of a run ({error}); run again with --overwrite") from None
        notes = manifest.notes if name == benchmark.main_file else manifest.further_notes.get(table.name, ())
        tables.append(dataclasses.replace(table, notes=tuple(notes)))
    return tuple(tables)


def runs_in(folder: str) -> list[str]:
    """The folder of a run itself; of others the runs below it, as `run hbench` leaves three."""
    if storage.exists(storage.join(folder, FILE_NAME)):
        return [folder]
    return [storage.join(folder, name) for name in runs_below(folder)] or [folder]


def shown_run(out: str, pictured: bool = True) -> Shown:
    """A run for the page. Pictures may be drawn anew from the run's data; raises InputError if those are gone."""
    from raybench.runs.unit_values import unit_values  # which reads finished runs

    manifest = finished_manifest(out)
    tables = read_tables(out, manifest)
    units = unit_values(out) if INDEX in manifest.files else ()
    gallery = BENCHMARKS[manifest.benchmark].open().gallery if pictured else None
    pictures = gallery(out, manifest.arguments, tables) if gallery else ()
    return Shown(manifest, tables, pictures, curves_of(out, manifest.files), units, out)
