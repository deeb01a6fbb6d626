"""What sources of patches share: files `SEQ/IM` below a folder, listed in name order and found by key.

`Strips` hold pixels, `VectorFiles` hold descriptors. Both list every file of their folder, so that any benchmark over
the same folder shares one extraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from numpy.typing import NDArray

from raybench import storage
from raybench.errors import DataError, ProblemList, suggestion


class Source(Protocol):
    """Ordered keys `SEQ/IM` with a digest, readable by range. A source never decides how it is cut."""

    @property
    def root(self) -> str: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def suffix(self) -> str: ...

    @property
    def digest(self) -> str: ...

    def uri(self, item: int) -> str:
        """The file behind an item."""
        ...

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Patches of each of these items; what is wrong with one is noted."""
        ...

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]:
        """Each item's URI and its patches or descriptors."""
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


def list_sequence_files(root: str, suffix: str, what: str) -> list[storage.Entry]:
    """The files `SEQ/IM` with this suffix in name order; none at all is an error."""
    entries = [entry for entry in sequence_entries(root) if entry.name.endswith(suffix)]
    if not entries:
        reason = "holds none" if storage.exists(root) else "does not exist"
        raise DataError(f"{root}: {reason}; expected a folder with {what}")
    return entries


def sequence_entries(root: str) -> list[storage.Entry]:
    """Files `SEQ/IM…` below a folder; hidden ones, which some systems leave about, aside."""
    parts = [(entry, entry.name.split("/")) for entry in storage.list_files(root)]
    return [entry for entry, names in parts if len(names) == 2 and not any(name.startswith(".") for name in names)]
