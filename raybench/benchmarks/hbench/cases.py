"""Which cases of the 2016 HPatches benchmarks the page shows: those of the task with the lowest figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import CASES, stored_cases
from raybench.benchmarks.hbench.image_pairs import MatchingTask
from raybench.benchmarks.hbench.pairs import PairTask
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
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.formats.hbench_retrieval import NO_PATCH, Codes, image_of, patch_of
from raybench.formats.shardfile import Arrays
from raybench.search.neighbours import ImagePairs, Matches, PoolQueries
from raybench.sources.patches import Pictured
from raybench.table import Cell

if TYPE_CHECKING:
    from raybench.benchmarks.hbench.classification import MeasuredPairs
    from raybench.benchmarks.hbench.matching import MatchedImages
    from raybench.benchmarks.hbench.pools import PoolTask
    from raybench.benchmarks.hbench.retrieval import SearchedPools

SHOWN_WRONG = 2  # of a query's results


def classification_cases(
    run: Run,
    origin: MeasuredPairs | None,
    tasks: Sequence[PairTask],
    rows: Sequence[tuple[Cell, ...]],
    distances: Mapped,
) -> tuple[ReportPicture, ...]:
    """The worst pairs of the hardest task, by the AP in its row."""
    strips = strips_of(origin.patches) if origin else None
    if origin is None or strips is None:
        return ()
    task = tasks[_lowest([row[3] for row in rows])]
    parts = tuple(slice(segment.start, segment.stop) for segment in task.segments)
    places = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    return draw_pairs(run, strips, PairsOfRow(task.name, origin.pairs.at(places), task.positive, parts), distances)


def matching_cases(
    run: Run,
    origin: MatchedImages | None,
    tasks: Sequence[MatchingTask],
    figures: Sequence[NDArray[np.float64]],
    matches: Matches,
) -> tuple[ReportPicture, ...]:
    """The worst matches of the hardest task, by the first figure of each image pair, its AP."""
    strips = strips_of(origin.patches) if origin else None
    if origin is None or strips is None:
        return ()
    hardest = _lowest([own[:, 0].mean() for own in figures])
    task = tasks[hardest]
    every, numbers = origin.pairs, np.array(task.numbers)
    chosen = worst_pairs(figures[hardest][:, 0], every.a[numbers], strips)
    own = numbers[chosen]
    pairs = ImagePairs(every.a[own], every.b[own], tuple(every.truth[number] for number in own.tolist()))
    return draw_matches(run, strips, MatchedImagesOf(task.name, tuple(own.tolist()), pairs), matches)


def retrieval_cases(
    run: Run,
    origin: SearchedPools | None,
    tasks: Sequence[PoolTask],
    means: Sequence[float],
    lists: PerItem,
    scores: PerItem,
) -> tuple[ReportPicture, ...]:
    """The queries of the hardest task with the lowest AP."""
    strips = strips_of(origin.patches) if origin else None
    if origin is None or strips is None:
        return ()
    hardest = _lowest(means)
    inputs = (origin.pools[hardest], strips, hardest, lists.whole, scores.whole)
    run.write(CASES, retrieval_case_file, (tasks[hardest],), *inputs)
    return tuple(stored_cases(run.out, {}, ()))


def retrieval_case_file(
    task: PoolTask, pool: PoolQueries, strips: Pictured, number: int, lists: Mapped, scores: Mapped
) -> bytes:
    """The worst queries of one task."""
    cases = query_cases(task, pool.images, strips, lists.read(number)["lists"], scores.read(number))
    return cases_file(strips, task.name, cases)


def query_cases(
    task: PoolTask, images: NDArray[np.int32], strips: Pictured, lists: Codes, scores: Arrays
) -> Iterator[PatchCase]:
    """The queries with the lowest AP, one per sequence: first wrong results, and the view that was found first."""
    queries, ap = task.content.queries, scores["patch_ap"]
    sequence = sequence_numbers(strips)[images[image_of(queries)]]
    for at in first_of_each(np.argsort(ap, kind="stable"), sequence):
        right, found = scores["patch"][at], lists[at, 1:]
        wrong = np.flatnonzero(~right & (found != NO_PATCH))[:SHOWN_WRONG].tolist()
        views = task.clusters[at][(task.clusters[at] != NO_PATCH) & (task.clusters[at] != queries[at])]
        first = int(right.argmax()) if right.any() else None
        shown = [_shown("query", int(queries[at]), images, None)]
        shown += [_shown(f"wrong, number {place + 1}", int(found[place]), images, False) for place in wrong]
        if first is not None:
            shown.append(_shown(f"first view, number {first + 1}", int(found[first]), images, True))
        missing = views[~np.isin(views, found)]
        if len(missing):
            shown.append(_shown(f"a view, not among the {len(found)}", int(missing[0]), images, True))
        words = f"{int(right.sum())} of {len(views)} views are among the {len(found)} nearest; AP {ap[at]:.1%}."
        yield PatchCase("missed", words, tuple(shown))


def _shown(label: str, code: int, images: NDArray[np.int32], right: bool | None) -> ShownPatch:
    place = np.array([code], np.int64)
    return ShownPatch(label, int(images[image_of(place)[0]]), int(patch_of(place)[0]), right)


def _lowest(figures: Sequence[Cell]) -> int:
    """The first of the lowest; one that does not exist is none."""
    values = np.array(figures, np.float64)
    return int(np.where(np.isnan(values), np.inf, values).argmin())
