"""URIs to bytes: list, read, map, publish. Knows nothing of what the bytes mean.

A URI is a path, `file://` or any fsspec URL. Publishing is atomic: temp and rename on disk, one put on object
stores. What fails is tried again or said at once, as `retries` decides. Credentials come from the environment only.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from raybench import atomic_files, disk, node_cache, remote
from raybench.atomic_files import make_folder, replacing
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import ConfigError, OutOfReach, StorageError
from raybench.parallel import in_parallel
from raybench.retries import PASSING_ERRNOS, with_retries

Content = TypeVar("Content", bytes, memoryview)

LOGIN = re.compile(r"[^/\s:@]+:[^/\s@]+@[^/\s]")
NOTHING = "a link to nothing"  # its stamp


class BytesRead:
    """About how much this process has read through this module; a probe looks at the difference."""

    def __init__(self) -> None:
        self.total = 0

    def of(self, data: Content) -> Content:
        self.total += len(data)
        return data


BYTES_READ = BytesRead()


class Entry(NamedTuple):
    """One file below a listed folder: path relative to it, size, and a stamp that changes when it is rewritten.

    A tuple, since folders have millions: made in a third of a dataclass' time, and JSON takes it as it is.
    """

    name: str
    size_bytes: int
    stamp: str


def join(uri: str, *parts: str) -> str:
    """The URI of something below a folder. No folder is not the root of the disk: a job without one wrote there."""
    if not uri:
        raise ConfigError(f"no folder is given for {'/'.join(parts)}; name one")
    return "/".join([uri.rstrip("/"), *(part.strip("/") for part in parts)])


def local_path(uri: str) -> Path | None:
    """The path behind a URI on this machine's disk, None for everything else."""
    if "://" not in uri:
        return Path(uri)
    return Path(uri.removeprefix("file://").removeprefix("localhost")) if uri.startswith("file://") else None


def checked(uri: str) -> str:
    """The URI itself, made absolute if it is a path; refuses one that carries credentials or an unknown scheme."""
    path = local_path(uri)
    if path is not None:
        if LOGIN.match(uri):
            raise ConfigError("a path that begins like user:password@host; credentials come from the environment")
        return str(path.expanduser().absolute())
    parts = urlsplit(uri)
    # A secret may hold a slash, which ends the host before the @; only web addresses have ports. A query may sign.
    named = parts.scheme in ("http", "https")
    if "@" in parts.netloc or (":" in parts.netloc and not named) or parts.query or "::" in uri:
        raise ConfigError(
            f"{parts.scheme}://…: a URI must not carry credentials, a query or another URI; "
            "credentials come from the environment"
        )
    if not remote.is_known(parts.scheme):
        raise ConfigError(f"{uri}: unknown scheme {parts.scheme!r}; use a path, file://, s3:// or another fsspec URL")
    return uri.rstrip("/")


def one_spelling(uri: str) -> str:
    """A URI as every other that leads to the same file is spelled, links aside.

    >>> one_spelling("file:///a/b/../c.jpg"), one_spelling("/a//c.jpg"), one_spelling("s3://b/a/../c.jpg")
    ('/a/c.jpg', '/a/c.jpg', 's3://b/a/../c.jpg')
    """
    if "://" not in uri or uri.startswith("file://"):
        return os.path.normpath(uri.removeprefix("file://").removeprefix("localhost"))
    return uri


def read(uri: str) -> bytes:
    """The whole content."""
    path = local_path(uri)
    return BYTES_READ.of(remote.read(uri) if path is None else with_retries(uri, lambda: disk.content(uri, path)))


def read_start(uri: str, count: int) -> bytes:
    """The first `count` bytes (fewer if the file is shorter): enough for headers."""
    path = local_path(uri)
    if path is None:
        return BYTES_READ.of(remote.read_start(uri, count))

    return BYTES_READ.of(with_retries(uri, lambda: disk.content(uri, path, count)))


def read_range(uri: str, start: int, end: int, stamp: str = "") -> bytes:
    """Bytes start..end of a file that has them all; one that ends before is bad input.

    A stamp that the file was told to have is compared where that costs nothing.
    """
    path = local_path(uri)
    if path is None:
        return BYTES_READ.of(remote.read_range(uri, start, end, stamp) if end > start else b"")
    data = BYTES_READ.of(with_retries(uri, lambda: disk.content(uri, path, end - start, start)))
    if len(data) != end - start:
        raise OutOfReach(
            f"{uri}: ends at byte {start + len(data):,}, expected {end:,} or more; it was cut or rewritten"
        )
    return data


def read_mapped(uri: str) -> memoryview:
    """The whole content as a mapped file: of the file itself on disk, of its node-local copy elsewhere."""
    path = local_path(uri)
    return BYTES_READ.of(node_cache.opened(uri, disk.mapped) if path is None else disk.mapped(path))


def fetch(uri: str) -> Path:
    """A path on this node with the content, for libraries that open files themselves."""
    path = local_path(uri)
    return node_cache.copy_of(uri) if path is None else path


def forget_copy(uri: str) -> None:
    """Drop the node-local copy, if there is one."""
    if local_path(uri) is None:
        node_cache.forget(uri)


def list_files(uri: str) -> list[Entry]:
    """Every file below a folder, in name order; a missing folder has none."""
    return sorted(each_file(uri), key=attrgetter("name"))


def each_file(uri: str) -> Iterator[Entry]:
    """Every file below a folder as it is listed, in no order, for those who need not hold them all."""
    path = local_path(uri)
    if path is not None:
        return _walk(path, "")
    return (Entry(name, told.size_bytes or 0, told.stamp) for name, told in remote.listed(uri))


def told(uri: str) -> Entry:
    """A file's last name, size and stamp, by one request; raises FileNotFoundError."""
    path, name = local_path(uri), uri.rpartition("/")[2]
    if path is None:
        facts = remote.facts(uri)
        return Entry(name, facts.size_bytes or 0, facts.stamp)
    info = with_retries(uri, lambda: disk.facts(path))
    if info is None or not stat.S_ISREG(info.st_mode):
        raise FileNotFoundError(errno.ENOENT, "No such file", uri)
    return Entry(name, info.st_size, str(info.st_mtime_ns))


def identity(root: str, entries: Iterable[Entry], by_content: bool) -> str:
    """The digest of these files of a folder: of names, sizes and stamps, or of contents (`--verify-inputs`).

    A file without a stamp counts by its content. An edit that keeps size and stamp shows by content alone.
    """
    listed = list(entries)
    unstamped = [entry.name for entry in listed if by_content or not entry.stamp]
    try:
        digests = in_parallel(lambda name: digest_of_bytes(read(join(root, name))), unstamped)
    except FileNotFoundError as error:
        raise StorageError(f"{root}: a file is gone since the folder was listed ({error}); run again") from error
    if unstamped:
        content = dict(zip(unstamped, digests, strict=True))
        listed = [entry._replace(stamp=content.get(entry.name, entry.stamp)) for entry in listed]
    return digest_of_entries(listed)


def digest_of_entries(entries: Sequence[Entry]) -> str:
    """The digest of files by what their entries say."""
    return digest_of("files", list(entries))


def exists(uri: str) -> bool:
    """Whether there is a file or folder."""
    path = local_path(uri)
    return remote.exists(uri) if path is None else path.exists()


def is_folder(uri: str) -> bool:
    """Whether a folder has this name on disk, where it keeps a file from having it; object stores have no folders."""
    path = local_path(uri)
    return path is not None and path.is_dir()


def publish(uri: str, data: bytes | memoryview) -> None:
    """Write the whole content at once: a reader sees the old file, none, or all of the new one."""
    path = local_path(uri)
    if path is None:
        remote.put(uri, bytes(data))
        return

    def write() -> None:
        # No fsync: what a power cut tears, the shard file's checksums find.
        with _said(uri, path), replacing(path) as file:
            file.write(data)

    with_retries(uri, write)


def check_folder_name(uri: str) -> None:
    """Refuse a folder's name that a file on disk has, or that leads through a file."""
    path = local_path(uri)
    for above in (path, *path.parents) if path is not None else ():
        if above.exists():
            if not above.is_dir():
                raise StorageError(f"{uri}: {'this' if above == path else above} is a file; name a folder")
            return


def try_writing(uri: str) -> None:
    """Write a small file to a folder, which may not be there yet, and remove it; raises StorageError."""
    check_folder_name(uri)
    name, path = f".raybench-check-{uuid.uuid4().hex}", local_path(uri)
    # On disk in the folder in which others would be made: nothing but this file itself is, and not for long.
    above = uri if path is None else str(next(folder for folder in (path, *path.parents) if folder.exists()))
    try:
        publish(join(above, name), b"")
        delete(join(above, name))
    except StorageError as error:
        said = str(error).replace(f"/{name}", "")
        raise StorageError(said if above == uri else f"{uri}: can't be made; {said}") from error


def delete(uri: str) -> None:
    """Remove one file; one that is not there is fine."""
    path = local_path(uri)
    if path is None:
        remote.delete(uri)
    else:
        with_retries(uri, lambda: path.unlink(missing_ok=True))


def move_aside(uri: str, folder: str) -> str:
    """Move a folder on disk, which may hold anything, into another under a name that is free; returns where it is."""
    path, aside = local_path(uri), local_path(folder)
    assert path is not None and aside is not None, f"{uri}: object stores have no folders"
    with _said(uri, path):
        make_folder(aside)
        name = f"{path.parent.name}-{path.name}"
        taken = {entry.name for entry in aside.iterdir()}
        free = next(one for number in range(len(taken) + 1) if (one := f"{name}-{number}") not in taken)
        return str(path.rename(aside / free))


def remove_leftovers(uri: str, beside: str = "") -> None:
    """Remove what killed writers left below a folder, but not in the folder `beside`; only disks have leftovers."""
    path = local_path(uri)
    if path is not None:
        atomic_files.remove_leftovers(path, local_path(beside))


@contextmanager
def _said(uri: str, path: Path) -> Iterator[None]:
    """Say what keeps the block from writing to a path, if it is the user's to mend."""
    try:
        yield
    except OSError as error:
        if error.errno in PASSING_ERRNOS:
            raise
        raise StorageError(f"{uri}: {disk.why_not_written(path, error)}") from error


def delete_folder(uri: str) -> None:
    """Remove a folder and all below it."""
    path = local_path(uri)
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)
        return
    in_parallel(delete, [join(uri, entry.name) for entry in list_files(uri)])


def _walk(folder: str | Path, prefix: str, above: frozenset[str] = frozenset()) -> Iterator[Entry]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError as error:
        raise StorageError(f"{folder}: can't be listed ({error.strerror}); check its permissions") from error
    above |= {os.path.realpath(folder)}
    below = []  # walked last: one folder is open at a time, and a million entries are never held
    with entries:
        for entry in entries:
            try:
                if entry.is_dir():
                    below.append(entry)
                    continue
                info = entry.stat()
            except OSError as error:
                if error.errno not in disk.NOWHERE:
                    raise
                if entry.is_symlink() and not entry.name.endswith(".tmp"):  # listed, so that whoever reads it says it
                    yield Entry(prefix + entry.name, 0, NOTHING)
                continue
            if stat.S_ISREG(info.st_mode) and not entry.name.endswith(".tmp"):
                yield Entry(prefix + entry.name, info.st_size, str(info.st_mtime_ns))
    for entry in below:
        if os.path.realpath(entry.path) not in above:  # a link to a folder above would never end
            yield from _walk(entry.path, f"{prefix}{entry.name}/", above)
