"""A finished run of the same benchmark in this place or beside it: its times tell how long a run may take."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from raybench import storage
from raybench.engine.course import Former
from raybench.runs.manifest import FILE_NAME

MOST_FOLDERS = 200  # beside the output folder that are looked at
MOST_MANIFESTS = 5  # the newest, that are read
MOST_BYTES = 4 * 2**20  # of a manifest: one with a hundred thousand files is not worth reading for this


def former_run(benchmark: str, out: str) -> Former:
    """The newest one that computed everything itself; empty if there is none, or `out` is not on a disk here."""
    folder = storage.local_path(out)
    if folder is None:
        return Former()
    for manifest in _newest_manifests(folder.parent):
        stages = _stages(manifest, benchmark)
        if stages:
            return Former(stages)
    return Former()


def _newest_manifests(parent: Path) -> list[Path]:
    found = []
    try:
        with os.scandir(parent) as entries:
            for entry, _ in zip(entries, range(MOST_FOLDERS), strict=False):
                path = Path(entry.path) / FILE_NAME
                if path.is_file() and path.stat().st_size <= MOST_BYTES:
                    found.append((path.stat().st_mtime, path))
    except OSError:  # a folder that is not there yet, or not ours to list: then nothing is known
        return []
    return [path for _, path in sorted(found, reverse=True)[:MOST_MANIFESTS]]


def _stages(manifest: Path, benchmark: str) -> tuple[tuple[str, float], ...]:
    """Names and seconds; none of another benchmark, of a run that is not done, or of one that a store helped."""
    try:
        read: dict[str, Any] = json.loads(manifest.read_bytes())
        if (read["benchmark"], read["status"]) != (benchmark, "done"):
            return ()
        if any(stage["found"] for stage in read["stages"]):
            return ()
        return tuple((str(stage["name"]), float(stage["seconds"])) for stage in read["stages"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # whatever it is, it tells nothing
        return ()
