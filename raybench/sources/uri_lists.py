"""Images by a list of their URIs, wherever each of them lies: `.csv` or `.parquet` with columns `uri` and `name`.

A URI without a scheme or a leading slash counts from the list's own folder.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import ConfigError, DataError, OutOfReach, ProblemList
from raybench.formats.image_lists import PARQUET, ImageList, lists_images, read_image_list
from raybench.formats.limits import Limits
from raybench.formats.names import name_order, stems, strings
from raybench.parallel import in_parallel
from raybench.sources.file_facts import content_digest, told_each
from raybench.sources.file_names import check_names
from raybench.sources.files import Content, contents_ahead, starts_together
from raybench.sources.packed_keys import PackedKeys

SUFFIXES = (".csv", PARQUET)
SHOWN = 5
CREDENTIALS = "?@"  # letters of a URI that may carry some, or another URI


@dataclass(frozen=True)
class ListedFiles:
    """Files by their URIs and names, which a list gives."""

    root: str
    names: Sequence[str]  # tuples; packed where they arrive in another process
    uris: Sequence[str]
    is_there: bool = True  # no: they are known from a listing, and may be gone

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedFiles, (self.root, PackedKeys.of(self.names), PackedKeys.of(self.uris), self.is_there)

    def __len__(self) -> int:
        return len(self.names)

    def uri(self, place: int) -> str:
        return self.uris[place]

    def taken(self, places: NDArray[np.int64]) -> ListedFiles:
        names, uris = (tuple(of[place] for place in places.tolist()) for of in (self.names, self.uris))
        return ListedFiles(self.root, names, uris, self.is_there)

    def read(self, place: int, count: int | None = None) -> bytes:
        uri = self.uris[place]
        try:
            return storage.read(uri) if count is None else storage.read_start(uri, count)
        except (FileNotFoundError, NotADirectoryError):  # the latter: a member of an archive
            if not self.is_there:
                raise OutOfReach(f"{uri}: is gone, and what was computed from it is not in the store") from None
            raise OutOfReach(f"{uri}: is gone since {self.root} was read; run again") from None

    def read_each(self, places: Iterable[int]) -> Iterator[Content]:
        return contents_ahead(self, places)

    def read_starts(self, places: Sequence[int], count: int | None) -> list[Content]:
        return starts_together(self, places, count)


@dataclass(frozen=True)
class OpenedList:
    """The images of a list in name order, and the digest of them all.

    It covers which file has which name, since sizes and stamps of several may be equal, but not the folder that they
    have in common: moving them all changes nothing. By content that alone counts.
    """

    files: ListedFiles
    digest: str


def is_list(uri: str) -> bool:
    """Whether a URI has the name of a list; a folder on disk may have such a name."""
    return uri.lower().endswith(SUFFIXES) and not storage.is_folder(uri)


def is_image_list(uri: str) -> bool:
    """Whether a file lists images by URI: a CSV file does; a Parquet file may hold vectors instead."""
    if not is_list(uri) or not uri.lower().endswith(PARQUET):
        return is_list(uri)
    try:
        with storage.fetch(uri).open("rb") as file:
            return lists_images(file, uri)
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected a list of images or a file of vectors") from None


def open_list(root: str, by_content: bool, limits: Limits) -> OpenedList:
    """The images that a file lists; raises DataError or Problems for what is wrong with any."""
    try:
        data = storage.read(root)
    except FileNotFoundError:
        raise DataError(f"{root}: does not exist; expected a list of images with a column uri") from None
    problems = ProblemList()
    listed = _decoded(read_image_list(data, root, problems, limits))
    order, twice = name_order(listed.names)
    lines = [
        f"{root}: {listed.place(one)} and {listed.place(other)}: both named {listed.names[one].as_py()!r}; give other "
        "names in a column name"
        for one, other in twice[:SHOWN].tolist()
    ]
    problems.add_first(lines, len(twice), root, "names that come twice")
    names = listed.names.to_pylist()
    with problems.noting():
        check_names(root, names)
    uris, usable = _absolute(root, listed, problems)
    with problems.joining():
        told = told_each([uris[row] for row in usable])
    missing = [row for row, entry in zip(usable, told, strict=True) if entry is None]
    lines = [f"{root}: {listed.place(row)}: {uris[row]} does not exist; mend the uri" for row in missing[:SHOWN]]
    problems.add_first(lines, len(missing), root, "images that do not exist")
    problems.check()
    entries = [entry for entry in told if entry is not None]

    def version(row: int) -> str:
        entry = entries[row]
        return content_digest(uris[row], entry.size_bytes) if by_content or not entry.stamp else entry.stamp

    ordered = order.tolist()
    versions = in_parallel(version, ordered)
    files = ListedFiles(root, tuple(names[row] for row in ordered), tuple(uris[row] for row in ordered))
    identity = [(names[row], entries[row].size_bytes, one) for row, one in zip(ordered, versions, strict=True)]
    if not by_content:
        above = len(posixpath.commonprefix(files.uris).rpartition("/")[0])
        return OpenedList(files, digest_of("image-list", identity, [uri[above:] for uri in files.uris]))
    return OpenedList(files, digest_of("image-list", identity))


def _decoded(listed: ImageList) -> ImageList:
    """The list with file URIs as pathlib's `as_uri` writes them, `%20` for a blank, as the files are called.

    Those that are no such URIs stay: f"file://{path}" is written, too, and a file may have a `%` in its name.
    """
    coded = np.asarray(pc.match_substring_regex(listed.uris, r"^file://.*%[0-9A-Fa-f]{2}"), np.bool_)
    if not coded.any():
        return listed
    uris, names = listed.uris.to_pylist(), listed.names.to_pylist()
    plain = {row: unquote(uris[row]) for row in np.flatnonzero(coded).tolist()}
    meant = [row for row, uri in plain.items() if not storage.exists(uris[row]) and storage.exists(uri)]
    stem_of = dict(zip(meant, stems(listed.uris.take(pa.array(meant, pa.int64()))).to_pylist(), strict=True))
    for row in meant:
        if names[row] == stem_of[row]:
            (names[row],) = stems(strings([plain[row]])).to_pylist()
        uris[row] = plain[row]
    return replace(listed, uris=strings(uris), names=strings(names)) if meant else listed


def _absolute(root: str, listed: ImageList, problems: ProblemList) -> tuple[list[str], list[int]]:
    """Each URI in full, and which of them may be used: one with credentials or an unknown scheme is noted instead."""
    above = posixpath.dirname(root)
    is_whole = np.asarray(pc.match_substring_regex(listed.uris, r"^(/|[A-Za-z][A-Za-z0-9+.-]*://)"), np.bool_)
    uris = [
        uri if whole else storage.join(above, uri.removeprefix("./"))
        for uri, whole in zip(listed.uris.to_pylist(), is_whole.tolist(), strict=True)
    ]
    checked: set[str] = set()
    usable: list[int] = []
    wrong: list[str] = []
    for row, uri in enumerate(uris):
        odd = any(letter in uri for letter in CREDENTIALS) or "::" in uri
        place = uri if odd and "://" in uri else posixpath.dirname(uri)
        try:
            if place not in checked:
                storage.checked(place)
                checked.add(place)
            usable.append(row)
        except ConfigError as error:
            wrong += [f"{root}: {listed.place(row)}: {error}"] * (len(wrong) < SHOWN)
    problems.add_first(wrong, len(uris) - len(usable), root, "such URIs")
    return uris, usable
