"""Pictures among files, in name order, with a digest; a source that never decides how it is cut.

A key is the file's name relative to what the user named, suffix included. What a name means (a block, an id, a match
by stem) is known to benchmarks alone.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError
from raybench.formats.images import SUFFIXES, decode_image, image_size
from raybench.formats.limits import USUAL, Limits
from raybench.sources.archive_names import is_archive
from raybench.sources.archives import open_archives
from raybench.sources.file_names import check_names
from raybench.sources.files import Files, FolderFiles
from raybench.sources.listings import Listing, is_listing, read_listing
from raybench.sources.nothing_found import why_nothing
from raybench.sources.uri_lists import ListedFiles, is_list, open_list


@dataclass(frozen=True)
class ImageFiles:
    """Pictures in files; in name order unless some were taken in another."""

    files: Files
    digest: str
    limits: Limits = USUAL
    is_there: bool = True  # no: they were read from a listing, the files may be gone

    @classmethod
    def scan(
        cls,
        root: str,
        by_content: bool = False,
        recursive: bool = False,
        limits: Limits = USUAL,
        store: str = "",
    ) -> ImageFiles:
        """All pictures of a folder (and of those below it), of archives, of a list or a listing; none is an error.

        What is in an archive is kept in the store, if there is one, so that it is listed once.
        """
        if is_listing(root):
            known = read_listing(root)
            return cls(_files_of(known), known.digest, limits, is_there=False)
        if is_archive(root):
            opened = open_archives(root, is_image_below, by_content, limits, store)
            images = cls(opened.files, opened.digest, limits)
            return images if recursive else images.taken(np.flatnonzero(["/" not in name for name in images.keys]))
        if is_list(root):
            listed = open_list(root, by_content, limits)
            return cls(listed.files, listed.digest, limits)
        entries = list_images(root, recursive)
        if not entries:
            below = " in it or below" if recursive else ""
            reason = why_nothing(root, SUFFIXES, 0)
            raise DataError(
                f"{root}: {reason}; expected a folder with images{below} ({', '.join(SUFFIXES)}), or by "
                "name an archive (x.tar, x.zip), several (x-{000..009}.tar) or a list (.csv, .parquet)"
            )
        return cls.of(root, entries, by_content, limits)

    @classmethod
    def of(
        cls, root: str, entries: Iterable[storage.Entry], by_content: bool = False, limits: Limits = USUAL
    ) -> ImageFiles:
        """These files of a folder, which may be a part of what was listed."""
        chosen = sorted(entries, key=attrgetter("name"))
        digest = digest_of("images", storage.identity(root, chosen, by_content))
        return cls(FolderFiles(root, tuple(entry.name for entry in chosen)), digest, limits)

    @property
    def root(self) -> str:
        """What the user named."""
        return self.files.root

    @property
    def keys(self) -> Sequence[str]:
        return self.files.names

    def __len__(self) -> int:
        return len(self.files)

    def taken(self, items: NDArray[np.int64]) -> ImageFiles:
        """Only these pictures, in this order."""
        if np.array_equal(items, np.arange(len(self))):
            return self
        files = self.files.taken(items)
        return replace(self, files=files, digest=digest_of("arranged", self.digest, tuple(files.names)))

    def uri(self, item: int) -> str:
        return self.files.uri(item)

    def read(self, item: int) -> bytes:
        """One file's content; a DataError if it is gone or broken."""
        return self.files.read(item)

    def decoded(self, item: int, data: bytes, exif_rotate: bool = False) -> NDArray[np.uint8]:
        """The picture in a file's content, RGB; a DataError if it is broken."""
        return decode_image(data, self.uri(item), exif_rotate, self.limits)

    def readable(self, item: int, data: bytes, exif_rotate: bool = False) -> tuple[NDArray[np.uint8], bool]:
        """The same, and whether the file is cut short: here such a file is broken, other sources may take it."""
        return self.decoded(item, data, exif_rotate), False

    def size(self, item: int, head: bytes, exif_rotate: bool = False) -> tuple[int, int]:
        """Width and height of a picture by the first bytes of its file; a DataError if they do not say."""
        return image_size(head, self.uri(item), exif_rotate, self.limits)


def _files_of(known: Listing) -> Files:
    if known.uris is None:
        return FolderFiles(known.root, known.keys, is_there=False)
    return ListedFiles(known.root, known.keys, known.uris, is_there=False)


def list_images(root: str, recursive: bool = False) -> list[storage.Entry]:
    """Files with an image's suffix in name order; hidden ones, which some systems leave about, aside."""
    images = [entry for entry in storage.list_files(root) if is_image(entry.name, recursive)]
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


def is_image_below(name: str) -> bool:
    """Whether a member of an archive is a picture; what macOS packs beside each file is none.

    One whose name leads out of the archive is not hidden by that: it is refused later.
    """
    return is_image(name.replace("../", ""), recursive=True) and not name.startswith("__MACOSX/")


def is_image(name: str, recursive: bool) -> bool:
    """Whether a file's name is that of a picture; one in a folder below counts if `recursive`."""
    hidden = name.startswith(".") or "/." in name
    return name.lower().endswith(SUFFIXES) and not hidden and (recursive or "/" not in name)
