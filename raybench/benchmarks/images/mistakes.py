"""The worst mistakes of copy detection as pictures: what was matched wrongly, and what was not found.

Sheets in `pictures/`, each row a case, each picture with words below it; and the same cases for the page (see
`benchmarks.cases`). There are none where a run began with vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import CASES, alt_text, cases_text, parsed_cases, stored_cases, thumbnail
from raybench.benchmarks.images.figures import Candidates, CodecResults, relevant_results
from raybench.benchmarks.images.sets import ImageSet, PictureSet
from raybench.benchmarks.images.sheets import Panel, match_sheet
from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import Predictions, TruePairs
from raybench.metrics.partials import NO_REFERENCE
from raybench.table import row_name

MOST_CASES = 8  # of a kind
FALSE_ALARMS, MISSED = "false_alarms", "missed"


@dataclass(frozen=True)
class Case:
    """A query, what was found for it and what is true of it."""

    kind: str
    unit: str
    caption: str
    panels: tuple[Panel, ...]

    def picture(self, row: str) -> ReportPicture:
        """The same for the page, with small images."""
        panels = tuple(
            PicturePanel(
                one.label if one.image is not None else f"{one.label}; the image can't be read",
                one.name,
                thumbnail(one.image),
                one.right,
            )
            for one in self.panels
        )
        title = f"{self.kind.capitalize()}: {self.unit}"
        return ReportPicture(title, self.caption, b"", self.kind, self.unit, row, alt_text(panels), panels)


@dataclass(frozen=True)
class Sheet:
    """The sheet of one kind of cases, by its name, and its place among what was drawn."""

    name: str
    place: int


@dataclass(frozen=True)
class Threshold:
    """The score from which on matches are taken, at a precision of 90%; nan where no score reaches that."""

    score: float

    def words(self, score: float) -> str:
        """Where a score stands to it."""
        if np.isnan(self.score):
            return ""
        side = "above" if score >= self.score else "below"
        return f", {side} the threshold for precision 90% ({self.score:.4g})"


@dataclass(frozen=True)
class Database:
    """What Copydays searches, one behind the other: originals by their index among all images, then distractors."""

    images: PictureSet
    originals: NDArray[np.int64]
    distractors: PictureSet | None

    def panel(self, label: str, index: int, right: bool) -> Panel:
        if self.distractors is None or index < len(self.originals):
            return set_panel(label, self.images, int(self.originals[index]), right)
        return set_panel(label, self.distractors, index - len(self.originals), right)


def draw_mistakes(
    run: Run,
    candidates: Sequence[Candidates],
    truth: TruePairs,
    queries: ImageSet,
    references: ImageSet,
    threshold: Threshold,
) -> list[ReportPicture]:
    """The worst mistakes among candidates of one variant, as files and for the report; none of vectors on disk."""
    if not candidates or not isinstance(queries, PictureSet) or not isinstance(references, PictureSet):
        return []
    if not queries.source.is_there:
        return []
    kinds = (FALSE_ALARMS, MISSED)
    drawn = run.each(drawn_mistakes, kinds, candidates[0], truth, queries, references, threshold, version=3)
    return written_cases(run, kinds, drawn)


def draw_missed(
    run: Run, results: Sequence[CodecResults], truth: TruePairs, block: NDArray[np.int64], database: Database
) -> list[ReportPicture]:
    """The copies of one block whose originals stand furthest down by one codec, as a file and for the report."""
    if not results or not database.images.source.is_there:
        return []
    return written_cases(
        run, (MISSED,), run.each(drawn_missed, (MISSED,), results[0], truth, block, database, version=1)
    )


def written_cases(run: Run, kinds: Sequence[str], drawn: PerItem) -> list[ReportPicture]:
    """Files of what was drawn: a sheet of each kind that has cases, and the cases of all kinds; read back."""
    seen = run.read_each(drawn)
    sheets = [Sheet(kind, place) for place, kind in enumerate(kinds) if len(seen[place]["sheet"])]
    if sheets:
        run.write("pictures/{name}.jpg", sheet_file, sheets, drawn.whole)
    run.write(CASES, cases_file, ("the cases",), drawn.whole)
    return stored_cases(run.out, {}, ())


def sheet_file(sheet: Sheet, drawn: Mapped) -> bytes:
    """The sheet of one kind of cases."""
    return drawn.read(sheet.place)["sheet"].tobytes()


def cases_file(_: str, drawn: Mapped) -> bytes:
    """The cases of all kinds, for the page."""
    texts = [drawn.read(shard.index)["cases"].tobytes() for shard in drawn.shards]
    return cases_text([case for text in texts for case in parsed_cases(text, CASES)])


def drawn_mistakes(
    kind: str,
    candidates: Candidates,
    truth: TruePairs,
    queries: PictureSet,
    references: PictureSet,
    threshold: Threshold,
) -> Arrays:
    """The worst cases of one kind, drawn: each image is read once for both of its pictures."""
    choose = false_alarms if kind == FALSE_ALARMS else missed_pairs
    cases = choose(candidates.read(), truth, queries, references, threshold)
    return drawn_sheet(cases, row_name(*candidates.variant.cells[:2]))


def drawn_missed(
    _: str, results: CodecResults, truth: TruePairs, block: NDArray[np.int64], database: Database
) -> Arrays:
    """The worst copies of one block, drawn."""
    return drawn_sheet(missed_originals(results, truth, block, database), row_name(results.name))


def drawn_sheet(cases: Sequence[Case], row: str) -> Arrays:
    """The sheet of these cases, and for the page the first of each query, if any of its images can be read."""
    seen = [case for case in cases if any(panel.image is not None for panel in case.panels)]
    first = {case.unit: number for number, case in reversed(list(enumerate(seen)))}
    pictures = [seen[number].picture(row) for number in sorted(first.values())]
    sheet, text = match_sheet([case.panels for case in cases]), cases_text(pictures)
    return {"sheet": np.frombuffer(sheet, np.uint8), "cases": np.frombuffer(text, np.uint8)}


def false_alarms(
    found: Predictions, truth: TruePairs, queries: PictureSet, references: PictureSet, threshold: Threshold
) -> list[Case]:
    """The wrong candidates with the best scores, each beside what is true of its query."""
    cases = []
    for at in _worst_wrong(found, truth).tolist():
        query, reference, score = int(found.query[at]), int(found.reference[at]), float(found.score[at])
        place = int((found.score > score).sum()) + 1
        words = f"Wrong match with score {score:.4g}, number {place:,} of all {len(found.score):,} candidates"
        panels = [
            set_panel("query", queries, query),
            set_panel(f"wrong, score {score:.4g}", references, reference, False),
        ]
        true, best = _best_match(found, truth, query)
        panels += [set_panel("true", references, index, True) for index in true[:1]]
        caption = f"{words}{threshold.words(score)}. {_truth_words(found, query, true, best)}"
        cases.append(Case("false alarm", queries.names[query], caption, tuple(panels)))
    return cases


def _worst_wrong(found: Predictions, truth: TruePairs) -> NDArray[np.int64]:
    """Where the wrong candidates with the best scores are."""
    wrong = np.flatnonzero(truth.places(found.query, found.reference) < 0)
    worst: NDArray[np.int64] = wrong[np.lexsort((found.reference[wrong], found.query[wrong], -found.score[wrong]))]
    return worst[:MOST_CASES]


def _best_match(found: Predictions, truth: TruePairs, query: int) -> tuple[list[int], float]:
    """The true references of a query, the best candidate among them first, and its score; -inf if none is one."""
    true = truth.reference[truth.query == query]
    own = np.flatnonzero((found.query == query) & np.isin(found.reference, true))
    if not len(own):
        return true.tolist(), -np.inf
    best = int(own[np.lexsort((found.reference[own], -found.score[own]))[0]])
    first = int(found.reference[best])
    return [first, *true[true != first].tolist()], float(found.score[best])


def _truth_words(found: Predictions, query: int, true: Sequence[int], best: float) -> str:
    """What became of the true match of a query, the best of several, to which a wrong one was found."""
    if not true:
        return "The query has no true match."
    if not np.isfinite(best):
        return f"{_not_there(len(true))} among the query's candidates."
    place = _before(found.score[found.query == query], best) + 1
    return f"{_match_words(len(true))} has score {best:.4g}, number {place} of this query."


def _match_words(true: int) -> str:
    return "The true match" if true == 1 else f"The best of {true:,} true matches"


def _not_there(true: int) -> str:
    return "The true match is not" if true == 1 else f"None of {true:,} true matches is"


def _before(scores: NDArray[np.float64], score: float) -> int:
    return int((scores > score).sum())


def missed_pairs(
    found: Predictions, truth: TruePairs, queries: PictureSet, references: PictureSet, threshold: Threshold
) -> list[Case]:
    """The best true pair of each query by rising score, those that are no candidates first, with what is before it.

    Queries whose first candidate is among the false alarms are left out: there both images are shown, too.
    """
    pair_of = truth.places(found.query, found.reference)
    score = np.full(len(truth), -np.inf)
    score[pair_of[pair_of >= 0]] = found.score[pair_of >= 0]
    order = np.lexsort((found.reference, -found.score, found.query))
    by_query = Predictions(found.query[order], found.reference[order], found.score[order])
    best = np.lexsort((np.arange(len(truth)), -score, truth.query))  # of equal ones the first
    best = best[np.flatnonzero(np.diff(truth.query, prepend=-1))]  # true pairs are by query
    alarms = _worst_wrong(found, truth)
    first = by_query.reference[np.searchsorted(by_query.query, found.query[alarms])]
    best = best[~np.isin(truth.query[best], found.query[alarms][first == found.reference[alarms]])]
    chosen = best[np.argsort(score[best], kind="stable")][:MOST_CASES].tolist()
    return [
        _missed_pair(by_query, truth, pair, float(score[pair]), (queries, references), threshold) for pair in chosen
    ]


def _missed_pair(
    found: Predictions,
    truth: TruePairs,
    pair: int,
    score: float,
    sets: tuple[PictureSet, PictureSet],
    threshold: Threshold,
) -> Case:
    """One true pair; candidates are by query, then falling score."""
    queries, references = sets
    own, true = int(truth.query[pair]), int(truth.reference[pair])
    start, stop = np.searchsorted(found.query, [own, own + 1])
    before = _before(found.score[start:stop], score)
    is_listed = bool(np.isfinite(score))
    label = f"true, after {before} others" if is_listed else "true, not among the candidates"
    place = f"number {before + 1} of the query's {stop - start} candidates, with score {score:.4g}"
    panels = [set_panel("query", queries, own), set_panel(label, references, true, True)]
    if stop > start and int(found.reference[start]) != true:
        first = f"first, score {found.score[start]:.4g}"
        panels.append(set_panel(first, references, int(found.reference[start]), False))
    true_count = int(np.count_nonzero(truth.query == own))
    where = f"{_not_there(true_count)} among the query's {stop - start} candidates."
    if is_listed:
        where = f"{_match_words(true_count)} is {place}{threshold.words(score)}."
    is_taken = is_listed and not before and not score < threshold.score
    kind = "right" if is_taken else "missed"
    return Case(kind, queries.names[own], where, tuple(panels))


def missed_originals(
    results: CodecResults, truth: TruePairs, block: NDArray[np.int64], database: Database
) -> list[Case]:
    """The copies of one block by the rank of their first original, those furthest down first."""
    top = results.read()
    rows = np.flatnonzero(np.isin(top.query, block))
    hit = relevant_results(truth, top.query[rows], top.reference[rows])
    before = np.where(hit.any(axis=1), hit.argmax(axis=1), top.reference.shape[1])
    cases = []
    for at in np.argsort(-before, kind="stable")[:MOST_CASES].tolist():
        query, first = int(top.query[rows[at]]), int(top.reference[rows[at], 0])
        true = int(truth.reference[truth.query == query][0])
        is_listed, nearest = bool(hit[at].any()), f"nearest, squared distance {top.distance[rows[at], 0]:.4g}"
        label = f"original, after {before[at]} others" if is_listed else "original, not among the nearest"
        count = int((top.reference[rows[at]] != NO_REFERENCE).sum())
        where = f"number {before[at] + 1} of the {count} nearest" if is_listed else f"not among the {count} nearest"
        panels = [set_panel("copy", database.images, query), database.panel(label, true, True)]
        if first not in (true, NO_REFERENCE):
            panels.append(database.panel(nearest, first, False))
        kind = "right" if is_listed and not before[at] else "missed"
        words = f"The original of this copy is {where} in the database."
        cases.append(Case(kind, database.images.names[query], words, tuple(panels)))
    return cases


def set_panel(label: str, images: PictureSet, index: int, right: bool | None = None) -> Panel:
    """An image of a set; one that is gone or broken by now leaves its frame empty."""
    return Panel(label, images.names[index], pixels_of(images, index), right)


def pixels_of(images: PictureSet, index: int) -> NDArray[np.uint8] | None:
    """An image of a set, if it can be read."""
    try:
        return images.source.decoded(index, images.source.read(index))
    except DataError:
        return None
