"""Where a module is, found without running anything, and whose it is: the user's own, or of a distribution or Python.

A module is of a distribution if it lies where packages are installed and one there lists it among its files. What is
installed as editable lies elsewhere, and so is the user's own.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import site
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path

PYTHON = f"python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"


@dataclass(frozen=True)
class Located:
    """A module by its file (none for a package without `__init__`), or by the libraries that bring it."""

    file: Path | None
    libraries: tuple[str, ...]  # as `torch 2.6.0`; none for a module of the user's
    folders: tuple[str, ...] | None  # of a package: where its modules are

    @property
    def is_own(self) -> bool:
        return not self.libraries

    @property
    def is_source(self) -> bool:
        return self.file is not None and self.file.suffix == ".py"


class Modules:
    """Finds modules as an import statement would, each once."""

    def __init__(self) -> None:
        self._known: dict[str, Located | None] = {}

    def find(self, name: str) -> Located | None:
        """The module of this dotted name; None if there is none."""
        if name not in self._known:
            parent, _, _ = name.rpartition(".")
            above = self.find(parent) if parent else None
            if parent and (above is None or above.folders is None):
                self._known[name] = None
            else:
                self._known[name] = _located(name, None if above is None else above.folders)
        return self._known[name]

    def below(self, name: str) -> Iterator[str]:
        """The modules right below a package, by their dotted names."""
        found = self.find(name)
        for folder in (found.folders if found else None) or ():
            for path in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else ():
                stem = path.name.partition(".")[0]
                if stem.isidentifier() and stem not in ("__init__", "__pycache__"):
                    yield f"{name}.{stem}"


class AsksOthers:
    """Marks a finder of `sys.meta_path` that asks the others: it has no place of its own where modules are."""


def spec_of(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """What Python's finders say of a module in these folders (of a top module: None)."""
    for finder in sys.meta_path:
        found = None if isinstance(finder, AsksOthers) else finder.find_spec(name, path)
        if found is not None:
            return found
    return None


def _located(name: str, path: tuple[str, ...] | None) -> Located | None:
    try:
        spec = spec_of(name, None if path is None else list(path))
    except (ImportError, AttributeError, ValueError, KeyError):
        return None
    if spec is None:
        return None
    folders = _folders(spec, name, path)
    if spec.origin in ("built-in", "frozen"):
        return Located(None, (PYTHON,), folders)
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    places = [file.parent if folders else file] if file else [Path(folder) for folder in folders or ()]
    libraries = {library for place in places for library in _libraries(name, place)}
    return Located(file, tuple(sorted(libraries)), folders)


def _folders(spec: ModuleSpec, name: str, path: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if spec.submodule_search_locations is None:
        return None
    try:
        return tuple(spec.submodule_search_locations)
    except KeyError:  # of a package without `__init__` in another: Python looks into the other, which is not imported
        below = (Path(folder) / name.rpartition(".")[2] for folder in path or ())
        return tuple(str(folder) for folder in below if folder.is_dir())


def _libraries(name: str, place: Path) -> tuple[str, ...]:
    """What brings a module that is at `place`, a file or a package's folder; nothing if it is the user's."""
    entry = place.parents[min(name.count("."), len(place.parents) - 1)]  # of sys.path
    top = name.partition(".")[0]
    if top == "raybench":  # its stages and classes have versions, also where it is installed as editable
        return (f"raybench {importlib.metadata.version('raybench')}",)
    if _holds_packages(entry):
        bring = _distributions_by_top(str(entry)).get(top, [])
        return tuple(f"{one.name} {one.version}" for one in bring)
    return (PYTHON,) if any(place.is_relative_to(folder) for folder in _python_folders()) else ()


@cache
def _holds_packages(entry: Path) -> bool:
    """Whether packages are installed there: a folder of Python's for them, or one that `pip --target` filled."""
    named = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")]
    known = map(Path, [*named, *site.getsitepackages(), site.getusersitepackages()])
    return entry in known or any(entry.glob("*.dist-info"))


@cache
def _python_folders() -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib"))


@cache
def _distributions_by_top(entry: str) -> dict[str, list[importlib.metadata.Distribution]]:
    """Top modules to the distributions that have files of them, from the lists of files that installers leave.

    `importlib.metadata.packages_distributions` says the same for all of `sys.path`, in five times the time.
    """
    found: dict[str, list[importlib.metadata.Distribution]] = defaultdict(list)
    for distribution in importlib.metadata.distributions(path=[entry]):
        listed = distribution.read_text("RECORD") or distribution.read_text("top_level.txt") or ""
        for top in {line.partition("/")[0].partition(",")[0].partition(".")[0] for line in listed.splitlines()}:
            found[top].append(distribution)
    return found


def prefixes(name: str) -> list[str]:
    """What importing a dotted name imports, in this order.

    >>> prefixes("a.b.c")
    ['a', 'a.b', 'a.b.c']
    """
    return list(itertools.accumulate(name.split("."), lambda above, part: f"{above}.{part}"))
