"""Files on a disk as storage needs them: read, mapped into memory, their facts, and why one could not be written."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import BinaryIO

from raybench.errors import DataError, OutOfReach

FULL = (errno.ENOSPC, errno.EDQUOT)
NOWHERE = (errno.ENOENT, errno.ELOOP)  # gone since it was listed, or a link to nothing


def content(uri: str, path: Path, count: int = -1, start: int = 0) -> bytes:
    """A file's bytes, or some of them; one that nobody may read and a link to nothing are bad input."""
    try:
        with path.open("rb", buffering=0 if count >= 0 else -1) as file:
            file.seek(start)
            return _exactly(file, count) if count >= 0 else file.read()
    except PermissionError as error:
        raise OutOfReach(f"{uri}: can't be read ({error.strerror}); check its permissions") from error
    except OSError as error:
        if error.errno in NOWHERE and path.is_symlink():
            raise DataError(f"{uri}: is a link to {path.readlink()}, which is not there; mend or remove it") from error
        raise


def _exactly(file: BinaryIO, count: int) -> bytes:
    """So many bytes from a file, which gives at most 2 GB at once, or all that are left."""
    data = file.read(count)
    while 0 < len(data) < count and (more := file.read(count - len(data))):
        data += more
    return data


def facts(path: Path) -> os.stat_result | None:
    """What the disk tells of a file; None of one that can't be there, as its name is too long or holds a zero byte."""
    try:
        return path.stat()
    except ValueError:
        return None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return None


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
