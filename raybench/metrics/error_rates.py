"""False alarms at 95% recall, as `ErrorRateAt95Recall` of DagnyT/hardnet counts them: FPR95, and the older FDR95.

Of P matches the m-th nearest decides, m = 0.95 P rounded up. Callers bring pairs in rank order with negatives first
among equal distances, so that every other pair at the deciding distance is a false alarm. Nothing is interpolated.
Less is better in both figures; LOWER_IS_BETTER is where all who rank or judge figures look that up.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.ranking import Flags
from raybench.table import Figure

FPR95 = Figure("fpr95", "false positive rate at 95% recall, others at most as far as the deciding match / all others")
FDR95 = Figure("fdr95", "the older figure of that name, others at most so far / all pairs found at 95% recall")
Count = TypeVar("Count", int, NDArray[np.int64])
LOWER_IS_BETTER = frozenset((FPR95.name, FDR95.name))


def needed_matches(positives: Count) -> Count:
    """How many matches make up 95% of them, in whole numbers; of one list, or of each of several.

    >>> [needed_matches(count) for count in (1, 7, 20, 100, 1000)]
    [1, 7, 19, 95, 950]
    """
    return (19 * positives + 19) // 20


def fpr95(ranked: Flags) -> float:
    """The share of the others that stand before the deciding match; nan without both kinds.

    >>> fpr95(np.array([True, False, True, False, False, False]))  # the second of two matches decides
    0.25
    """
    return error_rate_of_ranks("fpr95", np.flatnonzero(ranked) + 1, int(ranked.sum()), int((~ranked).sum()))


def fdr95(ranked: Flags) -> float:
    """Of all pairs up to the deciding match the share of the others; nan without both kinds.

    >>> fdr95(np.array([True, False, True, False, False, False]))
    0.3333333333333333
    """
    return error_rate_of_ranks("fdr95", np.flatnonzero(ranked) + 1, int(ranked.sum()), int((~ranked).sum()))


def error_rate_of_ranks(name: str, ranks: NDArray[np.int64], positives: int, others: int) -> float:
    """Either figure from the ranks (from 1, rising) of the matches, of `positives` in all; nan where it has none."""
    needed = needed_matches(positives)
    if not others or not 0 < needed <= len(ranks):
        return float("nan")
    false_alarms = int(ranks[needed - 1]) - needed
    return false_alarms / others if name == "fpr95" else false_alarms / (false_alarms + needed)
