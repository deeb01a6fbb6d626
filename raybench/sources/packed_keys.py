"""Keys by the million as they travel: one array of letters and one of ends, which processes of a node share.

A tuple of a million strings takes 100 MB and 0.1 s in every process that unpickles it. Arrays are mapped from Ray's
object store, and a key is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

ODD_BYTES = "surrogateescape"  # as Python reads file names that are no UTF-8


@dataclass(frozen=True, eq=False)
class PackedKeys(Sequence[str]):
    """Strings that can be asked for by their place.

    >>> list(PackedKeys.of(["a", "", "äh.jpg"]))
    ['a', '', 'äh.jpg']
    """

    letters: NDArray[np.uint8]  # UTF-8, one key behind the other
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, keys: Sequence[str]) -> PackedKeys:
        if isinstance(keys, PackedKeys):
            return keys
        coded = [key.encode(errors=ODD_BYTES) for key in keys]
        ends = np.cumsum(np.fromiter(map(len, coded), np.int64, len(coded)))
        return cls(np.frombuffer(b"".join(coded), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        chosen = range(len(self))[place]
        return [self._at(one) for one in chosen] if isinstance(chosen, range) else self._at(chosen)

    def _at(self, place: int) -> str:
        start = int(self.ends[place - 1]) if place else 0
        return self.letters[start : int(self.ends[place])].tobytes().decode(errors=ODD_BYTES)
