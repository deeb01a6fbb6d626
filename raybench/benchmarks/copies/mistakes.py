"""The worst mistakes of copy detection as pictures: what was matched wrongly, and what was not found.

Two sheets in `pictures/`, of which the report shows a copy. There are none where a run began with vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench import storage
from raybench.benchmarks.copies.match_sheets import Panel, match_sheet
from raybench.benchmarks.copies.scores import candidates_in
from raybench.benchmarks.copies.sets import ImageSet
from raybench.benchmarks.picture import Picture
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import FILE_BYTES, Mapped
from raybench.errors import DataError
from raybench.formats.images import decode_image
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import Predictions, TruePairs
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.table import Table

CASES = 8
SHEETS = {
    "pictures/false_alarms.jpg": ("False alarms", "wrong matches with the best scores, the worst mistake first"),
    "pictures/missed.jpg": ("Missed", "true matches that were found last or not at all"),
}
Shown = tuple[str, ImageSet, int, bool | None]  # a role, and which picture of which set


@dataclass(frozen=True)
class Mistakes:
    """The stage that draws the two sheets, from candidate pairs with scores."""

    pairs: Mapped
    truth: TruePairs
    queries: ImageSet
    references: ImageSet

    name = "mistakes"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        sets = (self.queries.digest, self.references.digest)
        return digest_of(self.name, self.version, self.pairs.digest, self.truth.query, self.truth.reference, *sets)

    def load(self, shard: Shard) -> list[list[Shown]]:
        found = candidates_in(self.pairs)
        return self._false_alarms(found) if shard.index == 0 else self._missed(found)

    def compute(self, payload: list[list[Shown]]) -> Arrays:
        return sheet_of(payload)

    def keys(self, shard: Shard) -> str:
        return list(SHEETS)[shard.index]

    def _false_alarms(self, found: Predictions) -> list[list[Shown]]:
        wrong = np.flatnonzero(self.truth.places(found.query, found.reference) < 0)
        worst = wrong[np.lexsort((found.reference[wrong], found.query[wrong], -found.score[wrong]))][:CASES]
        cases: list[list[Shown]] = []
        for at in worst.tolist():
            query, reference = int(found.query[at]), int(found.reference[at])
            role = f"wrong, score {found.score[at]:.4g}"
            cases.append([("query", self.queries, query, None), (role, self.references, reference, False)])
            cases[-1] += [("true", self.references, place, True) for place in self._true(query)[:1]]
        return cases

    def _missed(self, found: Predictions) -> list[list[Shown]]:
        """True pairs by the number of the query's candidates before them, those that are none of them first."""
        places = self.truth.places(found.query, found.reference)
        score = np.full(len(self.truth), -np.inf)
        score[places[places >= 0]] = found.score[places >= 0]
        order = np.lexsort((found.reference, -found.score, found.query))
        query, reference, scores = found.query[order], found.reference[order], found.score[order]
        cases: list[list[Shown]] = []
        for pair in np.argsort(score, kind="stable")[:CASES].tolist():
            own, true = int(self.truth.query[pair]), int(self.truth.reference[pair])
            start, stop = np.searchsorted(query, [own, own + 1])
            before = int((scores[start:stop] > score[pair]).sum())
            role = f"true, after {before} others" if np.isfinite(score[pair]) else "true, not among the candidates"
            cases.append([("query", self.queries, own, None), (role, self.references, true, True)])
            if stop > start and int(reference[start]) != true:
                cases[-1].append((f"first, score {scores[start]:.4g}", self.references, int(reference[start]), False))
        return cases

    def _true(self, query: int) -> list[int]:
        found: list[int] = self.truth.reference[self.truth.query == query].tolist()
        return found


@dataclass(frozen=True)
class MissedOriginals:
    """The stage that draws the copies of one block whose originals stand furthest down among the nearest."""

    nearest: Mapped
    truth: TruePairs
    block: tuple[int, ...]
    images: ImageSet
    database: tuple[tuple[ImageSet, tuple[int, ...]], ...]  # sets, with the places of theirs that are in it

    name = "missed-originals"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        truth = (self.truth.query, self.truth.reference, self.block)
        return digest_of(self.name, self.version, self.nearest.digest, *truth, self.images.digest)

    def load(self, shard: Shard) -> list[list[Shown]]:
        top = TopK.from_arrays(self.nearest.read(0))
        rows = np.flatnonzero(np.isin(top.query, self.block))
        flat = self.truth.places(np.repeat(top.query[rows], top.reference.shape[1]), top.reference[rows].reshape(-1))
        hit = (flat >= 0).reshape(len(rows), -1)
        rank = np.where(hit.any(axis=1), hit.argmax(axis=1), top.reference.shape[1])
        cases: list[list[Shown]] = []
        for at in np.argsort(-rank, kind="stable")[:CASES].tolist():
            query, first = int(top.query[rows[at]]), int(top.reference[rows[at], 0])
            true = int(self.truth.reference[self.truth.query == query][0])
            role = f"original, rank {rank[at]}" if hit[at].any() else "original, not among the nearest"
            cases.append([("copy", self.images, query, None), (role, *self._at(true), True)])
            if first not in (true, NO_REFERENCE):
                cases[-1].append(("nearest", *self._at(first), False))
        return cases

    def compute(self, payload: list[list[Shown]]) -> Arrays:
        return sheet_of(payload)

    def keys(self, shard: Shard) -> str:
        return "copies whose originals were not found"

    def _at(self, place: int) -> tuple[ImageSet, int]:
        for images, places in self.database:
            if place < len(places):
                return images, places[place]
            place -= len(places)
        raise IndexError(place)


def sheet_of(cases: Sequence[Sequence[Shown]]) -> Arrays:
    """A sheet's bytes; a picture that is gone or broken by now leaves its frame empty."""
    panels = [
        [Panel(role, images.names[place], _image(images, place), right) for role, images, place, right in case]
        for case in cases
    ]
    drawn = match_sheet(panels) if panels else b""
    return {FILE_BYTES: np.frombuffer(drawn, np.uint8)}


def _image(images: ImageSet, place: int) -> Any:
    try:
        return decode_image(images.picture(place), images.names[place])
    except DataError:
        return None


def draw_mistakes(run: Run, stage: Mistakes | MissedOriginals, names: Sequence[str]) -> tuple[list[str], list[Picture]]:
    """The sheets as files, and as pictures for the report."""
    run.export(stage, names)
    return list(names), pictures_in(run.out, names)


def pictures_in(out: str, names: Sequence[str]) -> list[Picture]:
    return [Picture(*SHEETS[name], data) for name in names if (data := storage.read(storage.join(out, name)))]


def gallery(out: str, _: dict[str, Any], __: Sequence[Table]) -> list[Picture]:
    """The sheets of a finished run, if it drew any."""
    return pictures_in(out, [name for name in SHEETS if storage.exists(storage.join(out, name))])
