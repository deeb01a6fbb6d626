"""PhotoTour's sheets: `patches0000.bmp …` of 1024 x 1024 px, each with 16 x 16 patches of 64 x 64 px, row by row.

A patch is its running number over all sheets. `info.txt` beside them has one line per patch, which says how many of the
last sheet's cells are patches; without it all cells count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats.images import grey_levels
from raybench.sources.files import FolderFiles
from raybench.sources.image_files import ImageFiles

SHEET = re.compile(r"(?:.*/)?patches(\d{4,15})\.bmp", re.IGNORECASE)
INFO = "info.txt"
SIDE_PX, PER_ROW = 64, 16
PER_SHEET = PER_ROW * PER_ROW


@dataclass(frozen=True)
class PatchSheets:
    """The sheets among pictures, by their numbers; `patches` is how many there are by info.txt."""

    images: ImageFiles
    numbers: tuple[int, ...]
    patches: int | None

    suffix = ""

    @classmethod
    def of(cls, images: ImageFiles) -> PatchSheets:
        """The sheets of a folder; no sheet, or two of a number, is an error."""
        found = [(int(match[1]), item) for item, key in enumerate(images.keys) if (match := SHEET.fullmatch(key))]
        if not found:
            raise DataError(
                f"{images.root}: no patches0000.bmp, …, although patches go by numbers; expected PhotoTour's sheets "
                f"of patches (it has {images.keys[0]} …)"
            )
        numbers, items = zip(*sorted(found), strict=True)
        twice = [place for place in range(1, len(numbers)) if numbers[place] == numbers[place - 1]]
        for place in twice[:1]:
            keys = " and ".join(images.keys[item] for item in items[place - 1 : place + 1])
            raise DataError(f"{images.root}: several sheets of one number, such as {keys}; name the folder of one set")
        return cls(images.taken(np.array(items, np.int64)), numbers, _patches(images))

    @property
    def root(self) -> str:
        return self.images.root

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.images.keys)

    @property
    def digest(self) -> str:
        return digest_of("patch-sheets", self.images.digest)

    def uri(self, item: int) -> str:
        return self.images.uri(item)

    def patch_name(self, item: int, patch: int) -> str:
        return str(self.numbers[item] * PER_SHEET + patch)

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Patches of these sheets; a sheet of another size is noted."""
        chosen = list(items)
        if self.images.is_there:
            for item, head in zip(chosen, self.images.files.read_starts(chosen, 4_096), strict=True):
                with problems.noting():
                    if isinstance(head, DataError):
                        raise head
                    _check_size(*self.images.size(item, head), self.uri(item))
        return {item: self._count(item) for item in chosen}

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Each sheet's name and patches, (n, 64, 64)."""
        for item in range(start, stop):
            pixels = grey_levels(self.images.read(item), self.uri(item), self.images.limits)
            _check_size(pixels.shape[1], pixels.shape[0], self.uri(item))
            cells = pixels.reshape(PER_ROW, SIDE_PX, PER_ROW, SIDE_PX).swapaxes(1, 2)
            yield self.uri(item), cells.reshape(PER_SHEET, SIDE_PX, SIDE_PX)[: self._count(item)]

    def located(self, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The sheet of each patch number and its cell there; sheet -1 where there is none such."""
        sheet, cell = np.divmod(wanted, PER_SHEET)
        known = np.array(self.numbers, np.int64)
        item = np.minimum(np.searchsorted(known, sheet), len(known) - 1)
        there = known[item] == sheet
        if self.patches is not None:
            there &= wanted < self.patches
        return np.where(there, item, -1).astype(np.int32), cell.astype(np.int32)

    def why_missing(self, wanted: int) -> str:
        """Why a patch number is none, in words."""
        if self.patches is not None and wanted >= self.patches:
            return f"{INFO} in {self.root} has {self.patches:,} lines, one per patch"
        return f"{self.root} has no patches{wanted // PER_SHEET:04}.bmp, where it would be"

    def _count(self, item: int) -> int:
        first = self.numbers[item] * PER_SHEET
        return PER_SHEET if self.patches is None else min(max(self.patches - first, 0), PER_SHEET)


def with_info(images: ImageFiles) -> ImageFiles:
    """The pictures with the number of patches in their digest, since another says that other cells are patches."""
    count = _patches(images)
    return images if count is None else replace(images, digest=digest_of("with info.txt", images.digest, count))


def _patches(images: ImageFiles) -> int | None:
    """How many patches info.txt beside the sheets says there are; None where there is none such."""
    uri = storage.join(images.root, INFO)
    if not images.is_there or not isinstance(images.files, FolderFiles) or not storage.exists(uri):
        return None
    count = sum(1 for line in storage.read(uri).splitlines() if line.strip())
    if not count:
        raise DataError(f"{uri}: empty; expected one line per patch")
    return count


def _check_size(width: int, height: int, name: str) -> None:
    side = PER_ROW * SIDE_PX
    if (width, height) != (side, side):
        raise DataError(
            f"{name}: {width} x {height} px; a sheet of patches has {side} x {side} px, {PER_ROW} x {PER_ROW} of "
            f"{SIDE_PX} x {SIDE_PX}; it may be cut short"
        )
