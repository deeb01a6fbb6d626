"""HPatches 2017, image matching: is the nearest patch of another image the same patch?

Follows the HPatches toolbox: in each test sequence `ref` against each of e1..t5. Each patch of `ref` is matched to its
nearest patch (the first of several at one distance); matches are ranked by distance (stable, in patch order) and the
trapezoid AP divides recall by the number of patches of `ref`, found or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hpatches import inputs as hpatches
from raybench.benchmarks.hpatches.inputs import EVERY_NUMBER, LEVELS, NUMBERS, Patches, TaskFolder
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.errors import ProblemList
from raybench.extract.patches import Features
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.partials import Rows
from raybench.search.nearest import nearest
from raybench.table import Cell, Table

COLUMNS = ("split", "noise", "map", "success_rate")
FRACTIONS = frozenset(("map", "ap", "success_rate"))
PAIRS_PER_SHARD = 15  # one sequence: some 40 MB of vectors, a second of one core
NOTES = (
    "map: mean of the trapezoid AP of each image pair, recall divided by all patches of ref (found or not); "
    "success_rate: share of patches whose nearest is the same patch; mean: of the three noise levels.",
)


@dataclass(frozen=True)
class ImagePair:
    """A test of one split: `ref` of a sequence against one of its images. `index` is its place among the matched."""

    split: str
    sequence: str
    noise: str
    number: int
    index: int


@dataclass(frozen=True)
class Plan:
    """A job whose files were read and agree with each other. Image pairs that splits share are matched once."""

    patches: Patches
    tests: tuple[ImagePair, ...]
    reference: NDArray[np.int32]
    target: NDArray[np.int32]
    inputs: dict[str, str]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        return f"{self.patches.split_names}: {len(self.reference):,} image pairs"

    def execute(self, run: Run) -> Outcome:
        """From features to the tables, in one line of steps."""
        features = self.patches.features(run, np.union1d(self.reference, self.target))
        stage = MatchImages(features, self.reference, self.target, self.patches.distance)
        size = self.patches.job.shard_size or PAIRS_PER_SHARD
        figures = run.read(run.fold(run.map(stage, len(self.reference), size), Rows), 0)["values"]
        main = Table("hpatches_matching", COLUMNS, self._by_level(figures, lambda _: ()), FRACTIONS, self.notes)
        kinds = self._by_level(figures, lambda test: (hpatches.type_of(test.sequence),))
        by_type = Table("by_type", ("split", "type", *COLUMNS[1:]), kinds, FRACTIONS)
        sequences = self._by_level(figures, lambda test: (test.sequence,))
        by_sequence = Table("by_sequence", ("split", "sequence", *COLUMNS[1:]), sequences, FRACTIONS)
        return Outcome(main, (by_type, by_sequence, self._per_pair(figures)), facts=self.patches.facts)

    def _by_level(
        self, figures: NDArray[np.float64], group_of: Callable[[ImagePair], tuple[str, ...]]
    ) -> tuple[tuple[Cell, ...], ...]:
        """Means of (ap, success rate) by split, group and noise level, then over the levels."""
        groups: defaultdict[tuple[str, ...], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for test in self.tests:
            groups[test.split, *group_of(test)][test.noise].append(test.index)
        rows: list[tuple[Cell, ...]] = []
        for group, members in groups.items():
            levels = [figures[members[noise]].mean(axis=0) for noise in LEVELS]
            means = [*levels, np.mean(levels, axis=0)]
            rows += [(*group, noise, *m.tolist()) for noise, m in zip((*LEVELS, "mean"), means, strict=True)]
        return tuple(rows)

    def _per_pair(self, figures: NDArray[np.float64]) -> Table:
        rows = [
            (test.split, test.sequence, test.noise, test.number, *figures[test.index].tolist()) for test in self.tests
        ]
        return Table("per_pair", ("split", "sequence", "noise", "image", "ap", "success_rate"), tuple(rows), FRACTIONS)


def prepare(job: Job[hpatches.HPatchesOptions]) -> Plan:
    """Read and check every file that the job rests on; raises all problems together."""
    hpatches.check_inputs(job)
    problems = ProblemList()
    folder: TaskFolder | None = None
    patches: Patches | None = None
    with problems.noting():
        folder = hpatches.read_folder(job, (), problems)
    with problems.noting():
        splits = folder.splits if folder else ()
        needed = {name: EVERY_NUMBER for split in splits for name in split.test[: job.limit]}
        patches = hpatches.open_patches(job, splits, needed, problems)
    problems.check()
    assert folder is not None and patches is not None
    tests, reference, target = _laid_out(patches)
    inputs = {"tasks": folder.digest, **patches.digests}
    notes = (*NOTES, *hpatches.post_processing_notes(job), *hpatches.limit_notes(job, "test sequences of each split"))
    return Plan(patches, tests, reference, target, inputs, notes)


def _laid_out(patches: Patches) -> tuple[tuple[ImagePair, ...], NDArray[np.int32], NDArray[np.int32]]:
    """The tests of all splits in order, and the image pairs that they need, each once."""
    places: dict[tuple[int, int], int] = {}
    tests = []
    for number, split in enumerate(patches.splits):
        images = patches.layout.images(number)
        for name in split.test[: patches.job.limit]:
            own = images[patches.layout.place[name]]
            for level, noise in enumerate(LEVELS):
                for image in NUMBERS[1:]:
                    pair = (int(own[level, 0]), int(own[level, image]))
                    tests.append(ImagePair(split.name, name, noise, image, places.setdefault(pair, len(places))))
    reference, target = np.array(list(places), np.int32).T
    return tuple(tests), reference, target


@dataclass(frozen=True)
class MatchImages:
    """The stage that matches `ref` to other images: AP and success rate of each pair."""

    features: Features
    reference: NDArray[np.int32]
    target: NDArray[np.int32]
    distance: str

    name = "match-images"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        pairs = (self.reference, self.target)
        return digest_of(self.name, self.version, self.features.mapped.digest, self.distance, *pairs)

    def load(self, shard: Shard) -> range:
        return range(shard.start, shard.stop)

    def compute(self, payload: range) -> Arrays:
        figures = [self._figures(int(self.reference[pair]), int(self.target[pair])) for pair in payload]
        return Rows.of(np.array(payload, np.int64), np.array(figures, np.float64)).to_arrays()

    def keys(self, shard: Shard) -> str:
        images = self.features.images
        return f"{images[self.target[shard.start]]} … {images[self.target[shard.stop - 1]]}"

    def _figures(self, reference: int, target: int) -> tuple[float, float]:
        queries = self.features.whole(reference)
        found = nearest(queries, self.features.whole(target), 1, self.distance)
        index, distances = found.index[:, 0], found.distance[:, 0]
        correct = index == np.arange(len(queries))
        ranked = ranking.by_distance(distances, correct)
        return ranking.trapezoid_ap(ranked, len(queries)), float(correct.mean())


BENCHMARK = Benchmark(
    name="hpatches-matching",
    summary="HPatches 2017 image matching: trapezoid AP and success rate of nearest neighbours",
    needs=hpatches.NEEDS,
    options=hpatches.HPatchesOptions,
    prepare=prepare,
    fractions=FRACTIONS,
)
