"""Which library makes the scores of a search: by the work's size and a short measurement; no result shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from raybench.search.coarse import CoarseScores, multiplies_coarsely
from raybench.search.gpu_check import checked_gpu
from raybench.search.scores import FloatScores, Scores

WORTH_TORCH = 2.0**38  # operations of a search: below two seconds of a core importing torch takes what it saves
TRIED_QUERIES, TRIED_REFERENCES, TRIES = 256, 4_096, 3


def chosen_scores(
    queries: int, references: int, dimension: int, on_device: bool
) -> Callable[[NDArray[np.float32]], Scores]:
    """What makes the scores for so many queries and references."""
    if on_device and checked_gpu().make_proposer is not None:
        return partial(CoarseScores, device="cuda")
    if 2.0 * queries * references * dimension < WORTH_TORCH:
        return FloatScores
    return _faster_on_cpu(dimension)


@cache
def _faster_on_cpu(dimension: int) -> Callable[[NDArray[np.float32]], Scores]:
    """numpy in float32 or torch in bfloat16, whichever is faster in this process for rows of this dimension."""
    if not multiplies_coarsely():
        return FloatScores
    rows = np.random.default_rng(0).standard_normal((TRIED_QUERIES + TRIED_REFERENCES, dimension), np.float32)
    return min((CoarseScores, FloatScores), key=lambda kind: _seconds(kind, rows))


def _seconds(kind: Callable[[NDArray[np.float32]], Scores], rows: NDArray[np.float32]) -> float:
    scores = kind(rows[:TRIED_QUERIES])
    scores.put(rows[TRIED_QUERIES:], None)
    limits = np.full(TRIED_QUERIES, np.inf)
    taken = []
    for _ in range(TRIES):
        started = time.perf_counter()
        scores.reaching(slice(0, TRIED_QUERIES), limits)
        taken.append(time.perf_counter() - started)
    return min(taken)
