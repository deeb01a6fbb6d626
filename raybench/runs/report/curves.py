"""Precision-recall curves of a run as one drawing in SVG, from the files that it left in `curves/`.

Files of single image pairs or queries hold thousands of short curves, which no drawing can show; those are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.errors import DataError
from raybench.formats.parquet import read_parquet
from raybench.visible import in_html

MOST_CURVES = 12
MOST_POINTS = 200
SIDE, LEFT, BOTTOM, LEGEND = 360, 44, 34, 330  # px
COLOURS = ("#0a58ca", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#1b7c83", "#b35900", "#57606a")


@dataclass(frozen=True)
class DrawnCurve:
    """One curve with its name."""

    name: str
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]


def curves_of(out: str, files: Sequence[str]) -> list[DrawnCurve]:
    """The curves among a run's files; none if these are of single pairs or queries."""
    curves = []
    for name in [file for file in files if file.startswith("curves/")][:MOST_CURVES]:
        uri = storage.join(out, name)
        columns = read_parquet(storage.read(uri), uri)
        if {"pair", "query"} & columns.keys() or not {"recall", "precision"} <= columns.keys():
            return []
        if any(columns[key].dtype.kind != "f" for key in ("recall", "precision")):
            raise DataError(f"{uri}: recall and precision are no numbers; run again with --overwrite")
        if len(columns["recall"]):
            chosen = np.unique(np.linspace(0, len(columns["recall"]) - 1, MOST_POINTS).astype(np.int64))
            label = name.removeprefix("curves/").removesuffix(".parquet")
            curves.append(DrawnCurve(label, columns["recall"][chosen], columns["precision"][chosen]))
    return curves


def draw_curves(curves: Sequence[DrawnCurve]) -> str:
    """An `<svg>` with precision over recall and a legend; nothing if there are no curves."""
    if not curves:
        return ""
    width, height = LEFT + SIDE + 16 + LEGEND, SIDE + BOTTOM + 10
    parts = [_axes()]
    for number, curve in enumerate(curves):
        colour, dash = COLOURS[number % len(COLOURS)], "" if number < len(COLOURS) else " stroke-dasharray='5 3'"
        points = " ".join(
            f"{LEFT + SIDE * recall:.1f},{10 + SIDE * (1 - precision):.1f}"
            for recall, precision in zip(curve.recall.tolist(), curve.precision.tolist(), strict=True)
        )
        parts.append(f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='1.6'{dash}/>")
        top = 20 + 20 * number
        parts.append(
            f"<line x1='{LEFT + SIDE + 16}' x2='{LEFT + SIDE + 40}' y1='{top}' y2='{top}' stroke='{colour}' "
            f"stroke-width='2.5'{dash}/><text x='{LEFT + SIDE + 46}' y='{top + 4}'>{in_html(curve.name)}</text>"
        )
    return (
        f"<figure><figcaption><b>Precision over recall</b></figcaption><svg viewBox='0 0 {width} {height}' "
        f"width='{width}' font-size='12' font-family='sans-serif'>{''.join(parts)}</svg></figure>"
    )


def _axes() -> str:
    parts = []
    for tick in range(6):
        at = tick / 5
        x, y = LEFT + SIDE * at, 10 + SIDE * (1 - at)
        parts.append(f"<path d='M{LEFT} {y:.1f}H{LEFT + SIDE}M{x:.1f} 10V{10 + SIDE}' stroke='#e4e8ec'/>")
        parts.append(f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{100 * at:.0f}</text>")
        parts.append(f"<text x='{x:.1f}' y='{SIDE + 26}' text-anchor='middle'>{100 * at:.0f}</text>")
    parts.append(f"<text x='{LEFT + SIDE / 2}' y='{SIDE + 42}' text-anchor='middle'>recall, %</text>")
    return "".join(parts)
