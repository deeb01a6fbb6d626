"""Sizes and stamps of files by their URIs, wherever they lie, and digests of large ones: what tells versions apart."""

from __future__ import annotations

from collections.abc import Sequence

from raybench import remote, storage
from raybench.digests import digest_of_parts
from raybench.parallel import ahead, in_parallel
from raybench.storage import Entry

LISTED_FROM, NAMES_PER_REQUEST = 32, 100  # files of a folder that are worth its listing; names that cost a request
DIGESTED_AT_ONCE = 2**23


def told_each(uris: Sequence[str]) -> list[Entry | None]:
    """Last name, size and stamp of each file, None for one that is not there; of many in a folder by its listing."""
    folders: dict[str, list[int]] = {}
    for place, uri in enumerate(uris):
        folders.setdefault(uri.rpartition("/")[0], []).append(place)
    found: list[Entry | None] = [None] * len(uris)
    single = []
    for folder, places in folders.items():
        entries = _listed_entries(folder, {uris[place].rpartition("/")[2] for place in places})
        for place in places:
            found[place] = entries.get(uris[place].rpartition("/")[2])
            if found[place] is None:
                single.append(place)
    for place, entry in zip(single, in_parallel(lambda place: told_or_none(uris[place]), single), strict=True):
        found[place] = entry
    return found


def _listed_entries(folder: str, names: set[str]) -> dict[str, Entry]:
    """Some of these files by a listing of their folder, if that costs less than to ask for each."""
    if storage.local_path(folder) is not None or len(names) < LISTED_FROM:
        return {}
    found = {}
    for number, (name, facts) in enumerate(remote.listed(folder, deep=False)):
        if name in names:
            found[name] = Entry(name, facts.size_bytes or 0, facts.stamp)
        if len(found) == len(names) or number > NAMES_PER_REQUEST * len(names):
            break
    return found


def told_or_none(uri: str) -> Entry | None:
    """Last name, size and stamp of a file, None if it is not there."""
    try:
        return storage.told(uri)
    except FileNotFoundError:
        return None


def content_digest(uri: str, size_bytes: int) -> str:
    """The digest of what a file holds, of which a few MB are held at once."""
    starts = range(0, size_bytes, DIGESTED_AT_ONCE)
    return digest_of_parts(
        ahead(lambda at: storage.read_range(uri, at, min(at + DIGESTED_AT_ONCE, size_bytes)), starts, 4)
    )
