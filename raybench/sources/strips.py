"""Patch strips: one image `SEQ/IM.png` per patch image, its square patches stacked from top to bottom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats import hbench
from raybench.sources.patches import list_sequence_files


@dataclass(frozen=True)
class Strips:
    """Patch images below `root`; keys are `SEQ/IM` in name order."""

    root: str
    keys: tuple[str, ...]
    digest: str

    suffix = ".png"

    @classmethod
    def scan(cls, root: str, by_content: bool = False) -> Strips:
        """List the folder; `by_content` digests what the files hold, not their stamps (`--verify-inputs`)."""
        entries = list_sequence_files(root, cls.suffix, "patch strips SEQ/IM.png")
        keys = tuple(entry.name.removesuffix(cls.suffix) for entry in entries)
        return cls(root, keys, digest_of("strips", storage.identity(root, entries, by_content)))

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


def _sorted_out(looks: Iterable[tuple[int, int] | DataError], problems: ProblemList) -> dict[int, int]:
    counts: dict[int, int] = {}
    for look in looks:
        if isinstance(look, DataError):
            problems.add(look)
        else:
            counts[look[0]] = look[1]
    return counts
