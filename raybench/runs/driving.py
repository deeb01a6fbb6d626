"""One driver per output folder: a second one is refused and told of the first; a dead one is in nobody's way.

On disk the kernel's lock of a file decides, which ends with its process. A driver on another host, or on an object
store, is known by its lease alone, which it renews every few seconds: one that changes belongs to a living driver, one
that does not is taken over. Limits: of two drivers that begin on an object store within the same second both may go
on, and one that does not reach its store for longer than a lease lasts may be taken over. Both then do the same work
and publish the same bytes; the one that was taken over says so.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from raybench import storage
from raybench.atomic_files import FILE_MODE, make_folder
from raybench.errors import FolderInUse, StorageError
from raybench.runs.leases import Lease

FILE_NAME = ".driver.json"
RENEWED_EVERY_SECONDS = 5.0
DEAD_AFTER_SECONDS = 20.0  # without a renewal
LOOK_EVERY_SECONDS = 0.5
OLD_SECONDS = 3600.0  # by any clock: nobody waits for a renewal of such a lease

Say = Callable[[str], None]


@contextmanager
def driving(out: str, say: Say) -> Iterator[None]:
    """The block is the only driver of this folder; raises FolderInUse if there is another."""
    path = storage.local_path(out)
    place: Place = LeaseObject(storage.join(out, FILE_NAME)) if path is None else LockedFile(path, out)
    try:
        _await_the_end(place, out, say)
        mine = Lease.of_this_process()
        place.write(mine)
        found = place.read()
        if found is not None and found.key != mine.key:
            raise _in_use(out, found)
        ended = threading.Event()
        renewal = threading.Thread(target=_renew, args=(place, mine, ended, out, say), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            ended.set()
            renewal.join(RENEWED_EVERY_SECONDS)  # it may be waiting for a store that does not answer
            with suppress(StorageError):
                place.remove(mine)
    finally:
        place.close()


class Place(Protocol):
    """Where a folder's lease is kept."""

    def read(self) -> Lease | None: ...

    def write(self, lease: Lease) -> None: ...

    def remove(self, lease: Lease) -> None:
        """Remove it if it is still this driver's."""
        ...

    def is_dead(self, lease: Lease) -> bool:
        """Whether the driver that left it has surely ended."""
        ...

    def close(self) -> None: ...


class LeaseObject:
    """On an object store: a small object."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def read(self) -> Lease | None:
        try:
            return Lease.read(storage.read(self._uri))
        except FileNotFoundError:
            return None

    def write(self, lease: Lease) -> None:
        storage.publish(self._uri, lease.to_bytes())

    def remove(self, lease: Lease) -> None:
        found = self.read()
        if found is not None and found.key == lease.key:
            storage.delete(self._uri)

    def is_dead(self, lease: Lease) -> bool:
        return lease.is_surely_dead

    def close(self) -> None:
        """Nothing is held."""


class LockedFile:
    """On disk: a small file that is locked. Raises FolderInUse if another process of this machine has locked it."""

    def __init__(self, folder: Path, out: str) -> None:
        self._path = folder / FILE_NAME
        self._made, self._is_locked = not folder.exists(), True
        try:
            make_folder(folder)
            self._file = self._locked(out)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def _locked(self, out: str) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, FILE_MODE)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                there = Lease.read(os.pread(file, 10_000, 0))
                os.close(file)
                raise _in_use(out, there) from None
            except OSError:  # a file system without locks: the lease decides alone
                self._is_locked = False
                return file
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), self._path.stat()):
                    return file
            os.close(file)  # the driver that ended meanwhile removed it

    def read(self) -> Lease | None:
        return Lease.read(os.pread(self._file, 10_000, 0))

    def write(self, lease: Lease) -> None:
        data = lease.to_bytes()
        try:
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def remove(self, lease: Lease) -> None:
        found = self.read()
        if found is not None and found.key == lease.key:
            with suppress(OSError):
                self._path.unlink()
                if self._made:
                    self._path.parent.rmdir()  # nothing was written

    def is_dead(self, lease: Lease) -> bool:
        return lease.is_surely_dead or (self._is_locked and lease.host == socket.gethostname())

    def close(self) -> None:
        os.close(self._file)


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: can't be written ({error.strerror}); check permission and free space")


def _in_use(out: str, lease: Lease | None) -> FolderInUse:
    words = "" if lease is None else f" ({lease.words})"
    return FolderInUse(f"{out}: another driver is at work there{words}; wait for its end, or name another --out")


def _await_the_end(place: Place, out: str, say: Say) -> None:
    """Return once no living driver has the lease; raises FolderInUse as soon as one renews it."""
    first = place.read()
    if first is None or place.is_dead(first):
        return
    if abs(time.time() - first.renewed) < OLD_SECONDS:
        say(f"{out}: waiting up to {DEAD_AFTER_SECONDS:.0f} s to see whether its last driver lives ({first.words})")
        deadline = time.monotonic() + DEAD_AFTER_SECONDS
        while time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SECONDS)
            now = place.read()
            if now is None:
                return
            if now != first:
                raise _in_use(out, now)
    say(f"{out}: its last driver is gone ({first.words}); this one takes over")


def _renew(place: Place, lease: Lease, ended: threading.Event, out: str, say: Say) -> None:
    while not ended.wait(RENEWED_EVERY_SECONDS):
        with suppress(Exception):  # whatever a store says now, it may answer the next time
            found = place.read()
            if found is not None and found.key != lease.key:
                say(f"{out}: another driver took it over ({found.words}); both do the same work")
                return
            place.write(lease.again())
