"""Whether figures differ by more than chance: p-values from paired draws, Holm's correction, letters for groups.

A paired draw gives two methods the same units, so what is hard for both does not count as a difference between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def paired_p(differences: NDArray[np.float64], units: int) -> float:
    """The two-sided p-value of the differences of paired draws of so many units; nan without any.

    Twice the smaller share of draws on either side of 0 (a draw of exactly 0 is on both), with the figure as measured
    counted as one more draw on that side, so that p is never 0; at most 1. A 95% interval of the same draws leaves
    out 0 if p is below 0.05. Without any difference, p is 1, and so it is of a single unit, of which
    every draw is the same. Draws of a few units say too much, as their intervals do.

    >>> paired_p(np.array([0.1, 0.2, 0.3, -0.1]), 9), paired_p(np.zeros(4), 9), paired_p(np.full(99, 0.1), 9)
    (0.8, 1.0, 0.02)
    """
    there = differences[~np.isnan(differences)]
    if not len(there):
        return float("nan")
    if units < 2:
        return 1.0
    beyond = min(int((there <= 0).sum()), int((there >= 0).sum()))
    return min(1.0, 2 * (beyond + 1) / (len(there) + 1))


def least_of_draws(draws: int) -> float:
    """The least that `paired_p` can be for so many draws."""
    return min(1.0, 2 / (draws + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down method, in the same order; nan ones do not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.array(p_values, np.float64)
    corrected = np.full(len(values), np.nan)
    order = [place for place in np.argsort(values, kind="stable") if not np.isnan(values[place])]
    highest = 0.0
    for number, place in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - number) * float(values[place])))
        corrected[place] = highest
    return [float(value) for value in corrected]


def group_letters(order: Sequence[int], different: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Letters of methods, in this order (the best first): two share one exactly if they are not among `different`.

    The compact letter display: all begin in one group; a pair that differs splits every group that holds both in two,
    and a group inside another is dropped (Piepho 2004).

    >>> group_letters([0, 1, 2], [(0, 2)])
    {0: 'a', 1: 'ab', 2: 'b'}
    """
    groups = [frozenset(order)] if order else []
    for one, other in different:
        split = [group - {left} for group in groups if {one, other} <= group for left in (one, other)]
        kept = [group for group in groups if not {one, other} <= group]
        groups = _largest([*kept, *split])
    groups.sort(key=lambda group: [order.index(member) for member in sorted(group, key=order.index)])
    names = [_letter(number) for number in range(len(groups))]
    return {one: "".join(name for name, group in zip(names, groups, strict=True) if one in group) for one in order}


def _largest(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    distinct = list(dict.fromkeys(groups))
    return [group for group in distinct if not any(group < other for other in distinct)]


def _letter(number: int) -> str:
    """a to z, then a1 to z1, and so on."""
    return LETTERS[number % len(LETTERS)] + (str(number // len(LETTERS)) if number >= len(LETTERS) else "")
