"""What identifies a class of the user's own: the source of its module and of every module of the user's that this
imports, however far; versions of libraries; files that the source names. And what of it can't be known.

Paths are no part of it: the same code in another folder, or unpacked on another node, is the same.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raybench import storage
from raybench.descriptors.libraries import LIBRARIES, libraries_of
from raybench.descriptors.own_modules import PYTHON, Located, Modules, prefixes
from raybench.descriptors.source_text import SourceText, read_source
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import reason_of

COMPILED = "is compiled: what it imports and reads"


@dataclass(frozen=True)
class OwnCode:
    """Modules of the user's by name, libraries with versions, modules that are not there, files by the literal that
    names them: all with digests of their content. `doubts` are lines about what the digest does not cover."""

    modules: tuple[tuple[str, str], ...]
    libraries: tuple[str, ...]
    absent: tuple[str, ...]
    files: tuple[tuple[str, str, str], ...]  # module, literal, digest
    doubts: tuple[str, ...]

    @property
    def digest(self) -> str:
        return digest_of("own code", PYTHON, self.modules, self.libraries, self.absent, self.files)


def own_code(module: str, folder: str) -> OwnCode:
    """What the module rests on, which need not be imported yet; literals name files in `folder` or beside a module."""
    importlib.invalidate_caches()  # a file may be new
    walk = _Walk(module, Path(folder))
    return OwnCode(
        modules=tuple(sorted(walk.digests.items())),
        libraries=tuple(sorted(walk.libraries)),
        absent=tuple(sorted(walk.absent)),
        files=tuple(sorted(walk.files)),
        doubts=tuple(walk.doubts),
    )


class _Walk:
    """From the first module through everything that is reached from it."""

    def __init__(self, first: str, folder: Path) -> None:
        self.digests: dict[str, str] = {}
        self.libraries: set[str] = set()
        self.absent: set[str] = set()
        self.files: set[tuple[str, str, str]] = set()
        self.doubts: list[str] = []
        self._modules, self._folder = Modules(), folder
        self._seen: set[str] = set()
        waiting = [*prefixes(first)[:-1], first]
        while waiting:
            name = waiting.pop()
            if name not in self._seen:
                self._seen.add(name)
                waiting += self._reached(name, is_first=name == first)

    def _reached(self, name: str, is_first: bool) -> list[str]:
        """Note one module; what it imports, with every package on the way."""
        found = self._modules.find(name)
        if found is None:
            if "." not in name:
                self.absent.add(name)
            return []
        if not found.is_own:
            self.libraries.update(found.libraries)
        if found.file is None or not (found.is_own or is_first):
            return []
        content = found.file.read_bytes()
        self.digests[name] = digest_of_bytes(content)
        if not found.is_source:
            self.doubts.append(f"{found.file.name} {COMPILED}")
            return []
        try:
            text = read_source(content, name if found.folders is not None else name.rpartition(".")[0])
        except (SyntaxError, ValueError) as error:
            self.doubts.append(f"{found.file.name} can't be parsed ({reason_of(error)}): what it imports and reads")
            return []
        self._note(name, found, text)
        self.libraries.update(filter(None, map(_libraries_below, text.modules)))
        return [step for imported in self._imported(text) for step in self._steps(imported)]

    def _imported(self, text: SourceText) -> Iterator[str]:
        yield from sorted(text.modules)
        for package in sorted(text.stars):
            if self._is_own(package):
                yield from self._modules.below(package)

    def _steps(self, name: str) -> Iterator[str]:
        """The packages on the way to a module and itself, up to the first that is a library's."""
        for step in prefixes(name):
            yield step
            if not self._is_own(step):
                return

    def _is_own(self, name: str) -> bool:
        found = self._modules.find(name)
        return found is not None and (found.is_own or found.file is None)

    def _note(self, name: str, found: Located, text: SourceText) -> None:
        assert found.file is not None
        for literal in text.literals:
            for folder in (self._folder, found.file.parent):
                path = folder / literal
                if os.path.isfile(path) and os.access(path, os.R_OK):  # noqa: PTH113 (Path's raises for long texts)
                    self.files.add((name, literal, digest_of_bytes(storage.read_mapped(str(path)))))
        for doubt, lines in text.doubts.items():
            places = ", ".join(map(str, sorted(set(lines))))
            self.doubts.append(f"{found.file.name} {doubt} (line {places}): what that brings")


def _libraries_below(module: str) -> str:
    """What a descriptor of raybench's rests on, for a class of the user's that is made from it."""
    folder, _, name = module.removeprefix("raybench.").partition(".")
    own = name.partition(".")[0]
    return libraries_of(f"raybench.descriptors.{own}:") if folder == "descriptors" and own in LIBRARIES else ""
