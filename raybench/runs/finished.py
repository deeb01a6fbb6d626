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


def finished_manifest(out: str) -> Manifest:
    """The manifest of a run that is done; anything else is the user's to mend."""
    manifest = read_manifest(out)
    if manifest is None:
        raise ConfigError(f"{out}: no run there (no manifest.json); name the --out of a run")
    if manifest.status != "done":
        raise ConfigError(f"{out}: that run is not finished; run it again to resume")
    return manifest


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
            table = read_csv(Path(name).stem, text, benchmark.fractions | {"value"})
        except FileNotFoundError:
            raise DataError(f"{out}: {name} is missing; run again with --overwrite") from None
        except ValueError as error:
            raise DataError(f"{out}: {name} is no table of a run ({error}); run again with --overwrite") from None
        notes = manifest.notes if name == benchmark.main_file else manifest.further_notes.get(table.name, ())
        tables.append(dataclasses.replace(table, notes=tuple(notes)))
    return tuple(tables)


def runs_in(folder: str) -> list[str]:
    """The folder of a run itself; of others the runs in it, as `run hbench` leaves three; on a disk two levels deep."""
    if storage.exists(storage.join(folder, FILE_NAME)):
        return [folder]
    path = storage.local_path(folder)
    if path is None:
        inside = [storage.join(folder, name) for name in BENCHMARKS]
        return [one for one in inside if storage.exists(storage.join(one, FILE_NAME))] or [folder]
    below = sorted(path.glob(f"*/{FILE_NAME}")) or sorted(path.glob(f"*/*/{FILE_NAME}"))
    return [str(found.parent) for found in below] or [folder]


def shown_run(out: str, pictured: bool = True) -> Shown:
    """A run for the page. Pictures may be drawn anew from the run's data; raises InputError if those are gone."""
    from raybench.runs.unit_values import unit_values  # which reads finished runs

    manifest = finished_manifest(out)
    tables = read_tables(out, manifest)
    units = unit_values(out) if INDEX in manifest.files else ()
    gallery = BENCHMARKS[manifest.benchmark].open().gallery if pictured else None
    pictures = gallery(out, manifest.arguments, tables) if gallery else ()
    return Shown(manifest, tables, pictures, curves_of(out, manifest.files), units, out)
