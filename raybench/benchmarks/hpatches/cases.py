"""Which cases of the 2017 HPatches benchmarks the page shows: those of the first split at the hardest noise level."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import CASES, stored_cases
from raybench.benchmarks.hpatches.inputs import NOISE_LEVELS, NUMBERS, SplitPatches
from raybench.benchmarks.job import ReportPicture
from raybench.benchmarks.patch_cases import (
    MatchedImagesOf,
    PairsOfRow,
    PatchCase,
    ShownPatch,
    cases_file,
    draw_matches,
    draw_pairs,
    first_of_each,
    sequence_numbers,
    strips_of,
    worst_pairs,
)
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.patches import Features
from raybench.search.count_closer import Search, gathered
from raybench.search.nearest import Neighbours, nearest
from raybench.search.neighbours import ImagePairs, match_images
from raybench.search.pairs import Pairs
from raybench.sources.patches import Pictured
from raybench.table import row_name

if TYPE_CHECKING:
    from raybench.benchmarks.hpatches.matching import MatchedPair
    from raybench.benchmarks.hpatches.retrieval import SplitQueries
    from raybench.benchmarks.hpatches.verification import Ranking

HARDEST = len(NOISE_LEVELS) - 1
LISTS = 3  # of pairs, of a split at one level: positives, negatives within a sequence, others
SHOWN_WRONG = 2  # of a query's results


def verification_cases(
    run: Run, patches: SplitPatches, rankings: Sequence[Ranking], pairs: Iterable[Pairs], distances: Mapped
) -> tuple[ReportPicture, ...]:
    """The worst pairs of the first ranking at the hardest level; `pairs` are those of each list, in their order."""
    strips = strips_of(patches.described)
    if strips is None:
        return ()
    chosen = next(ranking for ranking in rankings if ranking.noise == NOISE_LEVELS[HARDEST])
    parts = (chosen.positive_at, chosen.negative_at)
    kept = list(itertools.islice(pairs, HARDEST * LISTS, HARDEST * LISTS + len(parts)))
    positive = np.repeat([True, False], [len(one) for one in kept])
    name = row_name(chosen.split, chosen.noise, chosen.negatives)
    return draw_pairs(run, strips, PairsOfRow(name, Pairs.joined(kept), positive, parts), distances)


def matching_cases(
    run: Run,
    patches: SplitPatches,
    tests: Sequence[MatchedPair],
    images: tuple[NDArray[np.int32], NDArray[np.int32]],
    features: Features,
    ap: NDArray[np.float64],
) -> tuple[ReportPicture, ...]:
    """The worst matches of the first split at the hardest level; these image pairs are matched again, a few."""
    strips = strips_of(patches.described)
    if strips is None:
        return ()
    split, noise = tests[0].split, NOISE_LEVELS[HARDEST]
    own = np.array([test.index for test in tests if (test.split, test.noise) == (split, noise)], np.int64)
    chosen = own[worst_pairs(ap[own], images[0][own], strips)]
    pairs = ImagePairs(images[0][chosen], images[1][chosen], (None,) * len(chosen))
    matches = match_images(run, features, pairs, 1, patches.described.distance, shard_size=None)
    row = MatchedImagesOf(row_name(split, noise), tuple(range(len(pairs))), pairs)
    return draw_matches(run, strips, row, matches)


@dataclass(frozen=True)
class FoundViews:
    """What a search found, for all queries: distances of their views, distractors that are closer, and AP."""

    views: Pairs
    near: Mapped
    closer: Mapped
    scores: Mapped

    def of(self, queries: list[int]) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
        """Images, distances and ranks (from 1) of the views of queries in the largest pool, the nearest first."""
        views = len(NUMBERS) - 1
        shape = (len(self.views) // (len(NOISE_LEVELS) * views), len(NOISE_LEVELS), views)
        images = self.views.b_image.reshape(shape)[queries, HARDEST]
        distances = self.near.read(0)["values"].reshape(shape)[queries, HARDEST]
        before = self.closer.read(0)["values"][:, 0].reshape(*shape, -1)[queries, HARDEST, :, -1]
        order = np.argsort(distances, axis=1, kind="stable")
        image, distance, closer = (np.take_along_axis(one, order, axis=1) for one in (images, distances, before))
        return image, distance, closer + np.arange(1, views + 1)


def retrieval_cases(
    run: Run, patches: SplitPatches, split: SplitQueries, pool: int, features: Features, found: FoundViews
) -> tuple[ReportPicture, ...]:
    """The worst queries of the first split, at the hardest level in the largest pool."""
    strips = strips_of(patches.described)
    if strips is None:
        return ()
    run.write(CASES, retrieval_case_file, (split,), pool, strips, features, patches.described.distance, found)
    return tuple(stored_cases(run.out, {}, ()))


def retrieval_case_file(
    split: SplitQueries, pool: int, strips: Pictured, features: Features, distance: str, found: FoundViews
) -> bytes:
    """The queries of the lowest AP, one per sequence."""
    cases = query_cases(split.search, strips, features, distance, found)
    return cases_file(strips, row_name(split.split, NOISE_LEVELS[HARDEST], pool), cases)


def query_cases(
    search: Search, strips: Pictured, features: Features, distance: str, found: FoundViews
) -> Iterator[PatchCase]:
    """Each query with the distractors that are nearest, and its views that were found first and last."""
    ap = found.scores.read(0)["ap"][:, HARDEST, -1]
    chosen = first_of_each(np.argsort(ap, kind="stable"), sequence_numbers(strips)[search.queries.image])
    wrong = nearest_distractors(search, chosen, features, distance)
    for at, others, image, distances, ranks in zip(chosen, wrong, *found.of(chosen), strict=True):
        patch = int(search.queries.patch[at])
        shown = [ShownPatch("query", int(search.queries.image[at]), patch)]
        for place, one in zip(others.place[0].tolist(), others.distance[0].tolist(), strict=True):
            reference = int(search.references.image[place]), int(search.references.patch[place])
            shown.append(ShownPatch(f"distractor, distance {one:.4g}", *reference, False))
        for view in (0, -1):
            label = f"view, number {ranks[view]:,}, distance {distances[view]:.4g}"
            shown.append(ShownPatch(label, int(image[view]), patch, True))
        words = f"Its {len(ranks)} views are numbers {', '.join(f'{rank:,}' for rank in ranks)}; AP {ap[at]:.1%}."
        yield PatchCase("missed", words, tuple(shown))


def nearest_distractors(search: Search, queries: list[int], features: Features, distance: str) -> list[Neighbours]:
    """The nearest distractors of some queries in their largest pools, none of a query's own sequence."""
    asked, among = search.queries, search.references
    rows = gathered(features, asked.image[queries], asked.patch[queries])
    reach = search.cuts[queries, -1]
    others = gathered(features, among.image[: reach.max()], among.patch[: reach.max()])
    found = []
    for row, query in enumerate(queries):
        usable = np.flatnonzero(among.group[: reach[row]] != asked.group[query])
        found.append(nearest(rows[row : row + 1], others[usable], SHOWN_WRONG, distance, places=usable))
    return found
