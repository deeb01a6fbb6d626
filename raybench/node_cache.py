"""Node-local copies of remote files: fetched once per version, shared by the processes of a node, bounded in size."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from raybench import disk, remote
from raybench.atomic_files import remove_leftovers, replacing
from raybench.errors import StorageError

R = TypeVar("R")

CACHE_BYTES = 32 * 2**30  # the least recently used go first
MOST_EVICTIONS = 5  # of one copy by other processes, before it is opened


def opened(uri: str, use: Callable[[Path], R]) -> R:
    """What `use` makes of the copy's path; fetched again if another process evicted it before it was opened."""
    for _ in range(MOST_EVICTIONS):
        copy = copy_of(uri)
        with suppress(FileNotFoundError):
            return use(copy)
    raise StorageError(f"{uri}: its node-local copy vanished {MOST_EVICTIONS} times; is {_folder()} full?")


def copy_of(uri: str) -> Path:
    """The node-local copy of a remote file, fetched if this version of it is not there yet."""
    told = remote.facts(uri)
    copy = _path(uri, told)
    with suppress(FileNotFoundError):
        os.utime(copy)  # the least recently used go first
        return copy
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    if copy.parent.lstat().st_uid != os.getuid():
        raise StorageError(f"{copy.parent}: belongs to another user; remove it")
    copy.parent.chmod(0o700)
    try:
        _fetch(uri, told, copy)
    except OSError as error:
        if error.errno not in disk.FULL:
            raise
        raise StorageError(
            f"{uri}: no room for its node-local copy on {socket.gethostname()}; free some space in {copy.parent}"
        ) from error
    return copy


def forget(uri: str) -> None:
    """Drop the copy, if there is one."""
    with suppress(FileNotFoundError):
        _path(uri, remote.facts(uri)).unlink()


def _fetch(uri: str, told: remote.Facts, copy: Path) -> None:
    """Fetch a file; one that may be larger than memory in pieces."""
    size_bytes = told.size_bytes or 0
    if size_bytes <= remote.PIECE_BYTES:
        data = remote.read(uri, told)
        _make_room(len(data))
        with replacing(copy) as file:
            file.write(data)
        return
    _make_room(size_bytes)
    with replacing(copy) as file:
        for piece in remote.pieces(size_bytes):
            file.write(remote.read_range(uri, *piece, told.stamp))  # or it would be a part of each of two versions


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"raybench-cache-{os.getuid()}"


def _path(uri: str, told: remote.Facts) -> Path:
    """Where this version of a remote file is kept; without a stamp to tell versions apart each time anew."""
    version = f"{uri} {told.size_bytes} {told.stamp or uuid.uuid4().hex}"
    return _folder() / hashlib.blake2b(version.encode(), digest_size=16).hexdigest()


def _make_room(size_bytes: int) -> None:
    """Evict until the new file fits; other processes do the same, so a file may be gone at any line."""
    remove_leftovers(_folder())
    files = []
    for entry in os.scandir(_folder()):
        if not entry.name.endswith(".tmp"):
            with suppress(FileNotFoundError):
                files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
    total = sum(size for _, size, _ in files) + size_bytes
    for _, size, path in sorted(files):
        if total <= CACHE_BYTES:
            return
        Path(path).unlink(missing_ok=True)
        total -= size
