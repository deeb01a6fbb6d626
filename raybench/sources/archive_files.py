"""Members of archives as files: each read by its range, neighbours together, some ahead of who asks.

What is read is held against what was listed: an archive that was rewritten since is an error, and so is a member of a
zip whose checksum is another. A tar has no checksums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.errors import DataError, OutOfReach
from raybench.formats.archive_members import LINK_TO_NOTHING, Places
from raybench.formats.zip_members import HEAD_ROOM, zip_content
from raybench.parallel import ahead, in_parallel
from raybench.sources.byte_ranges import near_ranges
from raybench.sources.files import Content
from raybench.sources.packed_keys import PackedKeys

NEAR_BYTES, NEAR_REMOTE_BYTES = 2**16, 2**19  # a gap that is read rather than to ask again: what one request costs
WINDOW_BYTES, WINDOW_FILES = 2**24, 4_096  # read together while those before are used
WINDOWS_AHEAD = 2


class Archive(NamedTuple):
    """An archive as it was when it was listed."""

    uri: str
    size_bytes: int
    stamp: str

    @property
    def is_zip(self) -> bool:
        return self.uri.lower().endswith(".zip")


@dataclass(frozen=True, eq=False)
class ArchiveFiles:
    """Members of archives; `which` is the archive of each."""

    root: str
    archives: tuple[Archive, ...]
    names: Sequence[str]  # a tuple; packed where it arrives in another process
    which: NDArray[np.int64]
    places: Places

    def __reduce__(self) -> tuple[Any, ...]:
        return ArchiveFiles, (self.root, self.archives, PackedKeys.of(self.names), self.which, self.places)

    def __len__(self) -> int:
        return len(self.names)

    def uri(self, place: int) -> str:
        return f"{self.archives[self.which[place]].uri}/{self.names[place]}"

    def taken(self, places: NDArray[np.int64]) -> ArchiveFiles:
        names = tuple(self.names[place] for place in places.tolist())
        return ArchiveFiles(self.root, self.archives, names, self.which[places], self.places.taken(places))

    def read(self, place: int, count: int | None = None) -> bytes:
        content = self._contents([place], count)[0]
        if isinstance(content, DataError):
            raise content
        return content

    def read_each(self, places: Iterable[int]) -> Iterator[Content]:
        for contents in ahead(self._contents, self._windows(places), WINDOWS_AHEAD):
            yield from contents

    def read_starts(self, places: Sequence[int], count: int | None) -> list[Content]:
        return self._contents(places, count)

    def _windows(self, places: Iterable[int]) -> Iterator[list[int]]:
        """The places in this order, so many that their bytes are held at once."""
        window, held_bytes = list[int](), 0
        for place in places:
            span = int(max(self.places.span[place], self.places.size[place]))
            if window and (held_bytes + span > WINDOW_BYTES or len(window) == WINDOW_FILES):
                yield window
                window, held_bytes = [], 0
            window.append(place)
            held_bytes += span
        if window:
            yield window

    def _contents(self, places: Sequence[int], count: int | None = None) -> list[Content]:
        """The contents of these members, or their first bytes, in this order."""
        chosen = np.array(places, np.int64)
        span = self.places.span[chosen]
        if count is not None:
            is_zip = np.array([archive.is_zip for archive in self.archives])[self.which[chosen]]
            span = np.minimum(span, count + HEAD_ROOM * is_zip)
        start, which = self.places.start[chosen], self.which[chosen]
        is_near = all(storage.local_path(archive.uri) is not None for archive in self.archives[:1])
        groups = near_ranges(which, start, start + span, NEAR_BYTES if is_near else NEAR_REMOTE_BYTES)
        found: list[Content] = [b""] * len(chosen)
        read = in_parallel(lambda group: self._group(chosen[group], span[group], count), groups)
        numbers = np.concatenate(groups).tolist() if groups else []
        for number, content in zip(numbers, itertools.chain(*read), strict=True):
            found[number] = content
        return found

    def _group(self, places: NDArray[np.int64], span: NDArray[np.int64], count: int | None) -> list[Content]:
        """The contents of some members of one archive that lie near each other."""
        archive = self.archives[self.which[places[0]]]
        start = self.places.start[places]
        first = int(start.min())
        try:
            data = memoryview(_range(archive, first, int((start + span).max())))
        except DataError as error:
            return [error] * len(places)
        cuts = zip(places.tolist(), (start - first).tolist(), span.tolist(), strict=True)
        return [self._content(place, data[at : at + length], archive, count) for place, at, length in cuts]

    def _content(self, place: int, data: memoryview, archive: Archive, count: int | None) -> Content:
        method, size = int(self.places.method[place]), int(self.places.size[place])
        try:
            if method == LINK_TO_NOTHING:
                raise DataError(
                    f"{self.uri(place)}: is a link to what is no image of the archive; pack it again with the files "
                    "themselves (`tar -ch`, `zip -r` without -y)"
                )
            if not archive.is_zip:
                return bytes(data)
            crc = int(self.places.crc[place])
            content = zip_content(bytes(data), self.uri(place), method, size, crc, count)
            if count is not None and len(content) < min(count, size):  # a long header of its own, or hardly packed
                return self.read(place)[:count]
            return content
        except DataError as error:
            return error


def _range(archive: Archive, start: int, end: int) -> bytes:
    """Bytes of an archive that is still as it was listed."""
    if start == end:
        return b""
    is_near = storage.local_path(archive.uri) is not None
    if not is_near:
        _check_once(archive)
    try:
        data = storage.read_range(archive.uri, start, end, archive.stamp)
    except FileNotFoundError:
        raise _gone(archive) from None
    if is_near:
        check_unchanged(archive)  # behind it, or what is put in its place between would not show
    return data


@lru_cache(maxsize=2**16)
def _check_once(archive: Archive) -> None:
    """Once per process: each time would be as many requests again. S3 tells it with each answer besides."""
    check_unchanged(archive)


def check_unchanged(archive: Archive) -> None:
    """Raise unless an archive still is what it was when it was listed."""
    try:
        now = storage.told(archive.uri)
    except FileNotFoundError:
        raise _gone(archive) from None
    if (now.size_bytes, now.stamp) != (archive.size_bytes, archive.stamp):
        raise OutOfReach(f"{archive.uri}: was rewritten since it was listed; run again")


def _gone(archive: Archive) -> OutOfReach:
    return OutOfReach(f"{archive.uri}: is gone since it was listed; run again")
