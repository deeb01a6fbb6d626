"""All pairs within a limit of each query: exact, whoever proposes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.search.by_numpy import ByNumpy
from raybench.search.distances import RowPairs, as_compared, measured
from raybench.search.proposers import Proposer


def within(
    queries: NDArray[Any],
    references: NDArray[Any],
    limits: NDArray[np.float64],
    distance: str,
    proposer: Proposer | None = None,
) -> Iterator[tuple[RowPairs, NDArray[np.float64]]]:
    """All pairs whose distance is at most the query's limit, with their distances; whole queries at a time.

    >>> rows = np.array([[0.0], [1.0], [3.0]])
    >>> [(pairs[1].tolist(), d.tolist()) for pairs, d in within(rows[:1], rows, np.array([1.0]), "L2")]
    [([0, 1], [0.0, 1.0])]
    """
    queries, references, distance = as_compared(queries, references, distance)
    for query, reference in (proposer or ByNumpy()).within(queries, references, limits, distance):
        distances = measured(queries, references, (query, reference), distance)
        kept = distances <= limits[query]
        yield (query[kept], reference[kept]), distances[kept]
