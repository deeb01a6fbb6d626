"""Pairs that a list has more than once. Published lists are drawn at random and repeat some: these count each time.

The same pair with both labels is an error, for one of them is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from raybench.benchmarks.pairs.origins import PairOrigin
from raybench.errors import ProblemList, quoted
from raybench.formats.pair_lists import PairList
from raybench.formats.text_rows import SHOWN


def repeated_notes(origin: PairOrigin, lists: Mapping[str, PairList], problems: ProblemList) -> tuple[str, ...]:
    """What a reader of the table should know of pairs that come again; contradictions are noted as problems."""
    return tuple(note for stem, one in lists.items() for note in _of_list(origin, stem, one, problems))


def _of_list(origin: PairOrigin, stem: str, one: PairList, problems: ProblemList) -> Iterator[str]:
    item, patch = origin.place
    place = (item.astype(np.int64) << 32) + patch
    _, number = np.unique(place, return_inverse=True)  # however a patch is spelled
    a, b = (number[side].astype(np.int64) for side in origin.named.sides[stem])
    known = (item[origin.named.sides[stem][0]] >= 0) & (item[origin.named.sides[stem][1]] >= 0)
    key = np.minimum(a, b) * (len(number) + 1) + np.maximum(a, b)
    order = np.lexsort((np.arange(len(key)), key))
    first, second = order[:-1], order[1:]
    again = (key[first] == key[second]) & known[first]
    differ = again & (one.positive[first] != one.positive[second])
    lines = [
        f"{one.name}: {one.place(above)} and {one.place(below)}: the pair {quoted(one.a[above].as_py())}, "
        f"{quoted(one.b[above].as_py())} has both labels; keep the right one"
        for above, below in zip(first[differ][:SHOWN].tolist(), second[differ][:SHOWN].tolist(), strict=True)
    ]
    problems.add_first(lines, int(differ.sum()), one.name, "pairs with both labels")
    if again.any():
        yield f"{stem}: {int(again.sum()):,} of {len(one):,} pairs stand in the list before; each counts."
    itself = int(np.count_nonzero(known & (a == b)))
    if itself:
        yield f"ITSELF: {itself:,} of {len(one):,} pairs of {stem} are of a patch with itself, at distance 0."
