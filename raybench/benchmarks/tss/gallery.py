"""The pictures of a TSS run: files below `pictures/` with `--visualize`, and its worst and best pairs for the report.

`pictures/GROUP/PAIR/` has what the kit draws (`flow1.png`, `warped1.png`, `foreground1.png`, …), `error1.png` and
`overview.jpg`; `pictures/GROUP.jpg` is the group's contact sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raybench import storage
from raybench.benchmarks.picture import Picture
from raybench.benchmarks.tss.pair_scores import Results
from raybench.benchmarks.tss.pictures import (
    SHEETS,
    DrawPairs,
    draw_pairs,
    drawn,
    export_contact_sheets,
    export_pictures,
    picture_names,
)
from raybench.benchmarks.tss.scoring import Rules
from raybench.benchmarks.tss.tables import Group
from raybench.benchmarks.tss.trees import (
    ResultSet,
    TruthSet,
    list_results,
    list_truth,
    look_at_results,
    look_at_truth,
    note_empty_results,
)
from raybench.engine.run import Run
from raybench.errors import DataError
from raybench.table import Table

EACH = 3  # worst and best pairs of a group in the report


def write_pictures(
    run: Run, truth: TruthSet, results: Results, rules: Rules, groups: Sequence[Group]
) -> tuple[list[str], list[Picture]]:
    """Draw every scored pair and a contact sheet a group; names of the files, and pictures for the report."""
    place = {pair.key: item for item, pair in enumerate(truth.pairs)}
    scored = [(pair.key, states) for group in groups for pair, states in zip(group.pairs, group.states, strict=True)]
    pictures = draw_pairs(run, DrawPairs(truth, results, rules, tuple(place[key] for key, _ in scored)))
    files = [(n, name) for n, (_, states) in enumerate(scored) for name in picture_names(*states.tolist())]
    written = export_pictures(run, pictures, files)
    number = {key: n for n, (key, _) in enumerate(scored)}
    ranked = {group.name: ranked_pairs(group) for group in groups if group.pairs}
    cells = {group: [(number[key], t5) for key, t5 in pairs] for group, pairs in ranked.items()}
    written += export_contact_sheets(run, pictures, cells)
    gallery = [
        Picture(title, caption, pictures.read(number[key], SHEETS[0]))
        for group, pairs in ranked.items()
        for title, caption, key in worst_and_best(group, pairs)
    ]
    return written, gallery


def ranked_pairs(group: Group) -> list[tuple[str, float]]:
    """Keys and T5 of a group's pairs, worst first."""
    pairs = [(pair.key, t5) for pair, t5 in zip(group.pairs, group.t5(), strict=True)]
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def worst_and_best(group: str, pairs: Sequence[tuple[str, float]]) -> list[tuple[str, str, str]]:
    """Title, caption and key of a group's worst pairs, worst first, then of its best; each pair once."""
    ranked = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    worst = ranked[:EACH]
    best = ranked[max(len(worst), len(ranked) - EACH) :][::-1]
    return [
        (f"{group}: {word} {n}", f"{key}, T5 {100 * t5:.2f} % over both directions", key)
        for word, own in (("worst", worst), ("best", best))
        for n, (key, t5) in enumerate(own, 1)
    ]


def gallery(out: str, arguments: dict[str, Any], tables: Sequence[Table]) -> list[Picture]:
    """Worst and best pairs of a finished run, drawn now from its data and results; raises InputError."""
    per_pair = next(table for table in tables if table.name == "per_pair")
    rows = [dict(zip(per_pair.columns, row, strict=True)) for row in per_pair.rows]
    figures: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        own = figures.setdefault(str(row["group"]), {}).setdefault(f"{row['group']}/{row['pair']}", [])
        own.append(float(row["T5"] or 0.0))
    asked = [
        chosen
        for group, pairs in figures.items()
        for chosen in worst_and_best(group, [(key, sum(values) / len(values)) for key, values in pairs.items()])
    ]
    truth, results = _opened(arguments["data"], arguments.get("results") or storage.join(out, "results"), asked)
    tool = "matlab" if arguments.get("compat") == "matlab" else "vc"
    rules = Rules(tool, bool(arguments.get("auto_flip")), bool(arguments.get("use_prec")))
    pictures = []
    for item, (title, caption, _) in enumerate(asked):
        pair = truth.pairs[item]
        files = drawn(pair, truth.images(item), truth.truth(item), results.result(item), rules, single=False)
        pictures.append(Picture(title, caption, files[SHEETS[0]]))
    return pictures


def _opened(data: str, results: str, asked: Sequence[tuple[str, str, str]]) -> tuple[TruthSet, ResultSet]:
    keys = [key for _, _, key in asked]
    true, found = list_truth(data), list_results(results)
    note_empty_results(found, keys)
    gone = [key for key in keys if key not in true.entries or key not in found.entries]
    if gone:
        raise DataError(f"{data}, {results}: {gone[0]} is no longer there ({len(gone)} such pairs)")
    pairs, files = look_at_truth(true, keys, images=True), look_at_results(found, keys)
    for listed in (true, found):
        for key in keys:
            if key in listed.problems:
                raise DataError(listed.problems[key][0])
    return TruthSet.of(true, [pairs[key] for key in keys], True, False), ResultSet.of(found, files, False)
