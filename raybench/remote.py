"""Object stores, and whatever else fsspec reaches: bytes by URI, each answer held against what the store says it has.

A body may be cut on its way and its length header agree: a whole file is compared with the size that the store tells
apart from it, a range with what was asked for. Every request is tried again by `retries` alone.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from raybench.errors import OutOfReach, StorageError, reason_of
from raybench.parallel import in_parallel
from raybench.retries import with_retries

S3 = ("s3", "s3a")
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
CONNECT_SECONDS, READ_SECONDS = 5, 15  # until a connection is there; between two pieces of an answer
PIECE_BYTES = 2**26  # of a large file, fetched at once
PARTS_FROM_BYTES = 100 * 2**20  # from here on s3fs uploads in parts
TRIES_OF_A_PART = 5
DIGESTED_BYTES = 2**20  # MD5 takes 1 ms per MB, and what is larger are mostly shard files, with checksums of their own
STAMPS = ("ETag", "etag", "md5", "Content-MD5", "mtime", "LastModified", "Last-Modified", "last_modified", "created")


class Facts(NamedTuple):
    """What a store tells of a file: its size if it knows it, and a stamp that changes when it is rewritten."""

    size_bytes: int | None
    stamp: str


def facts(uri: str) -> Facts:
    """What the store tells of a file, by one request."""
    return with_retries(uri, partial(_facts, uri))


def read(uri: str, told: Facts | None = None) -> bytes:
    """The whole content, of the size that the store told, or tells now."""

    def whole() -> bytes:
        size_bytes = (told or _facts(uri)).size_bytes
        if size_bytes is None:
            return bytes(_filesystem(uri).cat_file(uri))
        if size_bytes > PIECE_BYTES:
            return b"".join(in_parallel(lambda piece: read_range(uri, *piece), pieces(size_bytes)))
        # One byte more is asked for than there should be, so that a file that has grown shows.
        data = _fetched(uri, 0, size_bytes + 1) if size_bytes else b""
        return _of_size(data, size_bytes)

    return with_retries(uri, whole)


def read_range(uri: str, start: int, end: int, stamp: str = "") -> bytes:
    """Bytes start..end of a file that has them all; of the version with this stamp, where answers tell (S3)."""
    if not stamp or urlsplit(uri).scheme not in S3:
        return with_retries(uri, lambda: _of_size(_part(uri, start, end), end - start))

    def same_version() -> bytes:
        data, told = _fetched_with_stamp(uri, start, end)
        if told and _bare(told) != _bare(stamp):
            raise OutOfReach(f"{uri}: was rewritten since it was listed; run again")
        return _of_size(data, end - start)

    return with_retries(uri, same_version)


def read_start(uri: str, count: int) -> bytes:
    """The first `count` bytes, or all of a shorter file."""

    def head() -> bytes:
        data = _fetched(uri, 0, count)[:count]
        if len(data) == count:
            return data
        size_bytes = _facts(uri).size_bytes
        return data if size_bytes is None else _of_size(data, min(count, size_bytes))

    return with_retries(uri, head)


def pieces(size_bytes: int) -> list[tuple[int, int]]:
    """The ranges in which a large file is fetched."""
    return [(start, min(start + PIECE_BYTES, size_bytes)) for start in range(0, size_bytes, PIECE_BYTES)]


def listed(uri: str, deep: bool = True) -> Iterator[tuple[str, Facts]]:
    """Every file below a folder (unless `deep`: in it), by its name there, in no order; a missing folder has none."""
    filesystem = _filesystem(uri)
    root: str = filesystem._strip_protocol(uri).rstrip("/") + "/"
    if urlsplit(uri).scheme in S3:
        yield from _listed_pages(uri, root, deep)
        return

    def find() -> dict[str, Any]:
        filesystem.invalidate_cache()
        found: dict[str, Any] = filesystem.find(uri, maxdepth=None if deep else 1, detail=True)
        return found

    try:
        found = with_retries(uri, find)
    except FileNotFoundError:
        return
    for name, info in found.items():
        if name.startswith(root):
            yield name.removeprefix(root), _told(info)


def _listed_pages(uri: str, root: str, deep: bool) -> Iterator[tuple[str, Facts]]:
    """An S3 listing page by page: one that fails is asked for again, not the thousand before it."""
    bucket, _, prefix = root.partition("/")
    request = {"Bucket": bucket, "Prefix": prefix} | ({} if deep else {"Delimiter": "/"})
    while True:
        page = with_retries(uri, partial(_filesystem(uri).call_s3, "list_objects_v2", **request))
        for info in page.get("Contents", ()):
            name = info["Key"].removeprefix(prefix)
            if name and not name.endswith("/"):  # which some tools put to mark a folder
                yield name, Facts(info["Size"], str(info.get("ETag") or info.get("LastModified") or ""))
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def exists(uri: str) -> bool:
    """Whether there is a file or folder."""
    _filesystem(uri).invalidate_cache()
    try:
        with_retries(uri, lambda: _filesystem(uri).info(uri))
    except FileNotFoundError:
        return False
    return True


def put(uri: str, data: bytes) -> None:
    """Write the whole content by one request; S3 compares it with a digest and refuses what was damaged on its way."""
    is_s3 = urlsplit(uri).scheme in S3
    if is_s3 and len(data) >= PARTS_FROM_BYTES:
        # A part that fails would begin all others anew.
        with_retries(uri, lambda: _filesystem(uri, TRIES_OF_A_PART).pipe_file(uri, data))
        return
    digest = {}
    if is_s3 and len(data) <= DIGESTED_BYTES:
        digest["ContentMD5"] = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
    with_retries(uri, lambda: _filesystem(uri).pipe_file(uri, data, **digest))


def delete(uri: str) -> None:
    """Remove one file; one that is not there is fine."""
    try:
        with_retries(uri, lambda: _filesystem(uri).rm_file(uri))
    except FileNotFoundError:
        return


def is_known(scheme: str) -> bool:
    """Whether fsspec has a filesystem of that name; raises StorageError if its package is not installed."""
    import fsspec  # takes as long as numpy, and most runs have paths only
    from fsspec.registry import known_implementations

    if scheme not in fsspec.available_protocols():
        return False
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        package = str(known_implementations.get(scheme, {"class": "fsspec"})["class"]).split(".")[0]
        fix = f"pip install {package}" if package != "fsspec" else "install what it asks for"
        raise StorageError(f"{scheme}://: needs a package that is not installed ({reason_of(error)}); {fix}") from error
    return True


@cache
def _filesystem_of(protocol: str, tries: int) -> Any:
    import fsspec

    if protocol not in S3:
        return fsspec.filesystem(protocol, use_listings_cache=False)
    _check_endpoint()
    settings = {
        # Servers other than Amazon's answer a range with the checksum of the whole; shard files have their own.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"total_max_attempts": tries, "mode": "standard"},
    }
    filesystem = fsspec.filesystem(protocol, use_listings_cache=False, config_kwargs=settings)
    filesystem.retries = 1
    return filesystem


def _check_endpoint() -> None:
    """The client would fail on a login there in words of its own, which may hold it."""
    for name in ENDPOINTS:
        if "@" in os.environ.get(name, ""):
            raise StorageError(
                f"{name} in the environment carries a login; expected the server's address alone, with the key in "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )


def _filesystem(uri: str, tries: int = 1) -> Any:
    return _filesystem_of(urlsplit(uri).scheme, tries)


def _facts(uri: str) -> Facts:
    info = _filesystem(uri).info(uri)
    if info.get("type") == "directory":  # names that begin with this one and a slash
        raise FileNotFoundError(errno.ENOENT, "No such file, only a folder", uri)
    return _told(info)


def _told(info: dict[str, Any]) -> Facts:
    size = info.get("size")
    stamp = next((str(info[key]) for key in STAMPS if info.get(key) is not None), "")
    return Facts(None if size is None else int(size), stamp)


def _fetched(uri: str, start: int, end: int) -> bytes:
    try:
        return bytes(_filesystem(uri).cat_file(uri, start=start, end=end))
    except OSError as error:
        if start == 0 and "InvalidRange" in f"{error} {error.__cause__}":  # no byte of an empty file can be asked for
            return b""
        raise


def _part(uri: str, start: int, end: int) -> bytes:
    """A range of a file; raises StorageError if the server gives more than was asked for, as it would each time."""
    data = _fetched(uri, start, end)
    if len(data) > end - start:
        raise StorageError(
            f"{uri}: the server gave {len(data):,} bytes where {end - start:,} were asked for, so it can't read files "
            "by range; copy the file to a disk or an object store"
        )
    return data


def _fetched_with_stamp(uri: str, start: int, end: int) -> tuple[bytes, str]:
    """A range of an object on S3, and the stamp in the same answer: a question before it would be about another."""
    from fsspec.asyn import sync

    filesystem = _filesystem(uri)
    bucket, key, _ = filesystem.split_path(uri)

    async def fetch() -> tuple[bytes, str]:
        answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")
        try:
            return await answer["Body"].read(), str(answer.get("ETag") or "")
        finally:
            answer["Body"].close()

    data, told = sync(filesystem.loop, fetch)
    return bytes(data), str(told)


def _bare(stamp: str) -> str:
    """An ETag without its quotes, which some stores leave out of some answers, and without the mark of a weak one."""
    return stamp.removeprefix("W/").strip('"')


def _of_size(data: bytes, size_bytes: int) -> bytes:
    if len(data) != size_bytes:
        raise ConnectionError(f"{len(data):,} bytes came of {size_bytes:,}")
    return data
