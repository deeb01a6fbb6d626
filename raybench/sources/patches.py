"""Sources: ordered keys with a digest, readable by range. A source never decides how it is cut.

`Strips` are patch images (`SEQ/IM.png`), `VectorFiles` are descriptors on disk (`SEQ/IM.csv`, `.npy`, …). Both list
every file of their folder, so that any benchmark over the same folder shares one extraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, ProblemList, suggestion
from raybench.formats import hbench, vectors


@dataclass(frozen=True)
class Strips:
    """Patch images below `root`; keys are `SEQ/IM` in name order."""

    root: str
    keys: tuple[str, ...]
    digest: str

    suffix = ".png"

    @classmethod
    def scan(cls, root: str, by_content: bool = False) -> Strips:
        """List the folder. The digest is of names, sizes and stamps, or of contents (`--verify-inputs`)."""
        entries = _listed(root, cls.suffix, "patch strips SEQ/IM.png")
        if by_content or not all(entry.stamp for entry in entries):
            stamps = storage.in_parallel(
                lambda entry: digest_of_bytes(storage.read(storage.join(root, entry.name))), entries
            )
        else:
            stamps = [entry.stamp for entry in entries]
        identity = [(entry.name, entry.size_bytes, stamp) for entry, stamp in zip(entries, stamps, strict=True)]
        return cls(root, tuple(_key(entry, cls.suffix) for entry in entries), digest_of("strips", identity))

    def uri(self, item: int) -> str:
        return storage.join(self.root, self.keys[item] + self.suffix)

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Patches in each of these strips, from their headers alone; what is wrong with one is noted."""

        def count(item: int) -> tuple[int, int] | DataError:
            try:
                header = storage.read_start(self.uri(item), hbench.PNG_HEADER_BYTES)
                return item, hbench.strip_shape(header, self.uri(item))[0]
            except DataError as error:
                return error

        return _sorted_out(storage.in_parallel(count, items), problems)

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Each strip's name and patches, (n, side, side)."""
        for item in range(start, stop):
            yield self.uri(item), hbench.read_strip(storage.read(self.uri(item)), self.uri(item))


@dataclass(frozen=True)
class VectorFile:
    """What a look at a file of descriptors gave: its content's digest, and its shape or what is wrong with it."""

    digest: str
    rows: int
    dimension: int
    problem: str


@dataclass(frozen=True)
class VectorFiles:
    """Descriptors on disk, one file a patch image, all of one kind; keys are `SEQ/IM` in name order."""

    root: str
    suffix: str
    keys: tuple[str, ...]
    digest: str
    files: tuple[VectorFile, ...]

    @classmethod
    def scan(cls, root: str) -> VectorFiles:
        """List and look through the folder; the digest is of contents, so a re-extracted descriptor is never stale."""
        names = [entry.name for entry in _images(root)]
        suffixes = [suffix for suffix in vectors.READERS if any(name.endswith(suffix) for name in names)]
        if len(suffixes) > 1:
            raise DataError(f"{root}: files of several kinds ({', '.join(suffixes)}); expected one kind")
        suffix = suffixes[0] if suffixes else ".csv"
        entries = _listed(root, suffix, "descriptor files SEQ/IM.csv, .npy, .parquet or .h5")
        files = storage.in_parallel(lambda entry: _look(storage.join(root, entry.name), suffix), entries)
        keys = tuple(_key(entry, suffix) for entry in entries)
        content = [(key, file.digest) for key, file in zip(keys, files, strict=True)]
        return cls(root, suffix, keys, digest_of("vectors", content), tuple(files))

    def uri(self, item: int) -> str:
        return storage.join(self.root, self.keys[item] + self.suffix)

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Descriptors in each of these files; a file that is wrong, or of another dimension than most, is noted."""
        found: dict[int, int] = {}
        chosen = list(items)
        usual = Counter(self.files[item].dimension for item in chosen if not self.files[item].problem).most_common(1)
        for item in chosen:
            file = self.files[item]
            if file.problem:
                problems.add(file.problem)
            elif file.dimension != usual[0][0]:
                problems.add(
                    f"{self.uri(item)}: dimension {file.dimension}, most have {usual[0][0]}; all must be the same"
                )
            else:
                found[item] = file.rows
        return found

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]:
        """Each file's name and descriptors, (n, dim)."""
        for item in range(start, stop):
            yield self.uri(item), vectors.read_vectors(storage.read(self.uri(item)), self.uri(item), self.suffix)


def _look(uri: str, suffix: str) -> VectorFile:
    data = storage.read(uri)
    try:
        rows, dimension = vectors.vectors_shape(data, uri, suffix)
    except DataError as error:
        return VectorFile(digest_of_bytes(data), 0, 0, str(error))
    return VectorFile(digest_of_bytes(data), rows, dimension, "")


def items_of(source: Strips | VectorFiles, wanted: Iterable[str], problems: ProblemList) -> dict[str, int]:
    """The items of the wanted keys; a sequence or image that is not there is noted once, with the nearest name."""
    place = {key: item for item, key in enumerate(source.keys)}
    sequences = {key.split("/")[0] for key in source.keys}
    found = {}
    for key in wanted:
        sequence = key.split("/")[0]
        if key in place:
            found[key] = place[key]
        elif sequence not in sequences:
            problems.add(
                f"{source.root}: no sequence {sequence!r}, which the tasks name{suggestion(sequence, sequences)}"
            )
        else:
            problems.add(f"{source.root}: {key}{source.suffix} is missing, which the tasks name")
    return found


def _listed(root: str, suffix: str, what: str) -> list[storage.Entry]:
    entries = [entry for entry in _images(root) if entry.name.endswith(suffix)]
    if not entries:
        reason = "holds none" if storage.exists(root) else "does not exist"
        raise DataError(f"{root}: {reason}; expected a folder with {what}")
    return entries


def _images(root: str) -> list[storage.Entry]:
    """Files `SEQ/IM…` below a folder; hidden ones, which some systems leave about, aside."""
    parts = [(entry, entry.name.split("/")) for entry in storage.list_files(root)]
    return [entry for entry, names in parts if len(names) == 2 and not any(name.startswith(".") for name in names)]


def _key(entry: storage.Entry, suffix: str) -> str:
    return entry.name.removesuffix(suffix)


def _sorted_out(looks: Iterable[tuple[int, int] | DataError], problems: ProblemList) -> dict[int, int]:
    counts: dict[int, int] = {}
    for look in looks:
        if isinstance(look, DataError):
            problems.add(look)
        else:
            counts[look[0]] = look[1]
    return counts


Source = Strips | VectorFiles
