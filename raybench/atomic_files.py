"""Files on disk that are there as a whole or not at all, and what killed writers leave of them.

A file is written beside its place under a temporary name, locked for as long as its writer lives, and renamed. Whoever
finds a temporary file that nobody has locked may remove it. Nothing that is made here can be written by everybody,
whatever the umask.
"""

from __future__ import annotations

import fcntl
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
FILE_MODE, FOLDER_MODE = 0o664, 0o775  # less what the umask takes


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes a path's place once the block has written all of it; missing folders are made."""
    make_folder(path.parent)
    temporary, file = _locked_beside(path)
    lock = os.dup(file.fileno())
    try:
        with file:  # a network file system says only here that it could not write
            yield file
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        os.close(lock)


@contextmanager
def not_for_everybody() -> Iterator[None]:
    """What this process makes in the block, by whatever library, can't be written by everybody."""
    before = os.umask(0o077)
    os.umask(before | 0o002)
    try:
        yield
    finally:
        os.umask(before)


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing."""
    with suppress(FileExistsError):
        try:
            path.mkdir(FOLDER_MODE)
        except FileNotFoundError:
            make_folder(path.parent)
            path.mkdir(FOLDER_MODE)


def remove_leftovers(folder: Path, beside: Path | None = None) -> None:
    """Remove what killed writers left below a folder, `beside` another one in it; a living writer's file is locked."""
    for above, folders, names in os.walk(folder):
        if beside is not None:
            folders[:] = [name for name in folders if Path(above, name) != beside]
        for name in filter(TEMPORARY.fullmatch, names):
            with suppress(OSError), Path(above, name).open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(above, name).unlink()


def _locked_beside(path: Path) -> tuple[Path, BinaryIO]:
    while True:
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        file = open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")  # noqa: SIM115
        with suppress(OSError):  # a file system without locks: there nobody removes leftovers either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # it was taken for a leftover before it was locked
