"""Imports exactly the source that was digested: no older module that this process still has, no compiled file of an
older source (Python tells those apart by whole seconds), no edit made while the run goes on.

A finder stands before Python's own while a class is imported, and while an object of it lives, since its methods may
import more. It knows modules by name and digest, and lets everything else pass.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from raybench.descriptors.own_modules import AsksOthers, Modules, spec_of
from raybench.digests import digest_of_bytes
from raybench.errors import ConfigError

Digests = tuple[tuple[str, str], ...]  # of modules by name


class DigestedSource(SourceFileLoader):
    """Loads a module from its source, if that has the expected digest."""

    def __init__(self, name: str, path: str, digest: str) -> None:
        super().__init__(name, path)
        self.digest = digest

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        _check(self.path, source, self.digest)
        code: CodeType = self.source_to_code(source, self.path)
        return code


def _check(file: str, content: bytes, digest: str) -> None:
    if digest_of_bytes(content) != digest:
        raise ConfigError(
            f"{file}: is not the code that the run began with; it changed since, or this node has another; run again"
        )


class DigestedFinder(MetaPathFinder, AsksOthers):
    """Finds modules where Python does, and has them loaded by their digests."""

    def __init__(self, digests: Digests) -> None:
        self.digests = dict(digests)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.digests:
            return None
        spec = spec_of(name, path)
        if spec is None or not spec.origin or not spec.has_location:
            return spec
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = DigestedSource(name, spec.origin, self.digests[name])
        else:
            _check(spec.origin, Path(spec.origin).read_bytes(), self.digests[name])
            spec.loader_state = self.digests[name]  # which loaders of compiled modules leave alone
        return spec


@contextmanager
def digested_imports(digests: Digests) -> Iterator[None]:
    """In the block these modules are imported as digested; those that were imported with another source, anew."""
    finder = _begin(digests)
    try:
        yield
    finally:
        _end(finder)


def opened_as_digested(digests: Digests, opening: Callable[[], Any]) -> Any:
    """What `opening` makes of these modules; for as long as that lives, its functions import them as digested, too."""
    if not digests:
        return opening()
    finder = _begin(digests)
    try:
        opened = opening()
    except BaseException:
        _end(finder)
        raise
    with suppress(TypeError):  # a class with `__slots__` may not let anybody see its end: then the finder stays
        weakref.finalize(opened, _end, finder).atexit = False
    return opened


def _begin(digests: Digests) -> DigestedFinder:
    _forget_older(digests)
    finder = DigestedFinder(digests)
    sys.meta_path.insert(0, finder)
    return finder


def _end(finder: DigestedFinder) -> None:
    with suppress(ValueError):
        sys.meta_path.remove(finder)


def _forget_older(digests: Iterable[tuple[str, str]]) -> None:
    """Drop all of these modules from memory if one is older than its file: what imported it holds parts of it."""
    loaded = [(sys.modules[name], digest) for name, digest in digests if name in sys.modules and name != "__main__"]
    if not any(_is_older(module, digest) for module, digest in loaded):
        return
    for module, _ in loaded:
        if Path(module.__file__ or "").suffix != ".py":
            continue  # a compiled module can't be loaded twice
        del sys.modules[module.__name__]
    importlib.invalidate_caches()


def _is_older(module: ModuleType, digest: str) -> bool:
    spec = module.__spec__
    file = Path(getattr(module, "__file__", None) or "")
    found = Modules().find(module.__name__)
    if found is not None and found.file is not None and found.file.resolve() != file.resolve():
        older = True  # of another folder, and it may read what lies beside it
    elif spec is not None and isinstance(spec.loader, DigestedSource):
        older = spec.loader.digest != digest
    elif spec is not None and isinstance(spec.loader_state, str):
        older = spec.loader_state != digest
    else:  # imported by somebody else, who knows when: only a file of before this process began is surely the same
        older = file.is_file() and file.stat().st_mtime > _began()
    if older and file.suffix != ".py":
        raise ConfigError(f"{file}: is compiled and changed since this process imported it; start Python anew")
    return older


def _began() -> float:
    """When this process began; where the system does not say, now."""
    with suppress(OSError, ValueError, IndexError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")
    return time.time()
