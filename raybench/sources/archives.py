"""Images in archives, put together as one set: listed in parallel, names as a folder would have them, one digest.

The digest is made of what the archives hold and their stamps, never of where they lie: moving them changes nothing. By
content it is that of a folder with the same images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, InputError, ProblemList, Problems
from raybench.formats.archive_members import Places, Wanted
from raybench.formats.images import SUFFIXES
from raybench.formats.limits import Limits
from raybench.formats.names import name_order, strings
from raybench.parallel import in_parallel
from raybench.sources.archive_files import Archive, ArchiveFiles
from raybench.sources.archive_index import ArchiveIndex, index_of
from raybench.sources.archive_names import archive_uris, without_common_folder
from raybench.sources.file_facts import content_digest, told_or_none
from raybench.sources.file_names import check_names
from raybench.sources.packed_keys import PackedKeys

SHOWN = 5


@dataclass(frozen=True)
class OpenedArchives:
    """The images in archives, in name order, and the digest of them all."""

    files: ArchiveFiles
    digest: str


def open_archives(root: str, wanted: Wanted, by_content: bool, limits: Limits, store: str) -> OpenedArchives:
    """All wanted members of the archives that a URI names; raises DataError for what is wrong with any."""
    archives = _there(root)
    versions = in_parallel(_version, archives)
    # Whoever counts by content does not trust stamps, and so no index that was found by one.
    indexes = _indexes(archives, versions, wanted, limits, "" if by_content else store)
    names = [name for one in indexes for name in one.names[:]]
    which = np.repeat(np.arange(len(indexes)), [len(one.names) for one in indexes])
    if not names:
        others = sum(one.others for one in indexes)
        raise DataError(
            f"{root}: holds {others:,} other files and no image ({', '.join(SUFFIXES)}); name another archive"
        )
    check_names(root, names)
    if not any(one.is_rooted for one in indexes):
        names = without_common_folder(names)
    order = _order(root, names, which, archives)
    columns = [one.places.columns() for one in indexes]
    places = Places(*(np.concatenate([each[name] for each in columns]) for name in columns[0])).taken(order)
    ordered = tuple(names[place] for place in order.tolist())
    files = ArchiveFiles(root, tuple(archives), ordered, which[order], places)
    if by_content:
        return OpenedArchives(files, _content_digest(files))
    sizes = [archive.size_bytes for archive in archives]
    packed = PackedKeys.of(ordered)
    content = [files.which, packed.letters, packed.ends, *places.columns().values()]
    return OpenedArchives(files, digest_of("archives", sizes, versions, content))


def _there(root: str) -> list[Archive]:
    """The archives with their sizes and stamps."""
    uris = archive_uris(root)
    told = in_parallel(told_or_none, uris)  # not by a listing: workers compare, and stores stamp that another way
    missing = [uri for uri, entry in zip(uris, told, strict=True) if entry is None]
    if missing and len(uris) == 1:
        raise DataError(
            f"{root}: does not exist, or is no file; expected an archive (or several: name-{{000..009}}.tar)"
        )
    problems = ProblemList()
    lines = [f"{root}: {uri} does not exist; copy it there, or mend the range" for uri in missing[:SHOWN]]
    problems.add_first(lines, len(missing), root, f"missing archives of {len(uris):,}")
    problems.check()
    return [
        Archive(uri, entry.size_bytes, entry.stamp) for uri, entry in zip(uris, told, strict=True) if entry is not None
    ]


def _version(archive: Archive) -> str:
    """The stamp; the digest of the content where a store gives none."""
    return archive.stamp or content_digest(archive.uri, archive.size_bytes)


def _content_digest(files: ArchiveFiles) -> str:
    """The digest of a folder with the same images, by their content."""
    order = np.lexsort((files.places.start, files.which)).tolist()
    entries: dict[int, storage.Entry] = {}
    for place, content in zip(order, files.read_each(order), strict=True):
        if isinstance(content, DataError):
            raise content
        entries[place] = storage.Entry(files.names[place], len(content), digest_of_bytes(content))
    return digest_of("images", storage.digest_of_entries([entries[place] for place in range(len(files))]))


def _indexes(
    archives: list[Archive], versions: list[str], wanted: Wanted, limits: Limits, store: str
) -> list[ArchiveIndex]:
    """The index of each; what is wrong with any of the archives is raised together."""

    def listed(number: int) -> ArchiveIndex | InputError:
        try:
            return index_of(archives[number], versions[number], wanted, limits, store)
        except (DataError, Problems) as error:
            return error

    found = in_parallel(listed, range(len(archives)))
    problems = ProblemList()
    broken = [one for one in found if isinstance(one, InputError)]
    lines = [line for one in broken[:SHOWN] for line in one.lines()]
    problems.add_first(lines, len(broken) if len(broken) > SHOWN else 0, "archives", "broken archives")
    problems.check()
    return [one for one in found if isinstance(one, ArchiveIndex)]


def _order(root: str, names: list[str], which: NDArray[np.int64], archives: list[Archive]) -> NDArray[np.int64]:
    """Name order, as a folder is listed; a name that comes twice is an error."""
    order, twice = name_order(strings(pa.array(names, pa.string())))
    problems = ProblemList()
    lines = []
    for first, second in twice[:SHOWN].tolist():
        places = list(dict.fromkeys(archives[which[place]].uri for place in (first, second)))
        where = f"twice in {places[0]}" if len(places) == 1 else f"in {' and in '.join(places)}"
        lines.append(f"{root}: {names[first]} is {where}; pack each image once")
    problems.add_first(lines, len(twice), root, "names that come twice")
    problems.check()
    return order
