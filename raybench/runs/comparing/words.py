"""A comparison for people, papers and programs: on a terminal, as Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import json
import math
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from raybench.metrics.bootstrap import CONFIDENCE
from raybench.metrics.error_rates import LOWER_IS_BETTER
from raybench.metrics.significance import LEVEL
from raybench.runs.comparing.compare import COLUMNS, Comparison
from raybench.table import LATEX_WORDS
from raybench.visible import visible

IN_MARKDOWN = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "&": "&amp;", "*": "\\*"})
IN_LATEX = str.maketrans({character: f"\\{character}" for character in "_%&#${}"} | LATEX_WORDS | {"|": "$|$"})


@dataclass(frozen=True)
class Line:
    """A line of a comparison's table, by column; numbers are fractions."""

    run: str
    row: str
    figure: str
    value: float | None
    low: float | None
    high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None
    p_holm: float | None
    group: str | None

    @property
    def outcome(self) -> str:
        """Against the baseline, in a word or two, by the p-value that is corrected for several runs."""
        if self.difference is None or self.p_holm is None:
            return ""
        if self.p_holm >= LEVEL or not self.difference:
            return "can't be told apart"
        return "better" if self._gain > 0 else "worse"

    @property
    def _gain(self) -> float:
        """The difference, turned round where less is better."""
        return -(self.difference or 0.0) if self.figure in LOWER_IS_BETTER else self.difference or 0.0

    @property
    def shown(self) -> str:
        """Percent; with half of the interval's width behind it."""
        if self.value is None:
            return "–"
        half = "" if self.low is None or self.high is None else f" ± {100 * (self.high - self.low) / 2:.2f}"
        return f"{100 * self.value:.2f}{half}"

    def verdict(self, baseline: str) -> str:
        """What that means, with numbers.

        >>> one = Line("hog", "Flat", "uAP", 0.612, 0.6, 0.62, 0.031, 0.02, 0.042, 0.002, 0.002, "a")
        >>> one.verdict("sift")
        'better than sift by 3.10 points (2.00 to 4.20), p = 0.002'
        """
        if self.value is None:
            return "has no value"
        if self.difference is None or self.p_holm is None:
            return "baseline" if self.run == baseline else "nothing to compare with"
        if not (self.difference or self.difference_low or self.difference_high):
            return f"no difference to {baseline}"
        sign = -1 if self.difference < 0 else 1
        low, high = sorted((self.difference_low or 0.0, self.difference_high or 0.0), key=lambda end: sign * end)
        size = f"by {_points(self.difference, sign)} points ({_points(low, sign)} to {_points(high, sign)})"
        word, p = "worse" if self._gain < 0 else "better", f"p = {_p(self.p_holm)}"
        if self.outcome == word:
            return f"{word} than {baseline} {size}, {p}"
        return f"{self.outcome} from {baseline}: {word} {size}, {p}"


def _points(value: float | None, sign: int = 1) -> str:
    """Percentage points; without a sign of its own where there is nothing."""
    return "–" if value is None else f"{round(sign * 100 * value, 2) + 0.0:.2f}"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


Block = list[Line]  # the lines of one row and figure, the best first


def blocks_of(comparison: Comparison) -> Iterator[Block]:
    """The lines of each row and figure, the best first."""
    lines = [Line(*row) for row in comparison.table.rows]  # type: ignore[arg-type]
    step = len(comparison.runs)
    for start in range(0, len(lines), step):
        yield sorted(lines[start : start + step], key=_rank)


def _rank(line: Line) -> float:
    """What falls to the best; undefined ones come last."""
    if line.value is None:
        return math.inf
    return line.value if line.figure in LOWER_IS_BETTER else -line.value


def shortened(comparison: Comparison) -> Comparison:
    """The same with runs that go by their path called by that part of it in which they differ."""
    paths = [name for name in dict.fromkeys(comparison.runs) if "/" in name]
    names = dict(zip(paths, differing_parts(paths), strict=True))
    rows = [(names.get(str(run), run), *rest) for run, *rest in comparison.table.rows]
    return replace(
        comparison,
        runs=tuple(names.get(run, run) for run in comparison.runs),
        baseline=names.get(comparison.baseline, comparison.baseline),
        table=replace(comparison.table, rows=tuple(rows)),
    )


def differing_parts(paths: Sequence[str]) -> list[str]:
    """Paths without the folders that all begin and end with.

    >>> differing_parts(["/runs/sift/hbench-matching", "/runs/orb/hbench-matching"])
    ['sift', 'orb']
    """
    if len(paths) < 2:
        return [path.rpartition("/")[2] for path in paths]
    parts = [path.split("/") for path in paths]
    start = len(posixpath.commonprefix(parts))
    end = len(posixpath.commonprefix([one[start:][::-1] for one in parts]))
    return ["/".join(one[start : len(one) - end]) or path for one, path in zip(parts, paths, strict=True)]


def to_text(comparison: Comparison) -> str:
    """For a terminal: every figure with a verdict in words for each run, the best first."""
    comparison = shortened(comparison)
    names, letters = ([str(row[place] or "") for row in comparison.table.rows] for place in (0, 11))
    name_width, letter_width = max(map(len, map(visible, names))), max(map(len, letters))
    figure_width = max(len(str(row[2])) for row in comparison.table.rows)
    lines, row = [], None
    for block in blocks_of(comparison):
        if block[0].row != row:
            row = block[0].row
            lines += ["", visible(row)]
        for number, line in enumerate(block):
            figure = line.figure if number == 0 else ""
            start = f"  {figure:<{figure_width}}  {visible(line.run):<{name_width}}"
            group = line.group or ""
            verdict = visible(line.verdict(comparison.baseline))
            lines.append(f"{start}  {line.shown:>14}  {group:<{letter_width}}  {verdict}")
    first = [visible(note) for note in comparison.notes if note.startswith("FEW")]  # before anybody reads a p-value
    return "\n".join([_about(comparison), *first, *lines, "", *_summary(comparison), *_notes(comparison)]) + "\n"


def _summary(comparison: Comparison) -> Iterator[str]:
    """Of each run in how many figures it is better or worse, where there are several."""
    step = len(comparison.runs)
    for number, run in enumerate(comparison.runs):
        lines = [Line(*row) for row in comparison.table.rows[number::step]]  # type: ignore[arg-type]
        outcomes = Counter(line.outcome for line in lines if line.outcome)
        if outcomes.total() > 1:
            counts = ", ".join(f"{word} in {count}" for word, count in sorted(outcomes.items()))
            yield visible(f"{run} against {comparison.baseline}, {outcomes.total()} figures: {counts}")


def _about(comparison: Comparison) -> str:
    drawn = f"{comparison.draws:,} draws of {comparison.units}, seed {comparison.seed}"
    return f"{comparison.benchmark}: {len(comparison.runs)} runs, {drawn}; baseline {visible(comparison.baseline)}"


def to_markdown(comparison: Comparison) -> str:
    """For a paper: a line per row and run, a column per figure, the best in bold, letters of groups behind."""
    comparison = shortened(comparison)

    def cell(line: Line, is_best: bool) -> str:
        value, _, rest = line.shown.partition(" ")
        shown = f"**{value}** {rest}".strip() if is_best else line.shown
        return f"{shown} <sup>{line.group}</sup>" if line.group else shown

    head, rows = _pivoted(comparison, cell, lambda text: visible(text).translate(IN_MARKDOWN))
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    rule = "|" + "---|" * 2 + "--:|" * (len(head) - 2)
    return "\n".join([lines[0], rule, *lines[1:], "", f"{_about(comparison)}.", *_notes(comparison)]) + "\n"


def to_latex(comparison: Comparison) -> str:
    """The same as a LaTeX `tabular`, what it shows in comments above."""
    comparison = shortened(comparison)

    def cell(line: Line, is_best: bool) -> str:
        value, _, rest = line.shown.partition(" ")
        shown = rf"\textbf{{{value}}} {rest}".strip() if is_best else line.shown
        return shown.replace("±", r"$\pm$") + (f"$^{{{line.group}}}$" if line.group else "")

    head, rows = _pivoted(comparison, cell, lambda text: visible(text).translate(IN_LATEX))
    body = [" & ".join(row) + r" \\" for row in (head, *rows)]
    begin = rf"\begin{{tabular}}{{ll{'r' * (len(head) - 2)}}}"
    comments = [f"% {note}" for note in (_about(comparison), *_notes(comparison))]
    return "\n".join([*comments, begin, r"\hline", body[0], r"\hline", *body[1:], r"\hline", r"\end{tabular}"]) + "\n"


def _notes(comparison: Comparison) -> list[str]:
    several = " over all pairs of runs; that of p is over the runs against the baseline" * (len(comparison.runs) > 2)
    return [
        f"Percent ± half the width of the middle {CONFIDENCE:.0%} of the draws. Runs that share a letter can't be told "
        f"apart at {LEVEL:.0%} (paired draws, two-sided, Holm's correction{several}).",
        *map(visible, comparison.notes),
    ]


def _pivoted(
    comparison: Comparison, cell: Callable[[Line, bool], str], escaped: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Names of columns and rows: the row, the run, and a cell for each figure; runs in the order they were named."""
    known = [Line(*row) for row in comparison.table.rows]  # type: ignore[arg-type]
    figures = list(dict.fromkeys(line.figure for line in known))
    step = len(comparison.runs)
    cells: dict[tuple[str, int, str], str] = {}
    for place, line in enumerate(known):
        block = known[place - place % step : place - place % step + step]
        best = min(block, key=_rank).value
        cells[line.row, place % step, line.figure] = cell(line, line.value is not None and line.value == best)
    rows = [
        [escaped(row), escaped(run), *(cells.get((row, number, figure), "") for figure in figures)]
        for row in dict.fromkeys(line.row for line in known)
        for number, run in enumerate(comparison.runs)
    ]
    return ["row", "run", *map(escaped, figures)], rows


def to_json(comparison: Comparison) -> str:
    """What was compared, and a record for each line of the table."""
    records = [dict(zip(COLUMNS, row, strict=True)) for row in comparison.table.rows]
    about = {
        "benchmark": comparison.benchmark,
        "runs": comparison.runs,
        "baseline": comparison.baseline,
        "units": comparison.units,
        "draws": comparison.draws,
        "seed": comparison.seed,
        "notes": comparison.notes,
    }
    return json.dumps({**about, "records": records}, indent=1) + "\n"


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "table": to_text,
    "csv": lambda comparison: comparison.table.to_csv(),
    "markdown": to_markdown,
    "latex": to_latex,
    "json": to_json,
}
