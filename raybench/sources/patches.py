"""What sources of patches have in common. An item is what is read at once, and holds one or many patches.

Of `Strips` (pixels) and `VectorFiles` (descriptors) an item is a file with the key `SEQ/IM`. They list every file of
their folder, so that any benchmark over the same folder shares one extraction. Sheets, single images and one file of
vectors are cut into items by `patch_sheets`, `patch_images` and `vector_blocks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from numpy.typing import NDArray

from raybench.errors import ProblemList, suggestion


class Source(Protocol):
    """Items of patches in an order, as pixels (n, side, side) or vectors (n, dim)."""

    @property
    def root(self) -> str: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def suffix(self) -> str:
        """What stands behind a key in the name of its file."""
        ...

    @property
    def digest(self) -> str: ...

    def uri(self, item: int) -> str: ...

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Patches of each of these items; what is wrong with one is noted."""
        ...

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]: ...


class Pictured(Source, Protocol):
    """A source of pixels."""

    def patch_name(self, item: int, patch: int) -> str:
        """What a patch is called in lists."""
        ...


def items_of(source: Source, wanted: Iterable[str], problems: ProblemList) -> dict[str, int]:
    """The items of the wanted keys; a sequence or image that is not there is noted once, with the nearest name."""
    items = {key: item for item, key in enumerate(source.keys)}
    sequences = {key.split("/")[0] for key in source.keys}
    found = {}
    for key in wanted:
        sequence = key.split("/")[0]
        if key in items:
            found[key] = items[key]
        elif sequence not in sequences:
            problems.add(
                f"{source.root}: no sequence {sequence!r}, which the tasks name{suggestion(sequence, sequences)}"
            )
        else:
            problems.add(f"{source.root}: {key}{source.suffix} is missing, which the tasks name")
    return found
