"""Files and folders that arguments of a constructor name, at any depth: they count by content, not by where they are.

A text counts as a name if a file or folder of that name is there now: a path from the current folder, `file://`, or
an object store's URI. What stands below a large folder counts by names, sizes and times.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import ConfigError, DataError

FETCHED = "path"  # the argument whose file is fetched to each node before the class is opened
MOST_FILES = 10_000  # of a folder that counts
CONTENT_BYTES = 64 * 2**20  # of a folder that counts by content


@dataclass(frozen=True)
class NamedFile:
    """A file that an argument names, as it is given, and the digest of its content; of a folder none."""

    uri: str
    digest: str


@dataclass
class NamedFiles:
    """What was found among arguments: files, and lines about what does not count."""

    files: list[NamedFile] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def by_content(arguments: dict[str, Any], found: NamedFiles) -> dict[str, Any]:
    """The arguments with each name of a file or folder replaced by what identifies its content."""
    return {key: _counted(key, value, found, key == FETCHED) for key, value in arguments.items()}


def _counted(key: str, value: Any, found: NamedFiles, fetched: bool) -> Any:
    if isinstance(value, str):
        return _named(key, value, found, fetched)
    if isinstance(value, dict):
        return {name: _counted(f"{key}.{name}", one, found, False) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_counted(key, one, found, False) for one in value]
    return value


def _named(key: str, text: str, found: NamedFiles, fetched: bool) -> Any:
    scheme = urlsplit(text).scheme if "://" in text else ""
    if scheme in ("http", "https") and not fetched:
        found.doubts.append(f"argument {key} is a web address: its content")
        return text
    if scheme and scheme != "file":
        return _remote(text, found, fetched)
    path = existing(text)
    if path is None:
        return text
    if path.is_file():
        digest = file_digest(str(path))
        found.files.append(NamedFile(text, digest))
        return ["file", path.name, digest]
    if path.is_dir():
        return _folder(key, text, path, found)
    return text


def existing(text: str) -> Path | None:
    """The path that a text names from the current folder; None if there is nothing, or a text too plain for a name."""
    plain = storage.local_path(text)
    if plain is None or not text.strip("./~ ") or "\0" in text:
        return None
    path = plain.expanduser()
    return path if os.path.exists(path) else None  # noqa: PTH110 (Path's raises where a text is too long for a name)


def _remote(uri: str, found: NamedFiles, fetched: bool) -> Any:
    try:
        uri = storage.checked(uri)
    except ConfigError as error:
        if "unknown scheme" in str(error):
            return uri
        raise
    name = uri.rpartition("/")[2]
    entries = storage.list_files(uri)
    if entries:
        return ["folder", name, storage.identity(uri, entries, by_content=False)]
    if not storage.exists(uri):
        return uri
    digest = file_digest(uri)
    if fetched:  # others are not looked at again in each worker, which would fetch them for that alone
        found.files.append(NamedFile(uri, digest))
    return ["file", name, digest]


def file_digest(uri: str) -> str:
    """The digest of a file's content, whose node-local copy is there afterwards."""
    try:
        return digest_of_bytes(storage.read_mapped(uri))
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected a model file") from None
    except IsADirectoryError:
        raise DataError(f"{uri}: is a folder; expected a model file") from None
    except PermissionError:
        raise DataError(f"{uri}: can't be read; check its permissions") from None


def _folder(key: str, text: str, path: Path, found: NamedFiles) -> Any:
    files = list(islice(_files_below(path), MOST_FILES + 1))
    if len(files) > MOST_FILES:
        found.doubts.append(f"argument {key} names a folder of more than {MOST_FILES:,} files: what is in it")
        return text
    entries = storage.list_files(str(path))
    found.files.append(NamedFile(text, ""))
    small = sum(entry.size_bytes for entry in entries) <= CONTENT_BYTES
    return ["folder", path.name, _identity(str(path), entries, small)]


def _identity(root: str, entries: list[storage.Entry], by_content: bool) -> str:
    if by_content:  # and by nothing else: a copy of the folder has other times
        listed = [(entry.name, digest_of_bytes(storage.read(storage.join(root, entry.name)))) for entry in entries]
        return digest_of("folder", listed)
    return storage.identity(root, entries, by_content=False)


def _files_below(path: Path) -> Iterator[str]:
    for _, _, names in os.walk(path):
        yield from names


def found_again(arguments: dict[str, Any], files: tuple[NamedFile, ...], folder: str) -> dict[str, Any]:
    """The arguments for a class on this node, whose current folder may be another than the driver's (`folder`).

    A name that leads to another file from here is made a path into the driver's folder; a file that is another one
    than the run began with is an error. Where this node has no such file, the name stays: the class may not need it.
    """
    paths = {one.uri: _found_again(one, folder) for one in files}
    return {key: _renamed(value, paths) for key, value in arguments.items()}


def _found_again(one: NamedFile, folder: str) -> str:
    local = storage.local_path(one.uri)
    if local is None:
        places: list[str] = [one.uri]
    else:
        here = local.expanduser()
        places = [str(path) for path in (here, Path(folder) / here) if path.exists()]
    for place in places:
        if not one.digest or file_digest(place) == one.digest:
            return one.uri if local is None or place == str(local.expanduser()) else place
    if places:
        raise DataError(
            f"{places[-1]}: is not the file that the run began with; it changed since, or this node has another; "
            "run again"
        )
    return one.uri


def _renamed(value: Any, paths: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(one, paths) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(one, paths) for one in value]
    return paths.get(value, value) if isinstance(value, str) else value
