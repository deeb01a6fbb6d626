"""The manifest: what a run was asked, what it read, what it did. One JSON file in the output folder, no secrets.

It decides whether a folder may be resumed (same arguments), is done already (same arguments and inputs), or
belongs to another run. One that never ended has no results to protect: other arguments take its folder over.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
from dataclasses import dataclass, field
from typing import Any

from raybench import __version__, storage
from raybench.errors import DataError, ManifestMismatch
from raybench.visible import AS_ESCAPES

FILE_NAME = "manifest.json"
PACKAGES = ("faiss-cpu", "faiss-gpu", "numpy", "opencv-python-headless", "pillow", "pyarrow", "ray", "torch")


@dataclass(frozen=True)
class Manifest:
    """`arguments` are those that can change a result; `execution` those that change only time and place."""

    benchmark: str
    arguments: dict[str, Any]
    execution: dict[str, Any]
    inputs: dict[str, str]
    status: str = "running"
    versions: dict[str, str] = field(default_factory=lambda: versions())
    cluster: dict[str, Any] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    further_notes: dict[str, Any] = field(default_factory=dict)  # those of further tables, by table
    summary: str = ""  # what was found at the start, with sizes

    def publish(self, out: str) -> None:
        data = json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False) + "\n"
        storage.publish(storage.join(out, FILE_NAME), data.encode(errors=AS_ESCAPES))

    def is_done_as(self, asked: Manifest) -> bool:
        """Whether this finished run answers `asked` too: same arguments, same inputs, same raybench."""
        same = (self.benchmark, self.arguments, self.inputs) == (
            asked.benchmark,
            asked.arguments,
            asked.inputs,
        )
        return self.status == "done" and same and self.versions["raybench"] == asked.versions["raybench"]


def read_manifest(out: str) -> Manifest | None:
    """The manifest in an output folder, None if there is none."""
    uri = storage.join(out, FILE_NAME)
    try:
        data = storage.read(uri)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = Manifest(**json.loads(data))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{uri}: no raybench manifest ({error}); name another --out or give --overwrite") from error
    kinds = {"str": str, "dict[str, str]": dict, "dict[str, Any]": dict}
    wrong = [
        part.name
        for part in dataclasses.fields(Manifest)
        if not isinstance(getattr(found, part.name), kinds.get(str(part.type), list))
    ]
    if wrong:
        raise DataError(
            f"{uri}: no raybench manifest (wrong {', '.join(wrong)}); name another --out or give --overwrite"
        )
    if not all(isinstance(name, str) for name in (*found.files, *found.notes, *found.skipped)):
        raise DataError(f"{uri}: no raybench manifest (names that are no text); name another --out")
    if any(name.startswith("/") or ".." in name.split("/") for name in found.files):
        raise DataError(f"{uri}: no raybench manifest (it names files outside its folder); name another --out")
    if not all(_is_stage(one) for one in found.stages):
        raise DataError(f"{uri}: no raybench manifest (stages without a name and a digest); name another --out")
    if "raybench" not in found.versions:
        raise DataError(
            f"{uri}: no raybench manifest (no version of raybench in it); name another --out or give --overwrite"
        )
    return found


def _is_stage(said: Any) -> bool:
    """Whether a stage can be found in a store, and nothing beside it."""
    words = (said.get("name"), said.get("digest")) if isinstance(said, dict) else (None, None)
    return all(isinstance(one, str) for one in words) and str(words[1]).isalnum()


def refuse_other_run(there: Manifest, asked: Manifest, out: str) -> None:
    """Raise ManifestMismatch with the differences if the folder's run is done and had other arguments."""
    differences = differences_of(there, asked)
    if differences and there.status == "done":
        raise ManifestMismatch(
            f"{out}: holds a run with other arguments ({'; '.join(differences)}); "
            "name another --out, or give --overwrite to replace its results"
        )


def differences_of(there: Manifest, asked: Manifest) -> list[str]:
    """In what benchmark or arguments differ, in words. Another benchmark is enough: it has other arguments."""
    if there.benchmark != asked.benchmark:
        return [f"benchmark {there.benchmark} → {asked.benchmark}"]
    differences = []
    for key in sorted(there.arguments.keys() | asked.arguments.keys()):
        old, new = there.arguments.get(key), asked.arguments.get(key)
        if old != new:
            differences.append(f"{key.replace('_', '-')} {_shown(old)} → {_shown(new)}")
    return differences


def versions() -> dict[str, str]:
    """Of raybench, Python and the packages that figures rest on."""
    found = {"raybench": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _shown(value: Any) -> str:
    return "(none)" if value is None else str(value)
