"""Members of an archive by their places in it: what a tar or zip reader finds, as arrays side by side.

Only members that are wanted are kept, by their names as a folder would list them once the archive is unpacked.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

STORED, DEFLATED = 0, 8  # methods, by the numbers of zip
LINK_TO_NOTHING = 255  # instead of a method: a link to what is not among the wanted members

HERE = re.compile(r"^(?:\./+)+")  # not one after the other: a name of a megabyte would take minutes

Wanted = Callable[[str], bool]


@dataclass(frozen=True)
class Places:
    """Where each of some members lies: its bytes start..start + span hold `size` bytes once they are unpacked."""

    start: NDArray[np.int64]
    span: NDArray[np.int64]
    size: NDArray[np.int64]
    method: NDArray[np.uint8]
    crc: NDArray[np.uint32]  # of what is unpacked; 0 in a tar, which has none

    def __len__(self) -> int:
        return len(self.start)

    def taken(self, chosen: NDArray[np.int64]) -> Places:
        """Only these, in this order."""
        return Places(*(column[chosen] for column in self.columns().values()))

    def columns(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("start", "span", "size", "method", "crc")}


@dataclass(frozen=True)
class Members:
    """The wanted members of an archive in its order, and how many others there are.

    `is_rooted`: whether it says itself where it begins, so that a folder around all members is one below that.
    """

    names: list[str]
    places: Places
    others: int
    is_rooted: bool = False


class MemberList:
    """Members as they are found, in forty bytes each and their names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.others = 0
        self.is_rooted = False
        self._numbers = array("q")

    def add(self, name: str, start: int, span: int, size: int, method: int = STORED, crc: int = 0) -> None:
        self.names.append(name)
        self._numbers.extend((start, span, size, method, crc))

    def numbers(self) -> NDArray[np.int64]:
        """(n, 5): start, span, size, method, CRC."""
        return np.array(self._numbers, np.int64).reshape(-1, 5)

    def members(self, numbers: NDArray[np.int64] | None = None) -> Members:
        rows = self.numbers() if numbers is None else numbers
        start, span, size, method, crc = (np.ascontiguousarray(column) for column in rows.T)
        places = Places(start, span, size, method.astype(np.uint8), crc.astype(np.uint32))
        return Members(self.names, places, self.others, self.is_rooted)


def as_listed(name: str) -> str:
    """A member's name as a folder would list it.

    >>> as_listed("./a/b.jpg"), as_listed("a.jpg")
    ('a/b.jpg', 'a.jpg')
    """
    return HERE.sub("", name)
