"""Files on a disk as storage needs them: mapped into memory, and why one could not be written, in words."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)


def mapped(path: Path) -> memoryview:
    """A file's content; its pages are in memory already, since whoever maps a file reads through it at once."""
    with open(path, "rb", opener=_at_once) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        return memoryview(mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ))


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting: of a pipe it would be for someone who writes."""
    return os.open(path, flags | os.O_NONBLOCK)


def why_not_written(path: Path, error: OSError) -> str:
    """Why a file could not be written, and what to do, in words."""
    if error.errno in FULL:
        return (
            f"no room on the disk at {_mount_of(path)} ({error.strerror}); "
            "make room there and run the same command again: it goes on from what is published"
        )
    if not isinstance(error, PermissionError) and path.is_dir():
        return "can't be written (a folder has its name); move that away"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "can't be written (a file has the name of a folder above it); move that away"
    return f"can't be written ({error.strerror}); check the permissions"


def _mount_of(path: Path) -> Path:
    """The folder in which the path's file system begins."""
    return next(folder for folder in path.absolute().parents if folder.is_mount())
