"""The worst mistakes of the patch benchmarks as cases for the page: which patches were taken for one another.

Each run shows those of one row of its main table, at most one of a kind per sequence. They are drawn from the strips,
so there are none where a run began with vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import CASES, alt_text, cases_text, stored_cases, thumbnail
from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.benchmarks.patches import DescribedPatches, DescribedStrips
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.metrics.ranking import Flags
from raybench.parallel import in_parallel
from raybench.search.neighbours import ImagePairs, Matches
from raybench.search.pairs import Pairs
from raybench.sources.patches import Pictured

MOST_CASES = 8  # of a kind
PATCH_PX, PATCH_QUALITY = 96, 90  # published patches have 65 px and stay as they are


@dataclass(frozen=True)
class ShownPatch:
    """One patch of a case: its part in it, where it is in the strips, and whether it is right (None: neither)."""

    label: str
    image: int
    patch: int
    right: bool | None = None


@dataclass(frozen=True)
class PatchCase:
    """Patches beside each other; the case is of the sequence of the first."""

    kind: str
    caption: str
    patches: tuple[ShownPatch, ...]


@dataclass(frozen=True)
class PairsOfRow:
    """The pairs of one row of a table; `parts` are the places of their distances among all that were measured."""

    name: str
    pairs: Pairs
    positive: Flags
    parts: tuple[slice, ...]
    sequence: NDArray[np.int64] | None = None  # of each pair, where the keys of its patches do not say it


@dataclass(frozen=True)
class MatchedImagesOf:
    """Some image pairs of one row, and their numbers among the matches."""

    name: str
    numbers: tuple[int, ...]
    pairs: ImagePairs


def strips_of(patches: DescribedPatches) -> Pictured | None:
    """The pictures of patches, where a run began with them."""
    return patches.origin.strips if isinstance(patches.origin, DescribedStrips) else None


def draw_pairs(run: Run, strips: Pictured, row: PairsOfRow, distances: Mapped) -> tuple[ReportPicture, ...]:
    """The worst pairs of a row, in the run's folder and for the report."""
    run.write(CASES, pair_case_file, (row,), strips, distances)
    return tuple(stored_cases(run.out, {}, ()))


def draw_matches(run: Run, strips: Pictured, row: MatchedImagesOf, matches: Matches) -> tuple[ReportPicture, ...]:
    """The worst matches of a row, in the run's folder and for the report."""
    run.write(CASES, match_case_file, (row,), strips, matches)
    return tuple(stored_cases(run.out, {}, ()))


def pair_case_file(row: PairsOfRow, strips: Pictured, distances: Mapped) -> bytes:
    """Pairs of different points that are closest, and pairs of one point that are farthest apart."""
    values = distances.read(0)["values"]
    return cases_file(strips, row.name, pair_cases(row, np.concatenate([values[part] for part in row.parts]), strips))


def pair_cases(row: PairsOfRow, distances: NDArray[np.float64], strips: Pictured) -> Iterator[PatchCase]:
    """The worst pairs of each kind, one per sequence; a pair without a distance was skipped."""
    sequence = sequence_numbers(strips)[row.pairs.a_image] if row.sequence is None else row.sequence
    measured = ~np.isnan(distances)
    positives, negatives = (np.flatnonzero(flags & measured) for flags in (row.positive, ~row.positive))
    for at in first_of_each(negatives[np.argsort(distances[negatives], kind="stable")], sequence):
        passed = _share(distances[positives] > distances[at], "closer than {:.0%} of the true pairs")
        words = f"Two different points at distance {distances[at]:.4g}{passed}."
        yield PatchCase(
            "false alarm", words, _pair(row.pairs, at, f"another point, distance {distances[at]:.4g}", False)
        )
    for at in first_of_each(positives[np.argsort(-distances[positives], kind="stable")], sequence):
        passed = _share(distances[negatives] < distances[at], "farther than {:.0%} of the wrong pairs")
        words = f"The same point at distance {distances[at]:.4g}{passed}."
        yield PatchCase("missed", words, _pair(row.pairs, at, f"the same point, distance {distances[at]:.4g}", True))


def _share(flags: Flags, words: str) -> str:
    return f": {words.format(flags.mean())}" if len(flags) else ""


def _pair(pairs: Pairs, at: int, label: str, right: bool) -> tuple[ShownPatch, ...]:
    first = ShownPatch("patch", int(pairs.a_image[at]), int(pairs.a_patch[at]))
    return first, ShownPatch(label, int(pairs.b_image[at]), int(pairs.b_patch[at]), right)


def match_case_file(row: MatchedImagesOf, strips: Pictured, matches: Matches) -> bytes:
    """The surest wrong match of each image pair, and the patch whose true match stands furthest down."""
    return cases_file(strips, row.name, match_cases(row, matches))


def match_cases(row: MatchedImagesOf, matches: Matches) -> Iterator[PatchCase]:
    """Both kinds in turn, image pair by image pair; none of a pair without a mistake."""
    for found, a, b, given in zip(
        matches.read(row.numbers), row.pairs.a.tolist(), row.pairs.b.tolist(), row.pairs.truth, strict=True
    ):
        nearest, distance, closer = found["index"][:, 0], found["distance"][:, 0], found["closer"]
        truth = np.arange(len(nearest)) if given is None else given
        wrong = np.flatnonzero(nearest != truth)
        if not len(wrong):
            continue
        share = f"{1 - len(wrong) / len(nearest):.0%} of this image's {len(nearest)} patches are matched right"
        surest = int(wrong[distance[wrong].argmin()])
        lowest = int(wrong[closer[wrong].argmax()])
        chosen = {surest: "false alarm"} | ({lowest: "missed"} if lowest != surest else {})
        for patch, kind in chosen.items():
            place = f"number {closer[patch] + 1:,} of {len(truth):,}"
            words = f"Nearest by distance {distance[patch]:.4g} is another point; the true one is {place}. {share}."
            shown = (
                ShownPatch("patch", a, patch),
                ShownPatch(f"nearest, distance {distance[patch]:.4g}", b, int(nearest[patch]), False),
                ShownPatch(f"true, {place}", b, int(truth[patch]), True),
            )
            yield PatchCase(kind, words, shown)


def sequence_numbers(strips: Pictured) -> NDArray[np.int64]:
    """The sequence of each image, as a number."""
    _, number = np.unique([key.split("/")[0] for key in strips.keys], return_inverse=True)
    return number.astype(np.int64)


def first_of_each(order: NDArray[np.int64], group: NDArray[np.int64], most: int = MOST_CASES) -> list[int]:
    """The first places in this order that are of different groups.

    >>> first_of_each(np.array([3, 2, 0]), np.array([5, 5, 7, 7]))
    [3, 0]
    """
    _, first = np.unique(group[order], return_index=True)
    chosen: list[int] = order[np.sort(first)[:most]].tolist()
    return chosen


def cases_file(strips: Pictured, row: str, cases: Iterable[PatchCase]) -> bytes:
    """The cases with their patches, as a file's content; a patch that can't be read leaves its frame empty.

    Cases of which nothing can be read are left out: a run may rest on vectors in the store, long after the strips.
    """
    chosen = list(cases)
    wanted: dict[int, set[int]] = {}
    for case in chosen:
        for one in case.patches:
            wanted.setdefault(one.image, set()).add(one.patch)
    read = in_parallel(lambda item: _thumbnails(strips, *item), wanted.items())
    pixels = {place: jpeg for found in read for place, jpeg in found.items()}
    pictures = [_picture(case, strips, row, pixels) for case in chosen]
    return cases_text([picture for picture in pictures if any(panel.jpeg for panel in picture.panels)])


def _thumbnails(strips: Pictured, image: int, patches: set[int]) -> dict[tuple[int, int], bytes]:
    """The wanted patches of one strip; nothing of one that is gone or broken by now."""
    try:
        ((_, strip),) = strips.read(image, image + 1)
    except (DataError, FileNotFoundError):
        return {}
    there = [patch for patch in patches if patch < len(strip)]
    return {(image, patch): thumbnail(strip[patch], PATCH_PX, PATCH_QUALITY) for patch in there}


def _picture(case: PatchCase, strips: Pictured, row: str, pixels: dict[tuple[int, int], bytes]) -> ReportPicture:
    panels = []
    for one in case.patches:
        name = strips.patch_name(one.image, one.patch)
        jpeg = pixels.get((one.image, one.patch), b"")
        panels.append(PicturePanel(one.label if jpeg else f"{one.label}; can't be read", name, jpeg, one.right))
    unit = strips.keys[case.patches[0].image].split("/")[0]
    title = f"{case.kind.capitalize()}: {panels[0].name}"
    return ReportPicture(title, case.caption, b"", case.kind, unit, row, alt_text(panels), tuple(panels))


def worst_pairs(figures: NDArray[np.float64], images: NDArray[np.int32], strips: Pictured) -> list[int]:
    """The image pairs with the lowest figures, one per sequence."""
    return first_of_each(np.argsort(figures, kind="stable"), sequence_numbers(strips)[images])
