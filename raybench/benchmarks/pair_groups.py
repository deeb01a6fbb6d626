"""Groups of listed pairs: which sequence, and so which change, each pair belongs to.

A pair belongs where its first patch is. So every pair counts once, although a negative may lie between two sequences,
and positives keep their share of the pairs, on which AP depends; pairs that reach beyond their group are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags

RULE = (
    "a pair belongs to the sequence and type of its first patch, so each counts once; between: pairs whose second "
    "patch is outside the group. AP depends on the share of positives, which differs between groups."
)


@dataclass(frozen=True)
class Groups:
    """One view of pairs: the group of each by number (one behind the last: in none), and whether it reaches beyond."""

    names: tuple[str, ...]
    code: NDArray[np.unsignedinteger]
    between: Flags

    def members(self, chosen: Flags | None = None) -> list[NDArray[np.int64]]:
        """The pairs of each group, in the order of the file; only the chosen ones."""
        code = self.code if chosen is None else np.where(chosen, self.code, self.code.dtype.type(len(self.names)))
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], np.arange(len(self.names)), side="right").tolist()
        return [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True)
class PairSequences:
    """The sequences of both patches of pairs, as numbers into `names`."""

    names: tuple[str, ...]
    a: NDArray[np.unsignedinteger]
    b: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, names: Sequence[str], a: NDArray[np.integer], b: NDArray[np.integer]) -> PairSequences:
        small = small_kind(len(names))  # of 8 and 16 bits, which numpy sorts by radix
        return cls(tuple(names), a.astype(small), b.astype(small))

    @classmethod
    def unknown(cls, pairs: int) -> PairSequences:
        """Pairs of which nobody said where they are."""
        return cls.of(("unknown",), *np.zeros((2, pairs), np.uint8))

    def kept(self, chosen: NDArray[np.int64]) -> PairSequences:
        """Some of the pairs."""
        return PairSequences(self.names, self.a[chosen], self.b[chosen])

    def joined(self, others: PairSequences) -> PairSequences:
        """These pairs, then others that count into the same names."""
        assert self.names == others.names
        return PairSequences(self.names, np.append(self.a, others.a), np.append(self.b, others.b))

    def by_kind(self, kinds: Sequence[str | None]) -> Groups:
        """Groups of sequences; `kinds` has the group of each sequence, None if it is in none."""
        names = sorted({kind for kind in kinds if kind is not None})
        small = small_kind(len(names))
        place = np.array([len(names) if kind is None else names.index(kind) for kind in kinds], small)
        a = place[self.a]
        return Groups(tuple(names), a, a != place[self.b])


def small_kind(groups: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type that has a number for each group and one for none."""
    kind: np.dtype[np.unsignedinteger] = np.min_scalar_type(groups)
    return kind
