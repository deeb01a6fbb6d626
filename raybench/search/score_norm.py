"""Score normalisation `w[a,b]`: what a query's nearest training vectors take off its scores.

Of a query's inner products with training vectors, best first, the mean of those at positions a..b (from 0, b included)
times -w is added to all its scores. The text form is that of the published SSCD tools. One search of training vectors
gives the biases of every norm that is asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ConfigError, DataError, ProblemList
from raybench.extract.vector_set import VectorSet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, Rows, TopK
from raybench.search.set_search import search_sets

FORM = re.compile(r"([^\[\]]+)\[\s*(\d+)\s*(?:,\s*(\d+)\s*)?\]")


@dataclass(frozen=True)
class ScoreNorm:
    """`weight[first,last]`, printed with two decimals as published, or with as many as tell the weight.

    >>> str(ScoreNorm(1.0, 0, 2)), str(ScoreNorm(1.001, 0, 2))
    ('1.00[0,2]', '1.001[0,2]')
    """

    weight: float
    first: int
    last: int

    def __str__(self) -> str:
        short = f"{self.weight:.2f}"
        return f"{short if float(short) == self.weight else self.weight}[{self.first},{self.last}]"

    @property
    def name(self) -> str:
        return f"score norm {self}"

    def problem(self, training: int) -> str | None:
        """Why so many training vectors are not enough, if so."""
        if self.last < training:
            return None
        return f"{self.name}: needs {self.last + 1:,} training vectors, there are {training:,}"

    def bias(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is added to each query's scores; `products` (queries, at least last + 1), falling along a row.

        >>> ScoreNorm(0.5, 0, 1).bias(np.array([[4.0, 2.0, 1.0]])).tolist()
        [-1.5]
        """
        means: NDArray[np.float64] = np.ascontiguousarray(products[:, self.first : self.last + 1]).mean(axis=1)
        return -self.weight * means


def parse_norms(text: str) -> tuple[ScoreNorm, ...]:
    """The norms in a text such as `1.0[0,2];0.5[1,3]`; `none` adds nothing. All that is wrong is said at once.

    >>> [str(norm) for norm in parse_norms("1.0[0,2]; none; 0.5[1]")]
    ['1.00[0,2]', '0.50[1,1]']
    """
    problems = ProblemList()
    norms: list[ScoreNorm] = []
    for word in (part.strip() for part in text.split(";")):
        with problems.noting():
            if word.lower() not in ("none", ""):
                norm = _norm(word)
                if norm in norms:
                    raise ConfigError(f"score norm {word!r}: given twice")
                norms.append(norm)
    problems.check()
    return tuple(norms)


def _norm(word: str) -> ScoreNorm:
    found = FORM.fullmatch(word)
    try:
        weight = float(found[1]) if found else math.nan
    except ValueError:
        weight = math.nan
    if found is None or not math.isfinite(weight):
        raise ConfigError(f"score norm {word!r}: expected weight[first,last] such as 1.0[0,2], several joined by ';'")
    first = int(found[2])
    last = int(found[3]) if found[3] else first
    if first > last:
        raise ConfigError(f"score norm {word!r}: the first neighbour, {first}, comes after the last, {last}")
    return ScoreNorm(weight, first, last)


def query_biases(
    run: Run,
    queries: VectorSet | Sequence[VectorSet],
    training: VectorSet,
    norms: Sequence[ScoreNorm],
    *,
    device: str,
    shard_size: int | None = None,
) -> tuple[PerItem, ...]:
    """For each norm one shard of Rows: what is added to each query's scores. One search serves all norms."""
    if not norms:
        return ()
    k = max(norm.last for norm in norms) + 1
    found = search_sets(run, queries, training, k, "ip", device=device, shard_size=shard_size)
    return tuple(run.each(_query_bias, [norm], found.nearest, version=1) for norm in norms)


def _query_bias(norm: ScoreNorm, nearest: Mapped) -> Arrays:
    top = TopK.from_arrays(nearest.read(0))
    there = (top.reference != NO_REFERENCE).sum(axis=1).min(initial=norm.last + 1)
    problem = norm.problem(int(there))
    if problem is not None:
        raise DataError(problem)
    return Rows(top.query, norm.bias(0.0 - top.distance)).to_arrays()
