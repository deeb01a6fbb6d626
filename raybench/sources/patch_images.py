"""Patches as single pictures, one file each, in items of some hundred of one size, which a model takes at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.errors import DataError, ProblemList
from raybench.formats.images import grey_levels
from raybench.formats.text_rows import SHOWN
from raybench.sources.image_files import ImageFiles

PER_ITEM = 256
HEADERS_AT_ONCE = 1_024
HEAD_BYTES = (4_096, 256 * 2**10, None)  # most headers end before the first; None is the whole file


@dataclass(frozen=True)
class PatchImages:
    """Square pictures of patches, ordered by their side, then by name, and cut into items of one side."""

    images: ImageFiles
    starts: tuple[int, ...]  # of each item among the images, and the end of the last
    sides_px: tuple[int, ...]  # by item; 0 where nobody looked, since files may be gone

    suffix = ""

    @classmethod
    def of(cls, images: ImageFiles, problems: ProblemList) -> PatchImages:
        """Of these pictures; one that is not square or can't be read is noted."""
        side = _sides(images, problems) if images.is_there else np.zeros(len(images), np.int64)
        order = np.argsort(side, kind="stable")
        ordered = side[order]
        edges = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(order)]
        starts = [first for low, high in itertools.pairwise(edges) for first in range(low, high, PER_ITEM)]
        return cls(images.taken(order), (*starts, len(order)), tuple(ordered[starts].tolist()))

    @property
    def root(self) -> str:
        return self.images.root

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(self._words, range(len(self.sides_px))))

    @property
    def digest(self) -> str:
        return digest_of("patch-images", self.images.digest, self.starts)

    def _words(self, item: int) -> str:
        first, last = self.starts[item], self.starts[item + 1] - 1
        name = self.images.keys[first]
        return name if first == last else f"{name} … {self.images.keys[last]}"

    def uri(self, item: int) -> str:
        return f"{self.root}: {self._words(item)}"

    def patch_name(self, item: int, patch: int) -> str:
        return self.images.keys[self.starts[item] + patch]

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Patches of each item, which is known from the listing."""
        return {item: self.starts[item + 1] - self.starts[item] for item in items}

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Each item's name and patches, (n, side, side)."""
        for item in range(start, stop):
            places = range(self.starts[item], self.starts[item + 1])
            read = zip(places, self.images.files.read_each(places), strict=True)
            yield self.uri(item), np.stack([self._pixels(item, place, data) for place, data in read])

    def _pixels(self, item: int, place: int, data: bytes | DataError) -> NDArray[np.uint8]:
        if isinstance(data, DataError):
            raise data
        pixels = grey_levels(data, self.images.uri(place), self.images.limits)
        side = self.sides_px[item]
        if side and pixels.shape != (side, side):
            found = f"{pixels.shape[1]} x {pixels.shape[0]} px"
            raise DataError(f"{self.images.uri(place)}: {found}, {side} x {side} when the run began; run again")
        return pixels

    def located(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The item of each picture, by its place among the ordered ones, and which patch of that it is."""
        item = np.searchsorted(np.array(self.starts), places, side="right") - 1
        return item.astype(np.int32), (places - np.array(self.starts)[item]).astype(np.int32)


def _sides(images: ImageFiles, problems: ProblemList) -> NDArray[np.int64]:
    """The side of each picture, by its header."""
    found = np.zeros(len(images), np.int64)
    wrong = []
    for start in range(0, len(images), HEADERS_AT_ONCE):
        wanted = list(range(start, min(start + HEADERS_AT_ONCE, len(images))))
        errors: dict[int, DataError] = {}
        for count in HEAD_BYTES:
            heads = images.files.read_starts(wanted, count)
            errors = {}
            for item, head in zip(wanted, heads, strict=True):
                try:
                    found[item] = _side(images, item, head)
                except DataError as error:
                    errors[item] = error
            wanted = list(errors)
            if not wanted:
                break
        wrong += list(errors.values())
    problems.add_first([str(error) for error in wrong[:SHOWN]], len(wrong), images.root, "patches that can't be used")
    return found


def _side(images: ImageFiles, item: int, head: bytes | DataError) -> int:
    if isinstance(head, DataError):
        raise head
    width, height = images.size(item, head)
    images.limits.check_pixels(width, height, images.uri(item))
    if width != height:
        raise DataError(f"{images.uri(item)}: {width} x {height} px; a patch must be square, cut or pad it")
    return width
