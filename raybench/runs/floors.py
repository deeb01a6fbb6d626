"""Floors: figures that a run must reach, for regression checks (`--fail-below`). They change nothing of a run.

Of a figure in which less is better, such as an error rate, the value is the most that it may be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raybench.errors import ConfigError, FigureBelow, quoted, suggestion
from raybench.metrics.error_rates import LOWER_IS_BETTER

if TYPE_CHECKING:
    from raybench.runs.result_file import MeasuredFigure

# A row's name may hold commas, so a floor ends behind its number and not at the first comma.
FLOOR = re.compile(r"\s*(?P<name>.+?)\s*=\s*(?P<least>[^=,]*?)\s*(?:,|$)")
EXPECTED = 'expected FIGURE=VALUE or ROW:FIGURE=VALUE, several with commas, such as "uAP=0.61"'


@dataclass(frozen=True)
class Floor:
    """The least value of a figure (the most, where less is better): in the row of this name, or in the best one."""

    row: str
    figure: str
    least: float


def floors_of(text: str) -> list[Floor]:
    """The floors that a text asks for; raises ConfigError.

    >>> floors_of("uAP=0.61, PCAW32,L2norm,Flat | 1.0[0,2]:recall-at-p90=0.5")[1]
    Floor(row='PCAW32,L2norm,Flat | 1.0[0,2]', figure='recall-at-p90', least=0.5)
    """
    found, place = [], 0
    while place < len(text):
        match = FLOOR.match(text, place)
        if match is None:
            raise ConfigError(f"--fail-below {quoted(text[place:])}: {EXPECTED}")
        row, _, figure = match["name"].rpartition(":")
        found.append(Floor(row.strip(), figure.strip(), _fraction(match["name"], match["least"])))
        place = match.end()
    return found


def check_floors(floors: Sequence[Floor], figures: Collection[str]) -> None:
    """That every floor is of a figure that there will be; raises ConfigError."""
    for floor in floors:
        if floor.figure not in figures:
            known = f"the figures are {', '.join(dict.fromkeys(figures))}"
            close = suggestion(floor.figure, figures)
            raise ConfigError(f"--fail-below: unknown figure {quoted(floor.figure)}{close}; {known}")


def refuse_below(floors: Sequence[Floor], found: Sequence[MeasuredFigure]) -> None:
    """Raise FigureBelow for floors that these figures do not reach; ConfigError for a row that there is not."""
    lines = [_shortfall(floor, found) for floor in floors]
    below = [line for line in lines if line]
    if below:
        raise FigureBelow(below)


def _shortfall(floor: Floor, found: Sequence[MeasuredFigure]) -> str:
    """How a floor is missed, in words; nothing if it is reached. An undefined figure reaches none."""
    rows = {one["row"]: one["value"] for one in found if one["figure"] == floor.figure}
    if floor.row and floor.row not in rows:
        known = f"the rows are {', '.join(quoted(row) for row in rows)}"
        raise ConfigError(f"--fail-below: unknown row {quoted(floor.row)}{suggestion(floor.row, rows)}; {known}")
    asked = {floor.row: rows[floor.row]} if floor.row else rows
    defined = {row: value for row, value in asked.items() if value is not None}
    if not defined:
        return f"{floor.figure} is undefined, expected at {_end(floor)} {floor.least}"
    lower = _end(floor) == "most"
    row, best = (min if lower else max)(defined.items(), key=lambda item: item[1])
    where = f"row {row}" if floor.row else f"the best row, {row}"
    if best <= floor.least if lower else best >= floor.least:
        return ""
    return f"{floor.figure} is {best:.6g} in {where}; expected at {_end(floor)} {floor.least}"


def _end(floor: Floor) -> str:
    """Whether its value is the most or the least that the figure may be."""
    return "most" if floor.figure in LOWER_IS_BETTER else "least"


def _fraction(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"--fail-below {quoted(f'{name}={text}')}: {quoted(text)} is no number; {EXPECTED}") from None
    if 1 < value <= 100:
        raise ConfigError(f"--fail-below {name}={text}: values are fractions; did you mean {name}={value / 100:g}?")
    if not 0 <= value <= 1:
        raise ConfigError(f"--fail-below {name}={text}: expected a fraction from 0 to 1")
    return value
