"""Tables on a terminal: few rows, as wide as the terminal is, warnings in colour. Elsewhere they keep their full width.

A table that is too wide gets its headings broken at `_` and `-`, then its longest names shortened in the middle, and at
last stands as several blocks, each with the columns that name a row.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import click

from raybench.table import Cell, Table, warning_of
from raybench.visible import visible

MOST_ROWS = 30
LEAST_NAME_WIDTH = 14  # of a shortened name
MOST_INDENT = 0.6  # of a terminal's width, of lines that go on
GAP = "  "
WHOLE = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"  # for ` = ` while lines are broken
HEADING_PIECES = re.compile(r"[^_\- ]*[_\- ]?")


@dataclass(frozen=True)
class Column:
    """A column as it is shown: its heading and its cells, all of them text."""

    heading: tuple[str, ...]
    cells: tuple[str, ...]
    is_number: bool

    @property
    def width(self) -> int:
        return max(map(len, (*self.heading, *self.cells)), default=0)


def show_table(table: Table, rest_is_in: str = "", err: bool = False) -> None:
    """Print a table and its notes; of a long one the means or the first rows, if the rest is elsewhere."""
    for line in table_lines(table, rest_is_in, terminal_width(err)):
        click.echo(line, err=err)
    click.echo(err=err)


def terminal_width(err: bool = False) -> int | None:
    """The columns of the terminal that standard output, or error, goes to; None if it goes elsewhere."""
    stream = sys.stderr if err else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() else None


def fitted(text: str, width: int | None) -> str:
    """Text with its long lines broken at words, below their last column; as it is if there is no width to fit."""
    if width is None:
        return text
    whole = text.replace(" = ", WHOLE)
    return "\n".join(piece for line in whole.split("\n") for piece in _wrapped(line, width)).replace(WHOLE, " = ")


def table_lines(table: Table, rest_is_in: str = "", width: int | None = None) -> list[str]:
    """The lines of a table, at most so wide if a width is given; warnings are styled."""
    few = few_rows(table) if rest_is_in else table
    hidden = len(table.rows) - len(few.rows)
    columns = [_column(few, number) for number in range(len(few.columns))]
    blank = [_has_no_figure(row, columns) for row in few.rows]
    lines: list[str] = []
    for block in _blocks(columns, width):
        lines += [*([""] if lines else []), *_block_lines(block, blank)]
    if hidden:
        lines += _wrapped(f"… {hidden:,} more rows in {visible(rest_is_in)}", width)
    if any(blank):
        lines += [_warning(line) for line in _wrapped(_no_figure_words(few, blank), width)]
    for note in map(visible, table.notes):
        wrapped = _wrapped(note, width)
        lines += [_warning(line) for line in wrapped] if warning_of(note) else wrapped
    return lines


def few_rows(table: Table) -> Table:
    """The table itself if it is short; else its rows of means, or its first rows."""
    if len(table.rows) <= MOST_ROWS:
        return table
    means = [row for row in table.rows if "mean" in row]
    return dataclasses.replace(table, rows=tuple((means or table.rows)[:MOST_ROWS]))


def shortened(name: str, width: int) -> str:
    """A name with its middle left out.

    >>> shortened("PCAW512,L2norm,Flat", 12)
    'PCAW51…,Flat'
    """
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def _column(table: Table, number: int) -> Column:
    values = [row[number] for row in table.rows]
    is_number = bool(values) and all(isinstance(value, int | float | None) for value in values)
    cells = tuple(visible(row[number]) for row in table.shown())
    return Column((visible(table.columns[number]),), cells, is_number)


def _has_no_figure(row: Sequence[Cell], columns: Sequence[Column]) -> bool:
    """Whether a row has names and counts, but nothing that was measured."""
    figures = [
        cell for cell, column in zip(row, columns, strict=True) if column.is_number and not isinstance(cell, int)
    ]
    return bool(figures) and all(cell is None or cell != cell for cell in figures)  # NaN is unequal to itself


def _no_figure_words(table: Table, blank: Sequence[bool]) -> str:
    names = [
        " ".join(visible(cell) for cell in row if isinstance(cell, str))
        for row, is_blank in zip(table.rows, blank, strict=True)
        if is_blank
    ]
    return f"NO FIGURES: {'; '.join(names)} (see the notes)"


def _blocks(columns: list[Column], width: int | None) -> list[list[Column]]:
    """The columns in one block if they fit, or can be made to; else in several, names first in each."""
    if width is None or _total(columns) <= width:
        return [columns]
    columns = [_with_broken_heading(column) for column in columns]
    names = sum(1 for _ in _leading_names(columns))
    columns = _with_short_names(columns, names, _total(columns) - width)
    if _total(columns) <= width:
        return [columns]
    blocks = [columns[:names]]
    for column in columns[names:]:
        if len(blocks[-1]) > names and _total([*blocks[-1], column]) > width:
            blocks.append(columns[:names])
        blocks[-1] = [*blocks[-1], column]
    return blocks


def _leading_names(columns: Sequence[Column]) -> list[Column]:
    number = next((i for i, column in enumerate(columns) if column.is_number), len(columns))
    return list(columns[:number])


def _with_broken_heading(column: Column) -> Column:
    """A heading that is wider than its cells, in several lines."""
    (heading,) = column.heading
    room = max(map(len, column.cells), default=0)
    pieces = [piece for piece in HEADING_PIECES.findall(heading) if piece]
    room = max([room, *map(len, pieces)])
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1] + piece) > room:
            lines.append("")
        lines[-1] += piece
    return dataclasses.replace(column, heading=tuple(lines))


def _with_short_names(columns: list[Column], names: int, excess: int) -> list[Column]:
    """The columns with the widest names shortened, as far as needed and as far as they stay names."""
    columns = list(columns)
    for number in sorted(range(names), key=lambda i: -columns[i].width):
        column = columns[number]
        width = max(column.width - max(excess, 0), min(LEAST_NAME_WIDTH, column.width))
        excess -= column.width - width
        cells = tuple(shortened(cell, width) for cell in column.cells)
        columns[number] = dataclasses.replace(column, cells=cells)
    return columns


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)


def _block_lines(columns: Sequence[Column], blank: Sequence[bool]) -> list[str]:
    depth = max(len(column.heading) for column in columns)
    headings = [("",) * (depth - len(column.heading)) + column.heading for column in columns]
    lines = [_aligned(columns, line) for line in zip(*headings, strict=True)]
    lines.append(GAP.join("─" * column.width for column in columns))
    rows = zip(*(column.cells for column in columns), strict=True)
    return lines + [
        _warning(_aligned(columns, row)) if is_blank else _aligned(columns, row)
        for row, is_blank in zip(rows, blank, strict=True)
    ]


def _aligned(columns: Sequence[Column], cells: Sequence[str]) -> str:
    padded = [
        cell.rjust(column.width) if column.is_number else cell.ljust(column.width)
        for column, cell in zip(columns, cells, strict=True)
    ]
    return GAP.join(padded).rstrip()


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    columns = [gap.end() for gap in re.finditer(r"\S {2,}", text) if gap.end() <= MOST_INDENT * width]
    indent = " " * (columns[-1] if columns else len(text) - len(text.lstrip()) + 2)
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _warning(line: str) -> str:
    return click.style(line, fg="yellow")
