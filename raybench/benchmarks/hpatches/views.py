"""Views of the 2017 benchmarks: their figures by type of change (`i_`, `v_`) and by sequence, and the rows they share.

Every table has one row per noise level and then their mean. Nothing is measured here: figures come from the benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from raybench.benchmarks.hpatches.inputs import NOISE_LEVELS
from raybench.benchmarks.pair_groups import Groups, PairSequences
from raybench.metrics.samples import FigureOf, MeanOf
from raybench.table import Cell, Figure, Table, row_name

SEQUENCE_VIEWS = ("type", "sequence")
SEQUENCE_TYPES = {"i_": "illumination", "v_": "viewpoint"}
MEAN_WORDS = "mean: of the three noise levels"


def group_name(sequence: str, view: str) -> str:
    """The group of a sequence in one view: what changes within it, by its name, or itself.

    >>> group_name("i_dome", "type"), group_name("dome", "type"), group_name("i_dome", "sequence")
    ('illumination', 'other', 'i_dome')
    """
    return sequence if view == "sequence" else SEQUENCE_TYPES.get(sequence[:2], "other")


def level_rows(group: Iterable[Cell], key: Iterable[Cell], figures: Sequence[Any]) -> Iterator[tuple[Cell, ...]]:
    """One row per noise level, then their mean: group, noise, key and figures; `figures` are (levels, figures).

    >>> list(level_rows(("a",), (100,), [[0.5], [0.25], [0.0]]))[1:]
    [('a', 'h', 100, 0.25), ('a', 't', 100, 0.0), ('a', 'mean', 100, 0.25)]
    """
    levels = np.asarray(figures, np.float64)
    for noise, values in zip((*NOISE_LEVELS, "mean"), [*levels, levels.mean(axis=0)], strict=True):
        yield (*group, noise, *key, *values.tolist())


def level_means(main: Table, figures: Sequence[Figure]) -> tuple[MeanOf, ...]:
    """Of each figure in each `mean` row of a main table, of which levels it is the mean."""
    keys = main.columns[: -len(figures)]
    noise = keys.index("noise")
    rows = [row[: len(keys)] for row in main.rows if row[noise] == "mean"]
    return tuple(
        MeanOf(
            FigureOf(row_name(*row), figure.name),
            tuple(FigureOf(row_name(*row[:noise], level, *row[noise + 1 :]), figure.name) for level in NOISE_LEVELS),
        )
        for row in rows
        for figure in figures
    )


def groups_of(pairs: PairSequences, view: str) -> Groups:
    """The groups of listed pairs in one view."""
    return pairs.by_kind([group_name(name, view) for name in pairs.names])
