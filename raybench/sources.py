"""Sources: ordered keys with a digest, readable by range. A source never decides how it is cut.

`Strips` are patch images (`SEQ/IM.png`), `VectorFiles` are descriptors on disk (`SEQ/IM.csv`). Both list every file of
their folder, so that any benchmark over the same folder shares one extraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, ProblemList, nearest
from raybench.formats import hbench


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
        if by_content:
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
class VectorFiles:
    """Descriptors on disk, one CSV file a patch image; keys are `SEQ/IM` in name order."""

    root: str
    keys: tuple[str, ...]
    digest: str
    lines: tuple[int, ...]
    widths: tuple[int, ...]

    suffix = ".csv"

    @classmethod
    def scan(cls, root: str) -> VectorFiles:
        """List and hash the folder; the digest is of contents, so a re-extracted descriptor is never stale."""
        entries = _listed(root, cls.suffix, "descriptor files SEQ/IM.csv")

        def look(entry: storage.Entry) -> tuple[str, int, int]:
            data = storage.read_mapped(storage.join(root, entry.name))
            content = bytes(data)
            return digest_of_bytes(data), hbench.count_lines(content), hbench.count_values(content)

        looks = storage.in_parallel(look, entries)
        keys = tuple(_key(entry, cls.suffix) for entry in entries)
        digest = digest_of("vectors", [(key, look[:2]) for key, look in zip(keys, looks, strict=True)])
        return cls(root, keys, digest, tuple(n for _, n, _ in looks), tuple(width for *_, width in looks))

    def uri(self, item: int) -> str:
        return storage.join(self.root, self.keys[item] + self.suffix)

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Descriptors in each of these files (its lines); an empty file is noted."""
        found: list[tuple[int, int] | DataError] = [
            (item, self.lines[item])
            if self.lines[item]
            else DataError(f"{self.uri(item)}: empty; expected descriptors")
            for item in items
        ]
        return _sorted_out(found, problems)

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Each file's name and descriptors, (n, dim)."""
        for item in range(start, stop):
            yield self.uri(item), hbench.read_descriptors(storage.read(self.uri(item)), self.uri(item))


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
            problems.add(f"{source.root}: no sequence {sequence!r}, which the tasks name{nearest(sequence, sequences)}")
        else:
            problems.add(f"{source.root}: {key}{source.suffix} is missing, which the tasks name")
    return found


def _listed(root: str, suffix: str, what: str) -> list[storage.Entry]:
    entries = [
        entry for entry in storage.list_files(root) if entry.name.endswith(suffix) and entry.name.count("/") == 1
    ]
    if not entries:
        reason = "holds none" if storage.exists(root) else "does not exist"
        raise DataError(f"{root}: {reason}; expected a folder with {what}")
    return entries


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
Item = tuple[str, NDArray[Any]]
