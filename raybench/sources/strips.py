"""Patch strips: one file `SEQ/IM.png` per patch image, its square patches stacked from top to bottom.

Other files of patches have names of the same form, `SEQ/IM` and a suffix: their listing is here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats import hbench
from raybench.formats.limits import USUAL, Limits
from raybench.parallel import in_parallel
from raybench.sources.file_names import check_names
from raybench.sources.listings import UNKNOWN, is_listing, read_listing
from raybench.sources.nothing_found import why_nothing


@dataclass(frozen=True)
class Strips:
    """Patch images below `root`; keys are `SEQ/IM` in name order."""

    root: str
    keys: tuple[str, ...]
    digest: str
    limits: Limits = USUAL
    counted: NDArray[np.int64] | None = None  # patches of each, where a listing has them and the files may be gone

    suffix = ".png"

    @classmethod
    def scan(cls, root: str, by_content: bool = False, limits: Limits = USUAL) -> Strips:
        """List the folder, or read a listing; `by_content` (`--verify-inputs`) digests what files hold, not stamps."""
        if is_listing(root):
            known = read_listing(root)
            return cls(known.root, known.keys, known.digest, limits, known.counts)
        entries = list_sequence_files(root, cls.suffix, "patch strips SEQ/IM.png")
        keys = tuple(entry.name.removesuffix(cls.suffix) for entry in entries)
        return cls(root, keys, digest_of("strips", storage.identity(root, entries, by_content)), limits)

    def uri(self, item: int) -> str:
        return storage.join(self.root, self.keys[item] + self.suffix)

    def patch_name(self, item: int, patch: int) -> str:
        return f"{self.keys[item].replace('/', '.')}.{patch}"

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Patches in each of these strips, from their headers alone; what is wrong with one is noted."""
        chosen = list(items)
        if self.counted is not None:
            return self._known_counts(chosen, self.counted, problems)
        headers = in_parallel(self._header, chosen)
        counts = {}
        for item, header in zip(chosen, headers, strict=True):
            with problems.noting():
                if isinstance(header, DataError):
                    raise header
                count, side = hbench.strip_shape(header, self.uri(item))
                self.limits.check_pixels(side, count * side, self.uri(item))
                counts[item] = count
        return counts

    def _known_counts(self, chosen: list[int], counted: NDArray[np.int64], problems: ProblemList) -> dict[int, int]:
        for item in chosen:
            if counted[item] == UNKNOWN:
                problems.add(f"{self.uri(item)}: that run has no features of it; run with the images")
        return {item: int(counted[item]) for item in chosen if counted[item] != UNKNOWN}

    def _header(self, item: int) -> bytes | DataError:
        try:
            return storage.read_start(self.uri(item), hbench.PNG_HEADER_BYTES)
        except DataError as error:
            return error

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Each strip's name and patches, (n, side, side)."""
        for item in range(start, stop):
            yield self.uri(item), hbench.read_strip(self._content(item), self.uri(item), self.limits)

    def _content(self, item: int) -> bytes:
        try:
            return storage.read(self.uri(item))
        except FileNotFoundError:
            if self.counted is None:
                raise
            raise DataError(f"{self.uri(item)}: is gone, and what was computed from it is not in the store") from None


def list_sequence_files(root: str, suffix: str, what: str) -> list[storage.Entry]:
    """The files `SEQ/IM` with this suffix in name order; none at all is an error."""
    entries = [entry for entry in sequence_entries(root) if entry.name.endswith(suffix)]
    if not entries:
        raise DataError(f"{root}: {why_nothing(root, (suffix,), 1)}; expected a folder with {what}")
    return entries


def sequence_entries(root: str) -> list[storage.Entry]:
    """Files `SEQ/IM…` below a folder; hidden ones, which some systems leave about, aside."""
    parts = [(entry, entry.name.split("/")) for entry in storage.list_files(root)]
    found = [entry for entry, names in parts if len(names) == 2 and not any(name.startswith(".") for name in names)]
    check_names(root, (entry.name for entry in found))
    return found
