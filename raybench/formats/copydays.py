"""The layout of Copydays: blocks by folder, and which originals are true for which query, from names alone.

Names are `block/file`. In `strong` an original is true if its file has the same first four characters; in every other
block it is the one at the same position in name order, so such a block has as many images as `original`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.errors import ProblemList, quoted, suggestion
from raybench.formats.names import Names

ORIGINAL, STRONG = "original", "strong"
JPEG_QUALITIES = (3, 5, 8, 10, 15, 20, 30, 50, 75)
CROPS = (10, 15, 20, 30, 40, 50, 60, 70, 80)
BLOCKS = (ORIGINAL, STRONG, *(f"jpegqual/{level}" for level in JPEG_QUALITIES), *(f"crops/{level}" for level in CROPS))
PREFIX = 4  # characters that an edited image shares with its original
SHOWN = 5
UNKNOWN_SHOWN = 20
BLOCK_WORDS = "original, strong, jpegqual/QUALITY or crops/PERCENT"


@dataclass(frozen=True)
class CopydaysLayout:
    """Indices, in the set of all names, of each block's images in name order; true pairs as (index, original).

    An original is meant by its index among the originals, which is its index in the database.
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
        files = [path.rpartition("/")[2] for path in paths]
        found: dict[str, list[int]] = {}
        for index, path in enumerate(paths):
            found.setdefault(path.rpartition("/")[0], []).append(index)
        members = {folder: np.array(found[folder], np.int64) for folder in sorted(found)}
        _note_folders(members, where, problems)
        if ORIGINAL not in members:
            return None
        pairs = []
        for block in BLOCKS:
            if block == STRONG and block in members:
                pairs.append(_by_prefix(members[block], members[ORIGINAL], files, where, problems))
            elif block in members and len(members[block]) == len(members[ORIGINAL]):
                pairs.append((members[block], np.arange(len(members[block]))))
        if len(problems.lines) > before:
            return None
        query, original = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return cls({block: members[block] for block in BLOCKS if block in members}, query, original)


def _note_folders(members: dict[str, NDArray[np.int64]], where: str, problems: ProblemList) -> None:
    if "" in members and len(members) == 1:
        problems.add(f"{where}: {len(members['']):,} images right in it, in no block; expected {BLOCK_WORDS} below it")
        return
    unknown = sorted(set(members) - set(BLOCKS))
    hints = [suggestion(folder, BLOCKS) or f"; expected {BLOCK_WORDS}" for folder in unknown[:UNKNOWN_SHOWN]]
    lines = [f"{where}: unknown block {quoted(folder)}{hint}" for folder, hint in zip(unknown, hints, strict=False)]
    problems.add_first(lines, len(unknown), where, "unknown blocks")
    if ORIGINAL not in members:
        problems.add(f"{where}: no image in {ORIGINAL}/, which every query is compared with")
        return
    originals = len(members[ORIGINAL])
    for block in BLOCKS:
        if block in members and block != STRONG and len(members[block]) != originals:
            problems.add(
                f"{where}: block {block} has {len(members[block]):,} images, {ORIGINAL} has {originals:,}; "
                "they must be as many, since images are paired by position in name order"
            )


def _by_prefix(
    queries: NDArray[np.int64], originals: NDArray[np.int64], files: Sequence[str], where: str, problems: ProblemList
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every (query, original) whose files begin alike."""
    by_prefix: dict[str, list[int]] = {}
    for number, index in enumerate(originals.tolist()):
        by_prefix.setdefault(files[index][:PREFIX], []).append(number)
    pairs = [(index, number) for index in queries.tolist() for number in by_prefix.get(files[index][:PREFIX], ())]
    alone = [files[index] for index in queries.tolist() if files[index][:PREFIX] not in by_prefix]
    if alone:
        shown = ", ".join(alone[:SHOWN]) + (" …" if len(alone) > SHOWN else "")
        problems.add(
            f"{where}: {len(alone)} images in {STRONG}/ have no original with the same first {PREFIX} characters "
            f"({shown})"
        )
    query, original = np.array(pairs, np.int64).reshape(-1, 2).T
    return query, original
