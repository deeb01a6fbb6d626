"""Precision-recall and ROC curves of a run, read from the files that it left in `curves/` and thinned for the page.

Files of single image pairs or queries hold thousands of short curves, which no chart can show; those are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.errors import DataError
from raybench.formats.parquet import read_parquet

MOST_CURVES = 24
BY_RECALL, BY_FALSE_ALARMS, BY_RANK = 64, 32, 32  # points that each way of thinning keeps
PARTS = 10_000  # of one, in which shares are written


@dataclass(frozen=True)
class ReadCurve:
    """One curve with its name, the best-ranked point first. ROC and scores are there if the run wrote them."""

    name: str
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    false_positive_rate: NDArray[np.float64] | None = None
    score: NDArray[np.float64] | None = None

    def to_json(self) -> dict[str, Any]:
        """Shares as whole numbers of ten-thousandths, scores with five digits."""
        shares = {"recall": self.recall, "precision": self.precision, "fpr": self.false_positive_rate}
        found: dict[str, Any] = {key: _in_parts(values) for key, values in shares.items() if values is not None}
        if self.score is not None:
            found["score"] = [float(f"{value:.5g}") if np.isfinite(value) else None for value in self.score.tolist()]
        return found


def curves_of(out: str, files: Sequence[str]) -> list[ReadCurve]:
    """The curves among a run's files; none if these are of single pairs or queries."""
    curves = []
    for name in [file for file in files if file.startswith("curves/")][:MOST_CURVES]:
        uri = storage.join(out, name)
        columns = read_parquet(storage.read(uri), uri)
        if {"pair", "query"} & columns.keys() or not {"recall", "precision"} <= columns.keys():
            return []
        wanted = [key for key in ("recall", "precision", "false_positive_rate", "score") if key in columns]
        if any(columns[key].dtype.kind not in "fiu" for key in wanted):
            raise DataError(f"{uri}: {', '.join(wanted)} are no numbers; run again with --overwrite")
        if len(columns["recall"]):
            label = name.removeprefix("curves/").removesuffix(".parquet")
            curves.append(thinned(label, {key: columns[key].astype(np.float64) for key in wanted}))
    return curves


def thinned(name: str, columns: dict[str, NDArray[np.float64]]) -> ReadCurve:
    """A curve with a few points out of many: evenly over recall and false alarms, and densest at the best ranks."""
    recall, false_alarms = columns["recall"], columns.get("false_positive_rate")
    last = len(recall) - 1
    chosen: list[NDArray[Any]] = [
        np.searchsorted(recall, np.linspace(0, recall[-1], BY_RECALL)),
        np.geomspace(1, last + 1, BY_RANK) - 1,
        np.array([0, last]),
    ]
    if false_alarms is not None:
        chosen.append(np.searchsorted(false_alarms, np.linspace(0, 1, BY_FALSE_ALARMS) ** 2))
    points = np.unique(np.clip(np.concatenate(chosen).astype(np.int64), 0, last))
    kept = {key: values[points] for key, values in columns.items()}
    return ReadCurve(name, kept["recall"], kept["precision"], kept.get("false_positive_rate"), kept.get("score"))


def _in_parts(values: NDArray[np.float64]) -> list[int | None]:
    """Shares of one; what is none, as only a broken file has it, is the nearest that is."""
    return [None if np.isnan(value) else round(PARTS * value) for value in np.clip(values, 0, 1).tolist()]
