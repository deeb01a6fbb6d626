"""Listings: which files a source had, kept in a store, so that what was computed from them can be used without them.

A listing stands where a folder is expected: a URI that ends in `.listing`. It has the digest of the source that it was
made from, so that stages over that source are found again; the files themselves may be gone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.errors import DataError, blamed_on_file
from raybench.formats import shardfile
from raybench.sources.packed_keys import ODD_BYTES, PackedKeys

FOLDER, SUFFIX = "listings", ".listing"
TREE_SUFFIX = ".tree"  # of a file that says where listings of several folders are
UNKNOWN = -1  # patches of a strip that nobody counted


@dataclass(frozen=True)
class Listing:
    """The keys that a source had; `counts` has the patches of each where they were counted.

    They were files below `root`, unless `uris` says where each of them was.
    """

    root: str
    digest: str
    keys: tuple[str, ...]
    counts: NDArray[np.int64] | None = None
    uris: tuple[str, ...] | None = None

    def publish(self, uri: str) -> None:
        packed = PackedKeys.of(self.keys)
        where = np.frombuffer(self.root.encode(errors=ODD_BYTES), np.uint8)
        digest = np.frombuffer(self.digest.encode(), np.uint8)
        arrays: shardfile.Arrays = {"root": where, "digest": digest, "letters": packed.letters, "ends": packed.ends}
        if self.counts is not None:
            arrays["counts"] = self.counts
        if self.uris is not None:
            places = PackedKeys.of(self.uris)
            arrays |= {"uri_letters": places.letters, "uri_ends": places.ends}
        storage.publish(uri, shardfile.encode(arrays, SUFFIX))


def listing_uri(store: str, digest: str, suffix: str = SUFFIX) -> str:
    """Where the listing of the source with this digest is kept in a store."""
    return storage.join(store, FOLDER, digest + suffix)


def is_listing(uri: str) -> bool:
    return uri.endswith(SUFFIX)


def read_listing(uri: str) -> Listing:
    """A listing; raises DataError if it is not there, or none."""
    try:
        data = storage.read(uri)
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected the listing of a run's images") from None
    return parsed_listing(data, uri)


def parsed_listing(data: bytes, name: str) -> Listing:
    """The listing in a file's bytes; raises DataError."""
    with blamed_on_file(f"{name}: no listing of images", "name the folder of the images instead"):
        arrays = shardfile.decode(data, SUFFIX)
        _check_form(arrays)
        root, digest = (arrays[name].tobytes().decode(errors=ODD_BYTES) for name in ("root", "digest"))
        keys = tuple(PackedKeys(arrays["letters"], arrays["ends"])[:])
        uris = tuple(PackedKeys(arrays["uri_letters"], arrays["uri_ends"])[:]) if "uri_ends" in arrays else None
        return Listing(root, digest, keys, arrays.get("counts"), uris)


def publish_tree(uri: str, files: dict[str, str]) -> None:
    """Keep which listing, or which text, each part of a data set in several folders has."""
    storage.publish(uri, json.dumps(files, indent=1).encode())


def is_tree(uri: str) -> bool:
    return uri.endswith(TREE_SUFFIX)


def parsed_tree(data: bytes, name: str) -> dict[str, str]:
    """URIs by part, as `publish_tree` wrote them; raises DataError."""
    with blamed_on_file(f"{name}: no list of a data set's parts", "name the folder of the data set instead"):
        files = json.loads(data)
        if not isinstance(files, dict) or not all(isinstance(uri, str) for uri in files.values()):
            raise ValueError("URIs by name are expected")
        return files


def _check_form(arrays: shardfile.Arrays) -> None:
    """Raise ValueError unless the arrays fit each other; a store may come from anywhere."""
    ends, counts = arrays["ends"], arrays.get("counts")
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in arrays.values()):
        raise ValueError("lists of whole numbers are expected")
    for of in ("", "uri_") if "uri_ends" in arrays else ("",):
        if np.any(np.diff(arrays[f"{of}ends"], prepend=0, append=len(arrays[f"{of}letters"])) < 0):
            raise ValueError("keys beyond their letters")
        if len(arrays[f"{of}ends"]) != len(ends):
            raise ValueError("other URIs than keys")
    if counts is not None and (len(counts) != len(ends) or np.any(counts < UNKNOWN)):
        raise ValueError("other counts than keys")
