"""Files that a source reads, by their place: names in order, whole contents, beginnings, many at once.

Where they lie is known here alone. What files hold, and which of them are wanted, sources say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.errors import DataError, OutOfReach
from raybench.parallel import ahead_if_they_wait, in_parallel
from raybench.sources.packed_keys import PackedKeys

FILES_AHEAD = 32  # read, or being read, while one is used

Content = bytes | DataError  # of a file, or why there is none


class Files(Protocol):
    """Files in an order, each with a name that no other has. Picklable: workers read what the driver listed."""

    @property
    def root(self) -> str:
        """What the user named."""
        ...

    @property
    def names(self) -> Sequence[str]: ...

    def __len__(self) -> int: ...

    def uri(self, place: int) -> str:
        """One file in words, for messages."""
        ...

    def taken(self, places: NDArray[np.int64]) -> Files:
        """Only these files, in this order."""
        ...

    def read(self, place: int, count: int | None = None) -> bytes:
        """One file's content, or its first bytes; a DataError if it is gone or broken."""
        ...

    def read_each(self, places: Iterable[int]) -> Iterator[Content]:
        """The contents of files in this order, some of them ahead of who asks."""
        ...

    def read_starts(self, places: Sequence[int], count: int | None) -> list[Content]:
        """The first bytes of these files (None: all), which are held together."""
        ...


@dataclass(frozen=True)
class FolderFiles:
    """Files below a folder, by names relative to it."""

    root: str
    names: Sequence[str]  # a tuple; packed where it arrives in another process
    is_there: bool = True  # no: the folder is known from a listing, its files may be gone

    def __reduce__(self) -> tuple[Any, ...]:
        return FolderFiles, (self.root, PackedKeys.of(self.names), self.is_there)

    def __len__(self) -> int:
        return len(self.names)

    def uri(self, place: int) -> str:
        return storage.join(self.root, self.names[place])

    def taken(self, places: NDArray[np.int64]) -> FolderFiles:
        return FolderFiles(self.root, tuple(self.names[place] for place in places.tolist()), self.is_there)

    def read(self, place: int, count: int | None = None) -> bytes:
        uri = self.uri(place)
        try:
            return storage.read(uri) if count is None else storage.read_start(uri, count)
        except FileNotFoundError:
            if not self.is_there:
                raise OutOfReach(f"{uri}: is gone, and what was computed from it is not in the store") from None
            raise OutOfReach(f"{uri}: is gone since the folder was listed; run again") from None

    def read_each(self, places: Iterable[int]) -> Iterator[Content]:
        return contents_ahead(self, places)

    def read_starts(self, places: Sequence[int], count: int | None) -> list[Content]:
        return starts_together(self, places, count)


def contents_ahead(files: Files, places: Iterable[int]) -> Iterator[Content]:
    """`read_each` where each file is read by itself."""
    return ahead_if_they_wait(lambda place: _content(files, place, None), places, FILES_AHEAD)


def starts_together(files: Files, places: Sequence[int], count: int | None) -> list[Content]:
    """`read_starts` likewise."""
    return in_parallel(lambda place: _content(files, place, count), places)


def _content(files: Files, place: int, count: int | None) -> Content:
    try:
        return files.read(place, count)
    except DataError as error:
        return error
