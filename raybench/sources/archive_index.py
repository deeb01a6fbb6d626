"""What is in an archive: listed once, then kept in a store as an index, so that a later run does not read it again.

An index is a shard file with checksums, named and labelled by the archive's URI, size and stamp. One that is broken, or
another archive's, is made again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError, blamed_on_file
from raybench.formats import shardfile
from raybench.formats.archive_members import Members, Places, Wanted
from raybench.formats.forward_bytes import ForwardBytes
from raybench.formats.images import SUFFIXES
from raybench.formats.limits import Limits
from raybench.formats.tar_members import tar_members
from raybench.formats.zip_members import zip_members
from raybench.sources.archive_files import Archive, check_unchanged
from raybench.sources.packed_keys import PackedKeys

ASIDE = "moved-aside"  # where stages put folders with the names of shards, too
FOLDER, SUFFIX, VERSION = "indexes", ".index", 4
# A member that is further on than this is worth a request of its own, or a seek.
FAR_BYTES, FAR_REMOTE_BYTES = 2**17, 2**22
DTYPES = {"start": np.int64, "span": np.int64, "size": np.int64, "method": np.uint8, "crc": np.uint32}


@dataclass(frozen=True)
class ArchiveIndex:
    """The images in one archive, in its order, how many other members it has, and whether it says its own root."""

    names: PackedKeys
    places: Places
    others: int
    is_rooted: bool

    def encoded(self, key: str) -> bytes:
        """The bytes of its file; `key` is the version of the archive that it is of."""
        arrays: shardfile.Arrays = {"letters": self.names.letters, "ends": self.names.ends, **self.places.columns()}
        whole = {"others": np.array([self.others], np.int64), "is_rooted": np.array([self.is_rooted])}
        return shardfile.encode({**arrays, **whole}, key + SUFFIX)


def index_of(archive: Archive, version: str, wanted: Wanted, limits: Limits, store: str) -> ArchiveIndex:
    """The wanted members of an archive, from the store if this version of it was listed before."""
    key = digest_of("archive-index", VERSION, SUFFIXES, archive.uri, archive.size_bytes, version)
    uri = storage.join(store, FOLDER, key + SUFFIX) if store else ""
    if uri:
        try:
            return _within(parsed_index(_kept(uri, store), uri, key), archive)
        except FileNotFoundError:
            pass
        except DataError as error:
            logging.getLogger(__name__).warning("%s; the archive is listed again", error)
    members = _listed(archive, wanted, limits)
    check_unchanged(archive)  # or this index would be kept as that of another version
    index = ArchiveIndex(PackedKeys.of(members.names), members.places, members.others, members.is_rooted)
    if uri:
        storage.publish(uri, index.encoded(key))
    return index


def _kept(uri: str, store: str) -> bytes:
    """The content of an index; a pipe would have no end, and a folder is not ours to delete."""
    if storage.local_path(uri) is not None:
        if storage.is_folder(uri):
            aside = storage.move_aside(uri, storage.join(store, ASIDE))
            logging.getLogger(__name__).warning("%s: is a folder, expected an index; it is now %s", uri, aside)
        storage.told(uri)
    return storage.read(uri)


def parsed_index(data: bytes, name: str, key: str) -> ArchiveIndex:
    """The index in a file's bytes, which must be of this version of an archive; raises DataError."""
    with blamed_on_file(f"{name}: no index of an archive", "remove it"):
        arrays = shardfile.decode(data, key + SUFFIX)
        ends, columns = arrays["ends"], {name: arrays[name] for name in DTYPES}
        if any(column.dtype != DTYPES[name] or column.shape != ends.shape for name, column in columns.items()):
            raise ValueError("other columns than names")
        if ends.ndim != 1 or ends.dtype != np.int64 or arrays["letters"].dtype != np.uint8:
            raise ValueError("names that are none")
        if np.any(np.diff(ends, prepend=0, append=len(arrays["letters"])) < 0):
            raise ValueError("names beyond their letters")
        if len(ends) and min(int(columns[name].min()) for name in ("start", "span", "size")) < 0:
            raise ValueError("places before the archive")
        others, is_rooted = int(arrays["others"][0]), bool(arrays["is_rooted"][0])
        return ArchiveIndex(PackedKeys(arrays["letters"], ends), Places(**columns), others, is_rooted)


def _within(index: ArchiveIndex, archive: Archive) -> ArchiveIndex:
    """The index itself, if it can be this archive's."""
    if np.any(index.places.span > archive.size_bytes - index.places.start):
        raise DataError(f"{archive.uri}: its index has places behind its end")
    return index


def _listed(archive: Archive, wanted: Wanted, limits: Limits) -> Members:
    if not archive.size_bytes:
        raise DataError(f"{archive.uri}: is empty, expected an archive with images; copy it again")
    far_bytes = FAR_REMOTE_BYTES if storage.local_path(archive.uri) is None else FAR_BYTES
    file = ForwardBytes(
        lambda start, end: storage.read_range(archive.uri, start, end, archive.stamp) if end > start else b"",
        archive.size_bytes,
        far_bytes,
    )
    with blamed_on_file(f"{archive.uri}: can't be listed"):
        if archive.is_zip:
            return zip_members(file, archive.uri, wanted, limits)
        return tar_members(file, archive.uri, wanted)
