"""The queries of the Revisited protocol with the lowest AP, as pictures: what was ranked first, and which positive
stands last; a query whose AP is 1 is no mistake. By the setup `medium`, without distractors, and only where a run began
with images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raybench.benchmarks.images.mistakes import Case, drawn_sheet, set_panel, written_cases
from raybench.benchmarks.images.revisited_figures import RankedSet, flags, trapezoid_ap
from raybench.benchmarks.images.revisited_sets import RevisitedSet
from raybench.benchmarks.images.sets import PictureSet
from raybench.benchmarks.job import ReportPicture
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.extract.vector_set import VectorSet
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.metrics.query_ranks import QueryRanks
from raybench.search.set_search import search_sets
from raybench.table import row_name

SETUP = "medium"
WORST = "worst"
MOST_CASES = 6  # of a set
ALMOST_ONE = 1 - 1e-9  # sums of shares may fall short of 1 by rounding


@dataclass(frozen=True)
class DrawnSet:
    """One set of pictures by the first codec: its ranks, and the nearest reference of each query."""

    ranked: RankedSet
    queries: PictureSet
    references: PictureSet
    nearest: Mapped

    @property
    def name(self) -> str:
        return f"{WORST}_{self.ranked.set_name}"


def draw_worst(
    run: Run,
    ranked: Sequence[RankedSet],
    sets: Sequence[RevisitedSet],
    vectors: Mapping[str, VectorSet],
    shard_size: int | None,
) -> tuple[ReportPicture, ...]:
    """The worst queries of each set as files and for the report; `vectors` are those that were ranked, by role."""
    by_name = {one.set_name: one for one in ranked}
    drawn = []
    for one in sets:
        queries, references = one.queries, one.references
        if not isinstance(queries, PictureSet) or not isinstance(references, PictureSet):
            continue
        if not queries.source.is_there:
            continue
        if one.name in by_name and len(by_name[one.name].labelled.pairs):
            searched = vectors[queries.role], vectors[references.role]
            device = "gpu" if run.gpus else "cpu"
            found = search_sets(run, *searched, 1, "ip", device=device, shard_size=shard_size)
            drawn.append(DrawnSet(by_name[one.name], queries, references, found.nearest))
    if not drawn:
        return ()
    return tuple(written_cases(run, [one.name for one in drawn], run.each(drawn_worst, drawn, version=2)))


def drawn_worst(one: DrawnSet) -> Arrays:
    """The worst queries of one set, drawn."""
    return drawn_sheet(worst_queries(one), row_name(one.ranked.set_name, SETUP))


def worst_queries(one: DrawnSet) -> list[Case]:
    """The queries with the lowest AP of those that have a positive and an AP below 1."""
    labelled = one.ranked.labelled
    right, junk = flags(labelled, SETUP)
    ranks = QueryRanks.of(labelled.pairs.query, one.ranked.read().before, right, junk)
    ap = trapezoid_ap(ranks, one.ranked.queries)
    top = TopK.from_arrays(one.nearest.read(0))
    nearest = dict(zip(top.query.tolist(), top.reference[:, 0].tolist(), strict=True))
    order = np.argsort(ap, kind="stable")[: min(MOST_CASES, int(np.count_nonzero(ap < ALMOST_ONE)))]
    return [_case(one, query, float(ap[query]), ranks, nearest.get(query, NO_REFERENCE)) for query in order.tolist()]


def _case(one: DrawnSet, query: int, ap: float, ranks: QueryRanks, first: int) -> Case:
    """A query, what was ranked first, and its positive that stands last."""
    labelled = one.ranked.labelled
    own = np.flatnonzero(ranks.query == query)
    last = int(labelled.pairs.reference[ranks.pair[own[-1]]])
    rank = int(ranks.rank[own[-1]]) + 1
    panels = [set_panel("query", one.queries, query)]
    if first not in (last, NO_REFERENCE):
        right = _verdict(one, query, first)
        panels.append(set_panel("first, junk" if right is None else "first", one.references, first, right))
    panels.append(set_panel(f"positive, number {rank:,}", one.references, last, True))
    found = f"{len(own):,} positives, the last is number {rank:,} of the ranking without junk"
    return Case(WORST, one.queries.names[query], f"AP {100 * ap:.2f} ({SETUP}); {found}.", tuple(panels))


def _verdict(one: DrawnSet, query: int, reference: int) -> bool | None:
    """Whether a reference is right for a query; None of junk."""
    place = int(one.ranked.labelled.pairs.places(np.array([query]), np.array([reference]))[0])
    right, junk = flags(one.ranked.labelled, SETUP)
    return False if place < 0 else None if junk[place] else bool(right[place])
