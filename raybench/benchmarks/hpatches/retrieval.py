"""HPatches 2017, patch retrieval: are the five other views of a patch found among distractors?

Follows the HPatches toolbox: for a query (a patch of `ref`) the pool is its five views at one noise level, then the
distractors (patches of `ref`) in file order without those of the query's own sequence, cut to the first k entries, so
that k counts the five. The sort is stable: at equal distance the views lead. Trapezoid AP for each k. Only the ranks of
the five views are needed, hence distractors that are closer are counted, never sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.hpatches.cases import FoundViews, retrieval_cases
from raybench.benchmarks.hpatches.inputs import (
    EVERY_NUMBER,
    NOISE_LEVELS,
    NUMBERS,
    HPatchesOptions,
    SplitPatches,
    job_notes,
    note_out_of_range,
    open_splits,
    read_folder,
)
from raybench.benchmarks.hpatches.views import (
    MEAN_WORDS,
    SEQUENCE_VIEWS,
    group_name,
    level_means,
    level_rows,
)
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, tie_tables, tied_figures, with_means
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.extract.trials import Trial
from raybench.formats import hpatches as files
from raybench.formats.hpatches import ReferencePatches
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.partials import Counts, Rows
from raybench.metrics.samples import FigureOf, MeanSample, Units
from raybench.search.count_closer import GroupedPatches, Search, count_closer
from raybench.search.pairs import Pairs, pair_distances
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of, row_name

QUERY_FILE, DISTRACTOR_FILE = "retr_queries_split-{}", "retr_distractors_split-{}"
POOL_SIZES = (100, 500, 1_000, 5_000, 10_000, 15_000, 20_000)
POSITIVES = len(NUMBERS) - 1  # of a query at one level: its views


@dataclass(frozen=True)
class SplitQueries:
    """The queries of one split, and the search for them."""

    split: str
    queries: ReferencePatches
    search: Search

    @property
    def name(self) -> str:
        return f"split-{self.split}"

    @property
    def places(self) -> tuple[FigureOf, ...]:
        """Where the figures of each level and pool stand in the main table."""
        rows = [row_name(self.split, noise, pool) for noise in NOISE_LEVELS for pool in POOL_SIZES]
        return tuple(FigureOf(row, figure.name) for row in rows for figure in FIGURES)

    def groups(self, view: str) -> dict[str, NDArray[np.int64]]:
        """The places of the queries of each group that has some."""
        own = np.array([group_name(name, view) for name in self.queries.sequences])[self.queries.sequence]
        return {str(name): np.flatnonzero(own == name) for name in np.unique(own)}


def prepare(job: Job[HPatchesOptions]) -> HPatchesRetrieval:
    """Read and check every file that the job rests on; raises all problems together."""
    problems = ProblemList()
    patterns = (f"{QUERY_FILE}.csv", f"{DISTRACTOR_FILE}.csv")
    folder = read_folder(job, patterns, problems)
    lists, digest = folder.read(patterns, files.read_reference_patches, problems)
    patches = open_splits(job, folder.splits, _numbers_needed(lists), problems)
    note_out_of_range(folder, lists, patches, problems)
    problems.check()
    splits, views = _laid_out(patches, lists, job.limit)
    notes = (note_of(FIGURES, MEAN_WORDS), *_pool_notes(splits), *job_notes(job, folder, "queries of each split"))
    return HPatchesRetrieval(patches, splits, views, {"tasks": digest, **patches.described.digests}, notes)


def _numbers_needed(lists: Mapping[str, ReferencePatches]) -> dict[str, frozenset[int]]:
    """Every image of the queries' sequences, `ref` of the distractors'."""
    needed = {name: frozenset({0}) for listed in lists.values() for name in listed.sequences}
    queries = [listed for name, listed in lists.items() if name.startswith(QUERY_FILE.format(""))]
    return needed | {name: EVERY_NUMBER for listed in queries for name in listed.sequences}


def _laid_out(
    patches: SplitPatches, lists: Mapping[str, ReferencePatches], limit: int | None
) -> tuple[tuple[SplitQueries, ...], Pairs]:
    """The queries of each split, and the pairs (query, view) of all of them, by query, level and number."""
    splits, pairs, first = [], [], 0
    for number, split in enumerate(patches.splits):
        queries = lists[QUERY_FILE.format(split.name)].kept(slice(limit))
        distractors = lists[DISTRACTOR_FILE.format(split.name)]
        images = patches.layout.images(number)
        group, own = (patches.layout.of(listed.sequences)[listed.sequence] for listed in (distractors, queries))
        references = GroupedPatches(images[group, 0, 0], distractors.patch, group)
        asked = GroupedPatches(images[own, 0, 0], queries.patch, own)
        splits.append(SplitQueries(split.name, queries, Search(asked, references, cuts_of_pools(own, group), first)))
        views = images[own, :, 1:].reshape(len(queries), -1)  # (queries, levels x numbers)
        image, patch = (np.repeat(values, views.shape[1]) for values in (asked.image, asked.patch))
        pairs.append((image, patch, views.reshape(-1), patch))
        first += len(queries)
    return tuple(splits), Pairs(*(np.concatenate(column) for column in zip(*pairs, strict=True)))


def cuts_of_pools(own: NDArray[np.int32], distractors: NDArray[np.int32]) -> NDArray[np.int64]:
    """(queries, pools): how far down the list of distractors the pool of each query reaches; both given by sequence."""
    cuts = np.empty((len(own), len(POOL_SIZES)), np.int64)
    for sequence in np.unique(own):
        usable = np.flatnonzero(distractors != sequence)
        ends = np.append(usable + 1, len(distractors))  # where so many usable ones are passed
        reach = np.minimum(np.array(POOL_SIZES) - POSITIVES - 1, len(usable))
        cuts[own == sequence] = ends[reach]
    return cuts


def _pool_notes(splits: Sequence[SplitQueries]) -> tuple[str, ...]:
    short = [one for one in splits if len(one.search.references) + POSITIVES < POOL_SIZES[-1]]
    return tuple(
        f"split {one.split}: {len(one.search.references):,} distractors; larger pools hold all there are."
        for one in short
    )


@dataclass(frozen=True)
class HPatchesRetrieval:
    """A job whose files were read and agree with each other. `views` are the pairs (query, view) of all splits."""

    patches: SplitPatches
    splits: tuple[SplitQueries, ...]
    views: Pairs
    inputs: dict[str, str]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        queries = sum(len(one.queries) for one in self.splits)
        distractors = sum(len(one.search.references) for one in self.splits)
        return f"{self.patches.split_names}: {queries:,} queries, {distractors:,} distractors"

    @property
    def trial(self) -> Trial:
        distractors = [one.search.references.image for one in self.splits]
        return self.patches.trial(np.concatenate([self.views.a_image, self.views.b_image, *distractors]))

    def execute(self, run: Run) -> Outcome:
        searches = [one.search for one in self.splits]
        distractors = [search.references.image for search in searches]
        features = self.patches.features(run, np.concatenate([self.views.a_image, self.views.b_image, *distractors]))
        distance = self.patches.described.distance
        near = run.fold(pair_distances(run, features, self.views, distance), Rows)
        closer = run.fold(count_closer(run, features, near, searches, distance), Counts)
        scores = run.each(score_queries, self.splits, near, closer, version=2)
        samples = run.each(sample_queries, self.splits, scores, version=1)
        write_samples(run, self.splits, samples)
        run.write("tables/per_query.parquet", query_ap_file, ("every query",), self.splits, scores.whole)
        found = run.read_each(scores)
        main = retrieval_table(self.splits, found, self.notes)
        views = [retrieval_view(view, self.splits, found) for view in SEQUENCE_VIEWS]
        seen = FoundViews(self.views, near, closer, scores.whole)
        pictures = retrieval_cases(run, self.patches, self.splits[0], POOL_SIZES[-1], features, seen)
        means = level_means(main, FIGURES)
        ties = tie_tables(run, with_means(_ties(self.splits, found), means))
        samples_of_run = RunSamples("sequences", (samples,), means)
        return Outcome(main, (*views, *ties), facts=self.patches.facts, pictures=pictures, samples=samples_of_run)


FIGURES = (
    Figure(
        "map",
        "mean over queries of the trapezoid AP over a pool of the five views and the first distractors (pool counts "
        "both)",
    ),
)
POOL_COLUMNS = ("noise", "pool", *columns_of(FIGURES))


def score_queries(split: SplitQueries, near: Mapped, closer: Mapped) -> Arrays:
    """The AP of each query of a split, level and pool, and their means over all queries and over groups of them.

    `near` holds the distances of the views of every split's queries, `closer` how many distractors are closer, and
    how many as near. Where these stood before the views, AP would be the worst.
    """
    rows = slice(split.search.first, split.search.first + len(split.queries))
    distances = near.read(0)["values"].reshape(-1, len(NOISE_LEVELS), POSITIVES)[rows]
    both = closer.read(0)["values"].reshape(-1, 2, len(NOISE_LEVELS), POSITIVES, len(POOL_SIZES))[rows]
    counts, equal = both[:, 0], both[:, 1]
    ap = pool_ap(distances, counts)
    means = {f"map_by_{view}": _means(ap, split.groups(view)) for view in SEQUENCE_VIEWS}
    mean, tied = ap.mean(axis=0), equal.any(axis=2).sum(axis=0)
    worst = pool_ap(distances, counts + equal).mean(axis=0) if tied.any() else mean
    return {"ap": ap, "map": mean, **means, "worst": worst.reshape(-1), "tied": tied.reshape(-1)}


def sample_queries(split: SplitQueries, scores: Arrays) -> Arrays:
    """The AP of a split's queries, at each level and pool, as a sample; queries of one sequence are not independent."""
    ap = scores["ap"]
    units = Units.plain(split.queries.sequences)
    unit = split.queries.sequence.astype(np.int32)
    return MeanSample(split.places, units, unit, ap.reshape(len(ap), -1)).to_arrays()


def _ties(splits: Sequence[SplitQueries], scores: Sequence[Arrays]) -> Iterator[TiedFigure]:
    """At equal distance views lead, so that the published figure is the best case; tied are queries."""
    for split, found in zip(splits, scores, strict=True):
        best = found["map"].reshape(-1)
        yield from tied_figures(split.places, best.tolist(), {**found, "best": best})


def pool_ap(distances: NDArray[np.float64], closer: NDArray[np.int64]) -> NDArray[np.float64]:
    """AP (queries, levels, pools) from the distances of views and the distractors of each pool before them.

    >>> pool_ap(np.array([[[0.2, 0.1]]]), np.array([[[[1], [0]]]])).tolist()  # the second view, a distractor, the first
    [[[0.7916666666666666]]]
    """
    order = np.argsort(distances, axis=2, kind="stable")
    before = np.arange(1, distances.shape[2] + 1)  # views up to each, itself included
    ranks = np.take_along_axis(closer, order[..., None], axis=2).swapaxes(2, 3) + before
    return ranking.trapezoid_ap_of_ranks(ranks, distances.shape[2])


def _means(ap: NDArray[np.float64], groups: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float64]:
    return np.stack([ap[places].mean(axis=0) for places in groups.values()])


def query_ap_file(_: str, splits: Sequence[SplitQueries], scores: Mapped) -> bytes:
    """The AP of every query, level and pool, as Parquet; there is one such file."""
    parts = [_per_query(split, scores.read(number)["ap"]) for number, split in enumerate(splits)]
    return write_parquet({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _per_query(split: SplitQueries, ap: NDArray[np.float64]) -> Arrays:
    query, level, pool = (axis.reshape(-1) for axis in np.indices(ap.shape))
    return {
        "split": np.full(ap.size, split.split),
        "query": query,
        "sequence": np.array(split.queries.sequences)[split.queries.sequence[query]],
        "patch": split.queries.patch[query],
        "noise": np.array(NOISE_LEVELS)[level],
        "pool": np.array(POOL_SIZES)[pool],
        "ap": ap.reshape(-1),
    }


def retrieval_table(splits: Sequence[SplitQueries], scores: Sequence[Arrays], notes: tuple[str, ...]) -> Table:
    """The main table, by split and pool."""
    rows: list[tuple[Cell, ...]] = []
    for split, found in zip(splits, scores, strict=True):
        rows += pool_rows((split.split,), found["map"])
    return Table("hpatches_retrieval", ("split", *POOL_COLUMNS), tuple(rows), fractions_of(FIGURES), notes)


def retrieval_view(view: str, splits: Sequence[SplitQueries], scores: Sequence[Arrays]) -> Table:
    """The same by groups of queries."""
    rows: list[tuple[Cell, ...]] = []
    for split, found in zip(splits, scores, strict=True):
        for group, means in zip(split.groups(view), found[f"map_by_{view}"], strict=True):
            rows += pool_rows((split.split, group), means)
    return Table(f"by_{view}", ("split", view, *POOL_COLUMNS), tuple(rows), fractions_of(FIGURES))


def pool_rows(group: tuple[str, ...], means: NDArray[np.float64]) -> Iterator[tuple[Cell, ...]]:
    """The rows of one group, pool by pool; `means` is (levels, pools)."""
    for pool, levels in zip(POOL_SIZES, means.T, strict=True):
        yield from level_rows(group, (pool,), levels[:, None])


BENCHMARK = Benchmark(
    name="hpatches-retrieval",
    options=HPatchesOptions,
    prepare=prepare,
    keys=("split", "noise", "pool"),
    figures=columns_of(FIGURES),
    fractions=fractions_of(FIGURES),
    gallery=stored_cases,
)
