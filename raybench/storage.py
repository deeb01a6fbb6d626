"""URIs to bytes: list, read, map, publish. Knows nothing of what the bytes mean.

A URI is a path, `file://` or any fsspec URL. Publishing is atomic: temp and rename on disk, one put on object
stores. What fails is tried again or said at once, as `retries` decides. Credentials come from the environment only.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from raybench import atomic_files
from raybench.atomic_files import replacing
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import ConfigError, StorageError
from raybench.parallel import in_parallel
from raybench.retries import ATTEMPTS, with_retries

T = TypeVar("T")
R = TypeVar("R")

PIECE_BYTES = 2**26  # of a large file, fetched at once
CACHE_BYTES = 32 * 2**30  # of the node-local cache; the least recently used go first
LOGIN = re.compile(r"[^/\s:@]+:[^/\s@]+@[^/\s]")
STAMPS = ("ETag", "etag", "md5", "Content-MD5", "mtime", "LastModified", "Last-Modified", "last_modified", "created")


class Entry(NamedTuple):
    """One file below a listed folder: path relative to it, size, and a stamp that changes when it is rewritten.

    A tuple, since folders have millions: made in a third of a dataclass' time, and JSON takes it as it is.
    """

    name: str
    size_bytes: int
    stamp: str


def join(uri: str, *parts: str) -> str:
    """The URI of something below a folder."""
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
    import fsspec  # takes as long as numpy, and most runs have paths only

    if parts.scheme not in fsspec.available_protocols():
        raise ConfigError(f"{uri}: unknown scheme {parts.scheme!r}; use a path, file://, s3:// or another fsspec URL")
    return uri.rstrip("/")


def read(uri: str) -> bytes:
    """The whole content."""
    path = local_path(uri)
    if path is not None:
        return with_retries(uri, path.read_bytes)
    return with_retries(uri, lambda: bytes(_filesystem(uri).cat_file(uri)))


def read_start(uri: str, count: int) -> bytes:
    """The first `count` bytes (fewer if the file is shorter): enough for headers."""
    path = local_path(uri)
    if path is not None:

        def head() -> bytes:
            with path.open("rb") as file:
                return file.read(count)

        return with_retries(uri, head)
    return with_retries(uri, lambda: bytes(_filesystem(uri).cat_file(uri, start=0, end=count)))


def read_mapped(uri: str) -> memoryview:
    """The whole content as a mapped file: of the file itself on disk, of its node-local copy elsewhere."""
    path = local_path(uri)
    if path is not None:
        return _mapped(path)
    for _ in range(ATTEMPTS):
        copy = _cached_copy(uri)
        with suppress(FileNotFoundError):  # another process evicted the copy before it was opened: fetch it again
            return _mapped(copy)
    raise StorageError(f"{uri}: its node-local copy vanished {ATTEMPTS} times; is {_cache_folder()} full?")


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        # Its checksums are read through at once, so fault its pages in at once, too.
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        return memoryview(mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ))


def fetch(uri: str) -> Path:
    """A path on this node with the content, for libraries that open files themselves."""
    path = local_path(uri)
    return path if path is not None else _cached_copy(uri)


def forget_copy(uri: str) -> None:
    """Drop the node-local copy, if there is one."""
    if local_path(uri) is None:
        with suppress(FileNotFoundError):
            _copy_path(uri)[0].unlink()


def list_files(uri: str) -> list[Entry]:
    """Every file below a folder, in name order; a missing folder has none."""
    path = local_path(uri)
    if path is not None:
        return sorted(_walk(path, ""), key=attrgetter("name"))
    filesystem = _filesystem(uri)

    def find() -> dict[str, Any]:
        filesystem.invalidate_cache()
        found: dict[str, Any] = filesystem.find(uri, detail=True)
        return found

    try:
        found = with_retries(uri, find)
    except FileNotFoundError:
        return []
    root = filesystem._strip_protocol(uri).rstrip("/") + "/"
    return sorted(
        (
            Entry(name.removeprefix(root), int(info.get("size") or 0), _stamp(info))
            for name, info in found.items()
            if name.startswith(root)
        ),
        key=attrgetter("name"),
    )


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
    return digest_of("files", listed)


def exists(uri: str) -> bool:
    """Whether there is a file or folder."""
    path = local_path(uri)
    if path is not None:
        return path.exists()
    filesystem = _filesystem(uri)
    filesystem.invalidate_cache()
    return with_retries(uri, lambda: bool(filesystem.exists(uri)))


def publish(uri: str, data: bytes | memoryview) -> None:
    """Write the whole content at once: a reader sees the old file, none, or all of the new one."""
    path = local_path(uri)
    if path is None:
        with_retries(uri, lambda: _filesystem(uri).pipe_file(uri, bytes(data)))
        return
    # No fsync: what a power cut tears, the shard file's checksums find.
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise StorageError(f"{uri}: can't be written ({error.strerror}); check permission and free space") from error


def remove_leftovers(uri: str, beside: str = "") -> None:
    """Remove what killed writers left below a folder, but not in the folder `beside`; only disks have leftovers."""
    path = local_path(uri)
    if path is not None:
        atomic_files.remove_leftovers(path, local_path(beside))


def delete(uri: str) -> None:
    """Remove one file; one that is not there is fine."""
    path = local_path(uri)
    if path is not None:
        path.unlink(missing_ok=True)
        return
    try:
        with_retries(uri, lambda: _filesystem(uri).rm_file(uri))
    except FileNotFoundError:
        return


def delete_folder(uri: str) -> None:
    """Remove a folder and all below it."""
    path = local_path(uri)
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)
        return
    in_parallel(delete, [join(uri, entry.name) for entry in list_files(uri)])


@cache
def _filesystem_of(protocol: str) -> Any:
    import fsspec

    if protocol in ("s3", "s3a"):
        # Servers other than Amazon's answer a range with the checksum of the whole; shard files have their own.
        checksums = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
        return fsspec.filesystem(protocol, use_listings_cache=False, config_kwargs=checksums)
    return fsspec.filesystem(protocol, use_listings_cache=False)


def _filesystem(uri: str) -> Any:
    return _filesystem_of(urlsplit(uri).scheme)


def _walk(folder: str | Path, prefix: str, above: frozenset[str] = frozenset()) -> Iterator[Entry]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    above |= {os.path.realpath(folder)}
    below = []  # walked last: one folder is open at a time, and a million entries are never held
    gone = suppress(FileNotFoundError)  # since it was listed; or a link to nowhere
    with entries:
        for entry in entries:
            if entry.is_dir():
                below.append(entry)
            elif not entry.name.endswith(".tmp"):
                with gone:
                    info = entry.stat()
                    yield Entry(prefix + entry.name, info.st_size, str(info.st_mtime_ns))
    for entry in below:
        if os.path.realpath(entry.path) not in above:  # a link to a folder above would never end
            yield from _walk(entry.path, f"{prefix}{entry.name}/", above)


def _stamp(info: dict[str, Any]) -> str:
    """The first of these that a filesystem tells; nothing if it tells none."""
    return next((str(info[key]) for key in STAMPS if info.get(key) is not None), "")


def _cache_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"raybench-cache-{os.getuid()}"


def _cached_copy(uri: str) -> Path:
    """The node-local copy of a remote file, fetched if this version of it is not there yet."""
    copy, size_bytes = _copy_path(uri)
    with suppress(FileNotFoundError):
        os.utime(copy)  # the least recently used go first
        return copy
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    if copy.parent.lstat().st_uid != os.getuid():
        raise StorageError(f"{copy.parent}: belongs to another user; remove it")
    copy.parent.chmod(0o700)
    if size_bytes <= PIECE_BYTES:
        data = read(uri)
        _make_room(len(data))
        publish(str(copy), data)
    else:
        _make_room(size_bytes)
        _copy_in_pieces(uri, size_bytes, copy)
    return copy


def _copy_in_pieces(uri: str, size_bytes: int, copy: Path) -> None:
    """Fetch a file that may be larger than memory."""
    ranges = [(start, min(start + PIECE_BYTES, size_bytes)) for start in range(0, size_bytes, PIECE_BYTES)]
    try:
        with replacing(copy) as file:
            for start, end in ranges:
                file.write(with_retries(uri, partial(_filesystem(uri).cat_file, uri, start=start, end=end)))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise StorageError(f"{uri}: no room for its node-local copy; free some space in {copy.parent}") from error


def _copy_path(uri: str) -> tuple[Path, int]:
    """Where this version of a remote file is kept (without a stamp to tell versions apart each time anew); its size."""
    info = with_retries(uri, lambda: _filesystem(uri).info(uri))
    version = f"{uri} {info.get('size')} {_stamp(info) or uuid.uuid4().hex}"
    path = _cache_folder() / hashlib.blake2b(version.encode(), digest_size=16).hexdigest()
    return path, int(info.get("size") or 0)


def _make_room(size_bytes: int) -> None:
    """Evict until the new file fits; other processes do the same, so a file may be gone at any line."""
    atomic_files.remove_leftovers(_cache_folder())
    files = []
    for entry in os.scandir(_cache_folder()):
        if not entry.name.endswith(".tmp"):
            with suppress(FileNotFoundError):
                files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
    total = sum(size for _, size, _ in files) + size_bytes
    for _, size, path in sorted(files):
        if total <= CACHE_BYTES:
            return
        Path(path).unlink(missing_ok=True)
        total -= size
