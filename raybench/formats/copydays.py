"""The layout of Copydays: blocks by folder, and which originals are true for which query, from names alone.

Names are `block/file`. In `strong` an original is true if its file has the same first four characters; in every other
block it is the one at the same position in name order, so such a block has as many images as `original`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.errors import ProblemList, suggestion
from raybench.formats.names import Names

ORIGINAL, STRONG = "original", "strong"
JPEG_QUALITIES = (3, 5, 8, 10, 15, 20, 30, 50, 75)
CROPS = (10, 15, 20, 30, 40, 50, 60, 70, 80)
BLOCKS = (ORIGINAL, STRONG, *(f"jpegqual/{level}" for level in JPEG_QUALITIES), *(f"crops/{level}" for level in CROPS))
PREFIX = 4  # characters that an edited image shares with its original
SHOWN = 5


@dataclass(frozen=True)
class CopydaysLayout:
    """Places, in the set of all names, of each block's images in name order; true pairs as (place, original).

    An original is meant by its position among the originals, which is its place in the database.
    """

    blocks: dict[str, NDArray[np.int64]]  # in the published order
    true_query: NDArray[np.int64]
    true_original: NDArray[np.int64]

    @property
    def originals(self) -> NDArray[np.int64]:
        return self.blocks[ORIGINAL]

    @property
    def missing(self) -> list[str]:
        """Published blocks that are not there."""
        return [block for block in BLOCKS if block not in self.blocks]

    @classmethod
    def of(cls, names: Names, where: str, problems: ProblemList) -> CopydaysLayout | None:
        """The blocks of these names; None if something is wrong with them, which is noted."""
        before = len(problems.lines)
        paths = names.array.to_pylist()
        folders = np.array([path.rpartition("/")[0] for path in paths])
        files = [path.rpartition("/")[2] for path in paths]
        found, number = np.unique(folders, return_inverse=True)
        places = {str(folder): np.flatnonzero(number == index) for index, folder in enumerate(found)}
        _note_folders(places, where, problems)
        if ORIGINAL not in places:
            return None
        pairs = []
        for block in BLOCKS:
            if block == STRONG and block in places:
                pairs.append(_by_prefix(places[block], places[ORIGINAL], files, where, problems))
            elif block in places and len(places[block]) == len(places[ORIGINAL]):
                pairs.append((places[block], np.arange(len(places[block]))))
        if len(problems.lines) > before:
            return None
        query, original = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return cls({block: places[block] for block in BLOCKS if block in places}, query, original)


def _note_folders(places: dict[str, NDArray[np.int64]], where: str, problems: ProblemList) -> None:
    for folder in sorted(set(places) - set(BLOCKS)):
        hint = suggestion(folder, BLOCKS) or "; expected original, strong, jpegqual/QUALITY or crops/PERCENT"
        problems.add(f"{where}: unknown block {folder!r}{hint}")
    if ORIGINAL not in places:
        problems.add(f"{where}: no image in {ORIGINAL}/, which every query is compared with")
        return
    originals = len(places[ORIGINAL])
    for block in BLOCKS:
        if block in places and block != STRONG and len(places[block]) != originals:
            problems.add(
                f"{where}: block {block} has {len(places[block]):,} images, {ORIGINAL} has {originals:,}; "
                "they must be as many, since images are paired by position in name order"
            )


def _by_prefix(
    queries: NDArray[np.int64], originals: NDArray[np.int64], files: Sequence[str], where: str, problems: ProblemList
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every (query place, original) whose files begin alike."""
    by_prefix: dict[str, list[int]] = {}
    for position, place in enumerate(originals.tolist()):
        by_prefix.setdefault(files[place][:PREFIX], []).append(position)
    pairs = [(place, position) for place in queries.tolist() for position in by_prefix.get(files[place][:PREFIX], ())]
    alone = [files[place] for place in queries.tolist() if files[place][:PREFIX] not in by_prefix]
    if alone:
        shown = ", ".join(alone[:SHOWN]) + (" …" if len(alone) > SHOWN else "")
        problems.add(
            f"{where}: {len(alone)} images in {STRONG}/ have no original with the same first {PREFIX} characters "
            f"({shown})"
        )
    query, original = np.array(pairs, np.int64).reshape(-1, 2).T
    return query, original
