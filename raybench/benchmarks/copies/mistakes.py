"""The worst mistakes of copy detection as pictures: what was matched wrongly, and what was not found.

Sheets in `pictures/`, of which the report shows a copy: each row a case, each picture with words below it. There are
none where a run began with vectors.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raybench import storage
from raybench.benchmarks.copies.figures import Candidates, CodecResults, relevant_results
from raybench.benchmarks.copies.sets import ImageSet, PictureSet
from raybench.benchmarks.job import ReportPicture
from raybench.engine.run import Run
from raybench.errors import DataError
from raybench.formats.images import decode_image
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import NO_REFERENCE
from raybench.table import Table
from raybench.visible import visible

CASES = 8
FALSE_ALARMS, MISSED = "pictures/false_alarms.jpg", "pictures/missed.jpg"
MISTAKE_SHEETS = {
    FALSE_ALARMS: ("False alarms", "wrong matches with the best scores, the worst mistake first"),
    MISSED: ("Missed", "true matches that were found last or not at all"),
}
PICTURE, WORDS_HEIGHT, GAP = (200, 150), 34, 12  # px
PER_LINE = 2  # cases beside each other
RIGHT_COLOUR, WRONG_COLOUR, OTHER_COLOUR = (26, 127, 55), (207, 34, 46), (87, 96, 106)


@dataclass(frozen=True)
class Panel:
    """One picture of a case: what it is, its name, and whether it is right (None: neither)."""

    label: str
    name: str
    image: NDArray[np.uint8] | None
    right: bool | None = None


@dataclass(frozen=True)
class Database:
    """What Copydays searches, one behind the other: originals by their index among all images, then distractors."""

    images: PictureSet
    originals: NDArray[np.int64]
    distractors: PictureSet | None

    def panel(self, label: str, index: int, right: bool) -> Panel:
        if self.distractors is None or index < len(self.originals):
            return _panel(label, self.images, int(self.originals[index]), right)
        return _panel(label, self.distractors, index - len(self.originals), right)


def draw_mistakes(
    run: Run, candidates: Sequence[Candidates], truth: TruePairs, queries: ImageSet, references: ImageSet
) -> list[ReportPicture]:
    """The worst mistakes among candidates of one variant, as files and for the report; none of vectors on disk."""
    if not candidates or not isinstance(queries, PictureSet) or not isinstance(references, PictureSet):
        return []
    if not queries.source.is_there:
        return []
    run.write(FALSE_ALARMS, false_alarms, candidates, truth, queries, references)
    run.write(MISSED, missed_pairs, candidates, truth, queries, references)
    return _pictures_in(run.out, (FALSE_ALARMS, MISSED))


def draw_missed(
    run: Run, results: Sequence[CodecResults], truth: TruePairs, block: NDArray[np.int64], database: Database
) -> list[ReportPicture]:
    """The copies of one block whose originals stand furthest down by one codec, as a file and for the report."""
    if not results or not database.images.source.is_there:
        return []
    run.write(MISSED, missed_originals, results, truth, block, database)
    return _pictures_in(run.out, (MISSED,))


def mistake_gallery(out: str, _: dict[str, Any], __: Sequence[Table]) -> list[ReportPicture]:
    """The sheets of a finished run, if it drew any."""
    return _pictures_in(out, [name for name in MISTAKE_SHEETS if storage.exists(storage.join(out, name))])


def _pictures_in(out: str, names: Sequence[str]) -> list[ReportPicture]:
    return [
        ReportPicture(*MISTAKE_SHEETS[name], data) for name in names if (data := storage.read(storage.join(out, name)))
    ]


def false_alarms(candidates: Candidates, truth: TruePairs, queries: PictureSet, references: PictureSet) -> bytes:
    """The wrong candidates with the best scores, each beside what is true of its query."""
    found = candidates.read()
    wrong = np.flatnonzero(truth.places(found.query, found.reference) < 0)
    worst = wrong[np.lexsort((found.reference[wrong], found.query[wrong], -found.score[wrong]))][:CASES]
    cases = []
    for at in worst.tolist():
        query, reference = int(found.query[at]), int(found.reference[at])
        label = f"wrong, score {found.score[at]:.4g}"
        true = truth.reference[truth.query == query].tolist()
        cases.append([_panel("query", queries, query), _panel(label, references, reference, False)])
        cases[-1] += [_panel("true", references, index, True) for index in true[:1]]
    return match_sheet(cases)


def missed_pairs(candidates: Candidates, truth: TruePairs, queries: PictureSet, references: PictureSet) -> bytes:
    """True pairs by rising score, those that are no candidates first, with the number of candidates before them."""
    found = candidates.read()
    pair_of = truth.places(found.query, found.reference)
    score = np.full(len(truth), -np.inf)
    score[pair_of[pair_of >= 0]] = found.score[pair_of >= 0]
    order = np.lexsort((found.reference, -found.score, found.query))
    query, reference, scores = found.query[order], found.reference[order], found.score[order]
    cases = []
    for pair in np.argsort(score, kind="stable")[:CASES].tolist():
        own, true = int(truth.query[pair]), int(truth.reference[pair])
        start, stop = np.searchsorted(query, [own, own + 1])
        before = int((scores[start:stop] > score[pair]).sum())
        label = f"true, after {before} others" if np.isfinite(score[pair]) else "true, not among the candidates"
        cases.append([_panel("query", queries, own), _panel(label, references, true, True)])
        if stop > start and int(reference[start]) != true:
            first = f"first, score {scores[start]:.4g}"
            cases[-1].append(_panel(first, references, int(reference[start]), False))
    return match_sheet(cases)


def missed_originals(results: CodecResults, truth: TruePairs, block: NDArray[np.int64], database: Database) -> bytes:
    """The copies of one block by the rank of their first original, those furthest down first."""
    top = results.read()
    rows = np.flatnonzero(np.isin(top.query, block))
    hit = relevant_results(truth, top.query[rows], top.reference[rows])
    rank = np.where(hit.any(axis=1), hit.argmax(axis=1), top.reference.shape[1])
    cases = []
    for at in np.argsort(-rank, kind="stable")[:CASES].tolist():
        query, first = int(top.query[rows[at]]), int(top.reference[rows[at], 0])
        true = int(truth.reference[truth.query == query][0])
        label = f"original, rank {rank[at]}" if hit[at].any() else "original, not among the nearest"
        cases.append([_panel("copy", database.images, query), database.panel(label, true, True)])
        if first not in (true, NO_REFERENCE):
            cases[-1].append(database.panel("nearest", first, False))
    return match_sheet(cases)


def _panel(label: str, images: PictureSet, index: int, right: bool | None = None) -> Panel:
    """An image of a set; one that is gone or broken by now leaves its frame empty."""
    name = images.names[index]
    try:
        pixels = decode_image(images.source.read(index), name, limits=images.source.limits)
        return Panel(label, name, pixels, right)
    except DataError:
        return Panel(label, name, None, right)


def match_sheet(cases: Sequence[Sequence[Panel]]) -> bytes:
    """A JPEG with all cases; nothing if there are none."""
    if not cases:
        return b""
    across = max(len(case) for case in cases)
    width, height = across * (PICTURE[0] + GAP) + GAP, PICTURE[1] + WORDS_HEIGHT + 2 * GAP
    lines = -(-len(cases) // PER_LINE)
    sheet = Image.new("RGB", (width * min(PER_LINE, len(cases)), height * lines), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=13)
    for number, case in enumerate(cases):
        left, top = width * (number % PER_LINE), height * (number // PER_LINE)
        for column, panel in enumerate(case):
            _draw(sheet, draw, font, panel, (left + GAP + column * (PICTURE[0] + GAP), top + GAP))
    written = io.BytesIO()
    sheet.save(written, "JPEG", quality=85)
    return written.getvalue()


def _draw(sheet: Image.Image, draw: ImageDraw.ImageDraw, font: object, panel: Panel, at: tuple[int, int]) -> None:
    colour = OTHER_COLOUR if panel.right is None else RIGHT_COLOUR if panel.right else WRONG_COLOUR
    box = (at[0] - 2, at[1] - 2, at[0] + PICTURE[0] + 1, at[1] + PICTURE[1] + 1)
    draw.rectangle(box, outline=colour, width=2)
    if panel.image is not None:
        picture = Image.fromarray(panel.image)
        picture.thumbnail(PICTURE)
        sheet.paste(picture, (at[0] + (PICTURE[0] - picture.width) // 2, at[1] + (PICTURE[1] - picture.height) // 2))
    draw.text((at[0], at[1] + PICTURE[1] + 3), panel.label, fill=colour, font=font)  # type: ignore[arg-type]
    draw.text((at[0], at[1] + PICTURE[1] + 18), visible(panel.name), fill="black", font=font)  # type: ignore[arg-type]
