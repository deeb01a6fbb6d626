"""Files on a disk: written in one piece or not at all, mapped, and what killed writers left behind.

A writer holds a lock on its temporary file for as long as it lives, whatever ends it. So one that nobody has locked is
nobody's, and may be removed at any time.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".tmp"
OUR_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
SURELY_ABANDONED_SECONDS = 86_400.0  # where a file system knows no locks
FULL = (errno.ENOSPC, errno.EDQUOT)


def write(path: Path, blocks: Iterable[bytes | memoryview]) -> None:
    """Write a file from its blocks: a reader sees the old file, none, or all of the new one."""
    with _temporary_file(path) as file:
        for block in blocks:
            file.write(block)
        file.flush()
        # No fsync: what a power cut tears, the shard file's checksums find. But closing, here of a second handle, is
        # when a network's file system says what it could not write.
        os.close(os.dup(file.fileno()))
        Path(file.name).replace(path)


@contextmanager
def _temporary_file(path: Path) -> Iterator[BinaryIO]:
    """A new locked file beside a path, gone after the block unless it took the path's place."""
    while True:
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY}")
        with temporary.open("xb") as file:
            with suppress(OSError):  # a file system without locks: its age tells
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink == 0:  # removed as nobody's, just before it was locked
                continue
            try:
                yield file
            finally:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
            return


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files in a folder that no living process is writing."""
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.name.endswith(TEMPORARY) and OUR_TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):  # another process's, or its writer has just finished
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(temporary: Path) -> None:
    with temporary.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:
            if time.time() - os.fstat(file.fileno()).st_mtime < SURELY_ABANDONED_SECONDS:
                return
        temporary.unlink()


def mapped(path: Path) -> memoryview:
    """A file's content; its pages are in memory already, since whoever maps a file reads through it at once."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        return memoryview(mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ))


def why_not_written(path: Path, error: OSError) -> str:
    """Why a file could not be written, and what to do, in words."""
    if error.errno in FULL:
        return (
            f"no room on the disk at {_mount_of(path)} ({error.strerror}); "
            "make room there and run the same command again: it goes on from what is published"
        )
    if path.is_dir():
        return "can't be written (a folder has its name); move that away"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "can't be written (a file has the name of a folder above it); move that away"
    return f"can't be written ({error.strerror}); check the permissions"


def _mount_of(path: Path) -> Path:
    """The folder in which the path's file system begins."""
    return next(folder for folder in path.absolute().parents if folder.is_mount())
