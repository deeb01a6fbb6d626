"""Table: what a benchmark returns and the only thing a report reads. A Figure is a column of it that was measured.

Values are kept at full precision; rounding to percent happens in `shown`, on the way to a person.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from raybench.visible import in_html, visible

LATEX_WORDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " "}
LOUD = re.compile(r"(?P<word>[A-Z]{2,}(?: [A-Z]{2,})*)(?=[: ])")  # how notes begin that nobody must miss
LEAST_LETTERS = 4  # of such words: `ROC` and `GPU` are no warnings

Cell = str | int | float | None


@dataclass(frozen=True)
class Figure:
    """What is measured: its column, what it is in words (none if another's words say it), and whether it is a share.

    It stands beside the function that computes it. A share is kept as a fraction of one and shown as percent.
    """

    name: str
    words: str = ""
    is_fraction: bool = True


def columns_of(figures: Iterable[Figure]) -> tuple[str, ...]:
    """The columns of figures, in order."""
    return tuple(figure.name for figure in figures)


def fractions_of(figures: Iterable[Figure]) -> frozenset[str]:
    """The columns that are shown as percent."""
    return frozenset(figure.name for figure in figures if figure.is_fraction)


def note_of(figures: Iterable[Figure], *further: str) -> str:
    """Figures in words, as the note below their table, with `further` words behind them.

    >>> note_of([Figure("ap", "TREC average precision"), Figure("ap_2nnr")], "mean: of all levels")
    'ap: TREC average precision; mean: of all levels.'
    """
    return "; ".join([*(f"{figure.name}: {figure.words}" for figure in figures if figure.words), *further]) + "."


def warning_of(note: str) -> str:
    """The words in capitals with which a note begins; nothing if it is no warning.

    >>> warning_of("NO FLOW: 3 pairs"), warning_of("LIMITED: only 5"), warning_of("AP: of all pairs")
    ('NO FLOW', 'LIMITED', '')
    """
    found = LOUD.match(note)
    return found["word"] if found and len(found["word"]) >= LEAST_LETTERS else ""


@dataclass(frozen=True)
class Table:
    """Rows under named columns. `fractions` are columns shown as percent; `notes` stand below the table."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    fractions: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return f"{self.name}.csv"

    def to_csv(self) -> str:
        """Full precision; an undefined value is an empty cell."""
        return csv_text([self.columns, *([_exact(cell) for cell in row] for row in self.rows)])

    def to_markdown(self) -> str:
        escape = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\r": " "})
        rows = [
            "| " + " | ".join(cell.translate(escape) for cell in row) + " |" for row in [self.columns, *self.shown()]
        ]
        lines = [rows[0], "|" + "---|" * len(self.columns), *rows[1:]]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def to_latex(self) -> str:
        escape = str.maketrans({character: f"\\{character}" for character in "_%&#${}"} | LATEX_WORDS)
        alignment = "".join("r" if self._is_number(i) else "l" for i in range(len(self.columns)))
        rows = [self.columns, *self.shown()]
        body = [" & ".join(cell.translate(escape) for cell in row) + r" \\" for row in rows]
        return "\n".join([rf"\begin{{tabular}}{{{alignment}}}", body[0], r"\hline", *body[1:], r"\end{tabular}"]) + "\n"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.to_html()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table for whoever speaks Arrow's C interface: pandas, polars, pyarrow, duckdb."""
        import pyarrow

        arrays = [_arrow_array([row[place] for row in self.rows]) for place in range(len(self.columns))]
        table = pyarrow.Table.from_arrays(arrays, names=list(self.columns))
        return table.__arrow_c_stream__(requested_schema)

    def to_html(self) -> str:
        """A `<table>` with everything escaped."""
        head = "".join(f"<th>{in_html(column)}</th>" for column in self.columns)
        kind = ["n" if self._is_number(i) else "t" for i in range(len(self.columns))]
        body = "".join(
            "<tr>" + "".join(f'<td class="{kind[i]}">{in_html(cell)}</td>' for i, cell in enumerate(row)) + "</tr>"
            for row in self.shown()
        )
        notes = "".join(f"<p class=note>{in_html(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_text(self) -> str:
        """Aligned columns for a terminal, fractions as percent with two decimals."""
        rows = [tuple(map(visible, row)) for row in [self.columns, *self.shown()]]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.rjust(width) if self._is_number(i) else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        rule = "  ".join("─" * width for width in widths)
        return "\n".join([lines[0], rule, *lines[1:], *map(visible, self.notes)]) + "\n"

    def shown(self) -> list[tuple[str, ...]]:
        """The rows as a person reads them."""
        return [
            tuple(self._shown(column, cell) for column, cell in zip(self.columns, row, strict=True))
            for row in self.rows
        ]

    def _shown(self, column: str, cell: Cell) -> str:
        if _is_undefined(cell):
            return "–"
        if isinstance(cell, float):
            return f"{100 * cell:.2f}" if column in self.fractions else f"{cell:.4g}"
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    def _is_number(self, column: int) -> bool:
        return all(isinstance(row[column], int | float | None) for row in self.rows)


@dataclass(frozen=True)
class FigureCell:
    """One figure of one row; `value` is None where it is undefined."""

    row: str
    figure: str
    value: float | None


def row_name(*cells: Cell) -> str:
    """What a row of a main table is called, by its key cells.

    >>> row_name("a", "e", 100)
    'a | e | 100'
    """
    return " | ".join(map(_exact, cells))


def figure_cells(table: Table, keys: Sequence[str], fractions: Collection[str]) -> list[FigureCell]:
    """Every figure of a table, row by row. The cells under `keys` name a row; what is no fraction is a count.

    >>> table = Table("t", ("split", "pool", "queries", "map"), (("a", 100, 7, 0.25), ("b", 100, 0, None)))
    >>> [(cell.row, cell.figure, cell.value) for cell in figure_cells(table, ("split", "pool"), {"map"})]
    [('a | 100', 'map', 0.25), ('b | 100', 'map', None)]
    """
    named = [table.columns.index(key) for key in keys]
    measured = [
        (place, column) for place, column in enumerate(table.columns) if column in fractions and column not in keys
    ]
    return [
        FigureCell(row_name(*(row[place] for place in named)), column, _number(row[place]))
        for row in table.rows
        for place, column in measured
    ]


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    r"""Lines of comma-separated cells; in quotes where a cell has a comma, a quote or a line end of any system.

    Python's own writer leaves a carriage return bare, which its reader then refuses.

    >>> csv_text([["a", "b,c"], ["d\r", "e"]])
    'a,"b,c"\n"d\r",e\n'
    """
    return "".join((",".join(map(_quoted, row)) or '""') + "\n" for row in rows)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell


def read_csv(name: str, text: str, fractions: frozenset[str] = frozenset()) -> Table:
    """A table that `to_csv` wrote: numbers become numbers again, empty cells None. Another text is a ValueError."""
    try:
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if not rows or not rows[0]:
        raise ValueError("no line with the names of columns")
    odd = next((number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])), None)
    if odd:
        raise ValueError(f"row {odd} has {len(rows[odd - 1])} cells, the first has {len(rows[0])}")
    return Table(name, tuple(rows[0]), tuple(tuple(_cell(cell) for cell in row) for row in rows[1:]), fractions)


def joined(name: str, label: str, tables: Sequence[tuple[str, Table]], notes: tuple[str, ...] = ()) -> Table:
    """Tables of one kind below each other, with a first column that says whose rows they are."""
    first = tables[0][1]
    rows = [(title, *row) for title, table in tables for row in table.rows]
    return Table(name, (label, *first.columns), tuple(rows), first.fractions, notes)


def _arrow_array(cells: Sequence[Cell]) -> Any:
    """A column of one type: text if any cell is, else float64 if any has a fraction, else int64; undefined is null."""
    import pyarrow

    defined = [cell for cell in cells if not _is_undefined(cell)]
    if any(isinstance(cell, str) for cell in defined):
        return pyarrow.array([None if _is_undefined(cell) else _exact(cell) for cell in cells], pyarrow.string())
    kind = pyarrow.int64() if defined and not any(isinstance(cell, float) for cell in defined) else pyarrow.float64()
    return pyarrow.array([None if _is_undefined(cell) else cell for cell in cells], kind)


def _exact(cell: Cell) -> str:
    if _is_undefined(cell):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) and not _is_undefined(cell) else None


def _is_undefined(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _cell(text: str) -> Cell:
    """A number only if it writes back as the same text: `001_005` is a name."""
    for kind in (int, float):
        try:
            value: Cell = kind(text)
        except ValueError:
            continue
        if repr(value) == text and text != "nan":
            return value
    return text or None
