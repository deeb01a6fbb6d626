"""Image folders: pictures below a URI in name order, with a digest; a source that never decides how it is cut.

A key is the file's name relative to the folder, suffix included. What a name means (a block, an id, a match by stem) is
known to benchmarks alone.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError
from raybench.formats.images import SUFFIXES
from raybench.formats.limits import USUAL, Limits
from raybench.sources.file_names import check_names
from raybench.sources.listings import is_listing, read_listing
from raybench.sources.nothing_found import why_nothing
from raybench.sources.packed_keys import PackedKeys


@dataclass(frozen=True)
class ImageFolder:
    """Pictures below `root`; keys are relative names, in name order unless they were arranged otherwise."""

    root: str
    keys: Sequence[str]  # a tuple; packed where a folder arrives in another process
    digest: str
    limits: Limits = USUAL
    is_there: bool = True  # no: it was read from a listing, the files may be gone

    def __reduce__(self) -> tuple[Any, ...]:
        return ImageFolder, (self.root, PackedKeys.of(self.keys), self.digest, self.limits, self.is_there)

    @classmethod
    def scan(cls, root: str, by_content: bool = False, recursive: bool = False, limits: Limits = USUAL) -> ImageFolder:
        """All pictures of a folder (and of those below it), or of a listing; none at all is an error."""
        if is_listing(root):
            known = read_listing(root)
            return cls(known.root, known.keys, known.digest, limits, is_there=False)
        entries = list_images(root, recursive)
        if not entries:
            below = " in it or below" if recursive else ""
            reason = why_nothing(root, SUFFIXES, 0)
            raise DataError(f"{root}: {reason}; expected a folder with images{below} ({', '.join(SUFFIXES)})")
        return cls.of(root, entries, by_content, limits)

    @classmethod
    def of(
        cls, root: str, entries: Iterable[storage.Entry], by_content: bool = False, limits: Limits = USUAL
    ) -> ImageFolder:
        """These files of a folder, which may be a part of what was listed."""
        chosen = sorted(entries, key=attrgetter("name"))
        digest = digest_of("images", storage.identity(root, chosen, by_content))
        return cls(root, tuple(entry.name for entry in chosen), digest, limits)

    def arranged(self, keys: Sequence[str]) -> ImageFolder:
        """The same pictures in this order of keys."""
        given = tuple(keys)
        if given == self.keys:
            return self
        return replace(self, keys=given, digest=digest_of("arranged", self.digest, given))

    def __len__(self) -> int:
        return len(self.keys)

    def uri(self, item: int) -> str:
        return storage.join(self.root, self.keys[item])

    def read(self, item: int, count: int | None = None) -> bytes:
        """One file's content, or its first bytes; a DataError if it has gone since it was listed."""
        uri = self.uri(item)
        try:
            return storage.read(uri) if count is None else storage.read_start(uri, count)
        except FileNotFoundError:
            if not self.is_there:
                raise DataError(f"{uri}: is gone, and what was computed from it is not in the store") from None
            raise DataError(f"{uri}: is gone since the folder was listed; run again") from None


def list_images(root: str, recursive: bool = False) -> list[storage.Entry]:
    """Files with an image's suffix in name order; hidden ones, which some systems leave about, aside."""
    images = [entry for entry in storage.list_files(root) if _is_image(entry.name, recursive)]
    check_names(root, (entry.name for entry in images))
    return images


def double_stems(keys: Sequence[str]) -> list[str]:
    """For benchmarks that match by stem: one line per stem that several files share.

    >>> double_stems(["a.jpg", "a.png", "b.jpg"])
    ['a.jpg and a.png have the same name but for folder and suffix']
    """
    named = defaultdict(list)
    for key in keys:
        named[posixpath.splitext(posixpath.basename(key))[0]].append(key)
    return [
        f"{' and '.join(same)} have the same name but for folder and suffix" for same in named.values() if len(same) > 1
    ]


def _is_image(name: str, recursive: bool) -> bool:
    hidden = name.startswith(".") or "/." in name
    return name.lower().endswith(SUFFIXES) and not hidden and (recursive or "/" not in name)
