"""HPatches 2017, image matching: is the nearest patch of another image the same patch?

Follows the HPatches toolbox: in each test sequence `ref` against each of e1..t5. Each patch of `ref` is matched to its
nearest patch (the first of several at one distance); matches are ranked by distance (stable, in patch order) and the
trapezoid AP divides recall by the number of patches of `ref`, found or not.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.hpatches.cases import matching_cases
from raybench.benchmarks.hpatches.inputs import (
    EVERY_NUMBER,
    NOISE_LEVELS,
    NUMBERS,
    HPatchesOptions,
    SplitPatches,
    job_notes,
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
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.extract.patches import Features
from raybench.extract.trials import Trial
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.partials import Rows
from raybench.metrics.samples import FigureOf, MeanSample, Units
from raybench.metrics.ties import OpenDecisions, success_range, trapezoid_range
from raybench.search.by_torch import multiplier
from raybench.search.count_closer import uses_device
from raybench.search.distances import as_compared, row_distances
from raybench.search.nearest import Neighbours, nearest
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of, row_name

SEQUENCE_PAIRS = 15  # per shard, those of one sequence: some 40 MB of vectors, a second of one core


@dataclass(frozen=True)
class MatchedPair:
    """A test of one split: `ref` of a sequence against one of its images. `index` is its place among the matched."""

    split: str
    sequence: str
    noise: str
    number: int
    index: int


def prepare(job: Job[HPatchesOptions]) -> HPatchesMatching:
    """Read and check every file that the job rests on; raises all problems together."""
    problems = ProblemList()
    folder = read_folder(job, (), problems)
    needed = {name: EVERY_NUMBER for split in folder.splits for name in split.test[: job.limit]}
    patches = open_splits(job, folder.splits, needed, problems)
    problems.check()
    tests, reference, target = _laid_out(patches, job.limit)
    inputs = {"tasks": folder.digest, **patches.described.digests}
    notes = (note_of(FIGURES, MEAN_WORDS), *job_notes(job, folder, "test sequences of each split"))
    return HPatchesMatching(patches, tests, reference, target, inputs, notes)


def _laid_out(
    patches: SplitPatches, limit: int | None
) -> tuple[tuple[MatchedPair, ...], NDArray[np.int32], NDArray[np.int32]]:
    """The tests of all splits in order, and the image pairs that they need, each once."""
    places: dict[tuple[int, int], int] = {}
    tests = []
    for number, split in enumerate(patches.splits):
        images = patches.layout.images(number)
        for name in split.test[:limit]:
            own = images[patches.layout.place[name]]
            for level, noise in enumerate(NOISE_LEVELS):
                for image in NUMBERS[1:]:
                    pair = (int(own[level, 0]), int(own[level, image]))
                    tests.append(MatchedPair(split.name, name, noise, image, places.setdefault(pair, len(places))))
    reference, target = np.array(list(places), np.int32).T
    return tuple(tests), reference, target


@dataclass(frozen=True)
class HPatchesMatching:
    """A job whose files were read and agree with each other. Image pairs that splits share are matched once."""

    patches: SplitPatches
    tests: tuple[MatchedPair, ...]
    reference: NDArray[np.int32]
    target: NDArray[np.int32]
    inputs: dict[str, str]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        return f"{self.patches.split_names}: {len(self.reference):,} image pairs"

    @property
    def trial(self) -> Trial:
        return self.patches.trial(np.union1d(self.reference, self.target))

    def execute(self, run: Run) -> Outcome:
        features = self.patches.features(run, np.union1d(self.reference, self.target))
        described = self.patches.described
        on_device = uses_device(run, described.distance)
        stage = MatchImages(features, self.reference, self.target, described.distance, on_device)
        matched = run.map(stage, len(self.reference), described.job.shard_size or SEQUENCE_PAIRS)
        folded = run.fold(matched, Rows)
        splits = SplitTests.each(self.tests)
        samples = run.each(sample_pairs, splits, folded, version=1)
        write_samples(run, splits, samples)
        values = run.read(folded, 0)["values"]
        figures = values[:, 0]  # (image pairs, 2)
        main = mean_table("hpatches_matching", None, self.tests, figures, self.notes)
        views = [mean_table(f"by_{view}", view, self.tests, figures) for view in SEQUENCE_VIEWS]
        images = (self.reference, self.target)
        pictures = matching_cases(run, self.patches, self.tests, images, features, figures[:, 0])
        means = level_means(main, FIGURES)
        ties = tie_tables(run, with_means(_ties(splits, values), means))
        further = (*views, image_pair_table(self.tests, figures), *ties)
        of_run = RunSamples("sequences", (samples,), means)
        return Outcome(main, further, facts=self.patches.facts, pictures=pictures, samples=of_run)


@dataclass(frozen=True)
class MatchImages:
    """The stage that matches `ref` to other images: AP and success rate of each pair, and what ties do to them."""

    features: Features
    reference: NDArray[np.int32]
    target: NDArray[np.int32]
    distance: str
    on_device: bool  # no part of the digest: the bytes are the same

    name = "match-images"
    version = 2

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features, self.distance, self.reference, self.target)

    def load(self, shard: Shard) -> range:
        return range(shard.start, shard.stop)

    def compute(self, payload: range) -> Arrays:
        figures = [self._figures(int(self.reference[pair]), int(self.target[pair])) for pair in payload]
        return Rows.of(np.array(payload, np.int64), np.array(figures, np.float64)).to_arrays()

    def keys(self, shard: Shard) -> str:
        images = self.features.images
        return f"{images[self.target[shard.start]]} … {images[self.target[shard.stop - 1]]}"

    def _figures(self, reference: int, target: int) -> NDArray[np.float64]:
        """(4, 2): the figures, their worst and best case, and how many patches are tied."""
        whole = self.features.whole(reference), self.features.whole(target)
        queries, references, distance = as_compared(*whole, self.distance)
        found = nearest(queries, references, 2, distance, multiplier(self.on_device))
        true = row_distances(queries, references, distance)
        figures = matching_figures(found.place[:, 0], found.distance[:, 0])
        return np.array([figures, *matching_ties(found, true)])


PAIR_FIGURES = (Figure("ap"), Figure("success_rate"))
FIGURES = (
    Figure("map", "mean of the trapezoid AP of each image pair, recall divided by all patches of ref (found or not)"),
    Figure("success_rate", "share of patches whose nearest is the same patch"),
)


def matching_figures(index: NDArray[np.int64], distances: NDArray[np.float64]) -> tuple[float, float]:
    """AP and success rate of one image pair, from the nearest patch of each patch of `ref` and its distance.

    >>> matching_figures(np.array([0, 0]), np.array([1.0, 2.0]))  # one of two is right, and ranked first
    (0.5, 0.5)
    """
    right = index == np.arange(len(index))
    return ranking.trapezoid_ap(ranking.by_distance(distances, right), len(index)), float(right.mean())


def matching_ties(found: Neighbours, true: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 2): worst and best case, and tied patches, from the two nearest of each patch and its true distance."""
    nearest_one, right = found.distance[:, 0], found.place[:, 0] == np.arange(len(true))
    twice = (found.distance[:, 1:] == nearest_one[:, None]).any(axis=1)
    maybe = (true == nearest_one) & (twice | ~right)
    decisions = OpenDecisions(np.unique(nearest_one, return_inverse=True)[1], right & ~maybe, maybe)
    ranges = trapezoid_range(decisions), success_range(decisions)
    tied = decisions.tied, np.count_nonzero(maybe)
    return np.array([[one.worst for one in ranges], [one.best for one in ranges], tied])


@dataclass(frozen=True)
class SplitTests:
    """The tests of one split, by sequence, noise level and image."""

    name: str
    tests: tuple[MatchedPair, ...]

    @classmethod
    def each(cls, tests: Sequence[MatchedPair]) -> list[SplitTests]:
        """The tests of all splits, split by split."""
        own = itertools.groupby(tests, lambda test: test.split)
        return [cls(name, tuple(some)) for name, some in own]

    @property
    def index(self) -> NDArray[np.int64]:
        """(sequences, levels, images) of the matched pairs."""
        return np.array([test.index for test in self.tests]).reshape(-1, len(NOISE_LEVELS), len(NUMBERS) - 1)

    @property
    def places(self) -> tuple[FigureOf, ...]:
        """Where the figures of each level stand in the main table."""
        return tuple(FigureOf(row_name(self.name, noise), figure.name) for noise in NOISE_LEVELS for figure in FIGURES)


def sample_pairs(split: SplitTests, matched: Mapped) -> Arrays:
    """The figures of a split's image pairs as a sample: an item is an image of a sequence, at all levels."""
    figures = matched.read(0)["values"][:, 0][split.index]  # (sequences, levels, images, figures)
    sequences, _, images, _ = figures.shape
    values = figures.swapaxes(1, 2).reshape(sequences * images, -1)
    units = Units.plain(list(dict.fromkeys(test.sequence for test in split.tests)))
    return MeanSample(split.places, units, np.repeat(np.arange(sequences, dtype=np.int32), images), values).to_arrays()


def _ties(splits: Sequence[SplitTests], values: NDArray[np.float64]) -> Iterator[TiedFigure]:
    for split in splits:
        own = values[split.index]  # (sequences, levels, images, 4, figures)
        figures, worst, best, _ = own.mean(axis=(0, 2)).swapaxes(0, 1).reshape(4, -1)
        tied = own[..., 3, :].sum(axis=(0, 2)).reshape(-1).astype(np.int64)
        yield from tied_figures(split.places, figures.tolist(), {"worst": worst, "best": best, "tied": tied})


def mean_table(
    name: str,
    view: str | None,
    tests: Sequence[MatchedPair],
    figures: NDArray[np.float64],
    notes: tuple[str, ...] = (),
) -> Table:
    """The means over image pairs by split, group (if there is a view) and noise level."""
    groups: defaultdict[tuple[str, ...], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for test in tests:
        key = (test.split, group_name(test.sequence, view)) if view else (test.split,)
        groups[key][test.noise].append(test.index)
    rows: list[tuple[Cell, ...]] = []
    for group, members in groups.items():
        rows += level_rows(group, (), [figures[members[noise]].mean(axis=0) for noise in NOISE_LEVELS])
    columns = ("split", *([view] if view else []), "noise", *columns_of(FIGURES))
    return Table(name, columns, tuple(rows), fractions_of(FIGURES), notes)


def image_pair_table(tests: Sequence[MatchedPair], figures: NDArray[np.float64]) -> Table:
    """The figures of every image pair."""
    rows = [(test.split, test.sequence, test.noise, test.number, *figures[test.index].tolist()) for test in tests]
    columns = ("split", "sequence", "noise", "image", *columns_of(PAIR_FIGURES))
    return Table("per_pair", columns, tuple(rows), fractions_of(PAIR_FIGURES))


BENCHMARK = Benchmark(
    name="hpatches-matching",
    options=HPatchesOptions,
    prepare=prepare,
    keys=("split", "noise"),
    figures=columns_of(FIGURES),
    fractions=fractions_of((*FIGURES, *PAIR_FIGURES)),
    gallery=stored_cases,
)
