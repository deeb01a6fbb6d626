"""The figures of samples in every draw of their units."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.drawn_ranking import Times
from raybench.metrics.samples import FigureOf, Sample

FigureDraws = dict[FigureOf, NDArray[np.float64]]  # (draws,)
AHEAD = 4  # draws per thread that wait at most: each holds a number per unit


def sample_draws(sample: Sample, draws: int, seed: int, threads: int = 1) -> FigureDraws:
    """Of one sample's figures. numpy works in several threads at once where units and items are many."""
    sample = replace(sample)  # whose ranking is forgotten at the end
    times = sample.units.draws(draws, seed)
    if threads == 1:
        drawn = [sample.draw(one) for one in times]
    else:
        sample.draw(np.ones(len(sample.units), np.int64))  # prepared once, before threads ask for it
        with ThreadPoolExecutor(threads) as pool:
            drawn = [found for some in _batches(times, AHEAD * threads) for found in pool.map(sample.draw, some)]
    values = np.array(drawn, np.float64).reshape(draws, len(sample.figures))
    return dict(zip(sample.figures, values.T.copy(), strict=True))


def _batches(times: Iterator[Times], size: int) -> Iterator[list[Times]]:
    while some := list(islice(times, size)):
        yield some
