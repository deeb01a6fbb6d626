"""HPatches 2017, patch verification: do two patches show the same point? Listed pairs are ranked by distance.

Follows the HPatches toolbox: `balanced` is the ROC AUC of all positives and negatives, `imbalanced` the trapezoid AP of
all negatives and the first fifth of the positives (`int(0.2 * P)` lines of their list). Negatives stand before
positives and the sort is stable: among equal distances negatives lead.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.curves import curve_arrays, curve_file
from raybench.benchmarks.hpatches import inputs as hpatches
from raybench.benchmarks.hpatches.inputs import LEVELS, Patches, TaskFolder
from raybench.benchmarks.hpatches.pair_views import RankedLists, imbalanced_part, view_tables
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.pair_groups import PairSequences
from raybench.benchmarks.patches import read_files
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.formats import hpatches as files
from raybench.formats.hpatches import NumberedPairs
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.partials import Rows
from raybench.search.pairs import Pairs, pair_distances
from raybench.table import Cell, Table

COLUMNS = ("split", "noise", "negatives", "auc_balanced", "ap_imbalanced")
FRACTIONS = frozenset(COLUMNS[3:])
NEGATIVES = ("intra", "inter")
KINDS = {"positive": "verif_pos", "intra": "verif_neg_intra", "inter": "verif_neg_inter"}
FILES = tuple(f"{stem}_split-{{}}.csv" for stem in KINDS.values())
NOTES = (
    "auc_balanced: area under the ROC of all positives and negatives; ap_imbalanced: trapezoid AP of all negatives and "
    "the first 20% of the positives; mean: of the three noise levels.",
)


@dataclass(frozen=True)
class Ranking:
    """Positives and negatives that are ranked together: where their distances stand among all pairs of the run."""

    split: str
    noise: str
    negatives: str
    balanced: bool
    positive_at: tuple[int, int]
    negative_at: tuple[int, int]

    @property
    def name(self) -> str:
        return f"{self.split}-{self.noise}-{self.negatives}-{'balanced' if self.balanced else 'imbalanced'}"


@dataclass(frozen=True)
class Options(hpatches.HPatchesOptions):
    """Those of the 2017 benchmarks, and what is done with pairs that a list repeats."""

    dedup_pairs: bool = option(
        False, "count a pair that a list repeats once (published figures count every line)", "protocol"
    )


@dataclass(frozen=True)
class Plan:
    """A job whose files were read and agree with each other."""

    patches: Patches
    rankings: tuple[Ranking, ...]
    lists: tuple[RankedLists, ...]
    pairs: Pairs
    inputs: dict[str, str]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        lists = len(self.pairs) // len(LEVELS)
        return f"{self.patches.split_names}: {lists:,} pairs at {len(LEVELS)} noise levels"

    def execute(self, run: Run) -> Outcome:
        """From features to the table, in one line of steps."""
        features = self.patches.features(run, np.union1d(self.pairs.a_image, self.pairs.b_image))
        job = self.patches.job
        distances = run.fold(pair_distances(run, features, self.pairs, self.patches.distance, job.shard_size), Rows)
        scores = run.map(Scores(distances, self.rankings), len(self.rankings), 1)
        figures = [float(run.read(scores, index)["figure"][0]) for index in range(len(self.rankings))]
        curves = [f"curves/{ranking.name}.parquet" for ranking in self.rankings]
        names = tuple(ranking.name for ranking in self.rankings)
        run.export(Export("curves", scores.digest, partial(curve_file, scores), names), curves)
        main = Table("hpatches_verification", COLUMNS, _rows(self.rankings, figures), FRACTIONS, self.notes)
        return Outcome(main, view_tables(run, distances, self.lists), facts=self.patches.facts)


def prepare(job: Job[Options]) -> Plan:
    """Read and check every file that the job rests on; raises all problems together."""
    hpatches.check_inputs(job)
    problems = ProblemList()
    folder: TaskFolder | None = None
    patches: Patches | None = None
    seen: dict[str, str] = {}
    lists: dict[str, NumberedPairs] = {}
    with problems.noting():
        folder = hpatches.read_folder(job, FILES, problems)
        names = [pattern.format(split.name) for split in folder.splits for pattern in FILES]
        lists, seen = read_files(folder.uri, names, files.read_numbered_pairs, problems)
    with problems.noting():
        patches = hpatches.open_patches(job, folder.splits if folder else (), _needed(lists), problems)
    if folder and patches:
        for name, pairs in lists.items():
            file = storage.join(folder.uri, f"{name}.csv")
            for side in (
                (pairs.a_sequence, pairs.a_number, pairs.a_patch),
                (pairs.b_sequence, pairs.b_number, pairs.b_patch),
            ):
                hpatches.note_out_of_range(file, patches, pairs.sequences, side, problems)
    problems.check()
    assert folder is not None and patches is not None
    kept, notes = _kept(job, lists)
    rankings, laid_out = _laid_out(folder, patches, kept)
    notes = (*NOTES, *notes, *folder.notes, *hpatches.post_processing_notes(job))
    inputs = {"tasks": digest_of(folder.digest, seen), **patches.digests}
    ranked = _ranked_lists(rankings, kept)
    return Plan(patches, rankings, ranked, laid_out, inputs, (*notes, *hpatches.limit_notes(job, "pairs of each list")))


def _needed(lists: dict[str, NumberedPairs]) -> dict[str, frozenset[int]]:
    """The image numbers that the lists name, by sequence."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for pairs in lists.values():
        for sequence, number in ((pairs.a_sequence, pairs.a_number), (pairs.b_sequence, pairs.b_number)):
            width = files.MOST_NUMBER + 1
            for both in np.flatnonzero(np.bincount(sequence * width + number)).tolist():
                numbers[pairs.sequences[both // width]].add(both % width)
    return {name: frozenset(found) for name, found in numbers.items()}


def _kept(job: Job[Options], lists: dict[str, NumberedPairs]) -> tuple[dict[str, NumberedPairs], tuple[str, ...]]:
    """The lists as they count: without repetitions if the job says so, up to its limit; and what there is to note."""
    kept, again = {}, 0
    for name, pairs in lists.items():
        first = pairs.first_of_each()
        again += len(pairs) - len(first)
        unique = pairs.kept(first) if job.options.dedup_pairs else pairs
        kept[name] = unique.kept(slice(job.limit))
    what = "left out (--dedup-pairs)" if job.options.dedup_pairs else "counted, as published (see --dedup-pairs)"
    return kept, (f"{again:,} lines repeat a pair of their list and are {what}.",) if again else ()


def _laid_out(
    folder: TaskFolder, patches: Patches, lists: dict[str, NumberedPairs]
) -> tuple[tuple[Ranking, ...], Pairs]:
    """All pairs of the run, one behind the other by split, level and kind, and what is ranked from them."""
    rankings: list[Ranking] = []
    parts: list[tuple[NDArray[np.int32], ...]] = []
    start = 0
    for number, split in enumerate(folder.splits):
        images = patches.layout.images(number)
        for level, noise in enumerate(LEVELS):
            at = {}
            for kind, stem in KINDS.items():
                pairs = lists[f"{stem}_split-{split.name}"]
                place = patches.layout.of(pairs.sequences)
                a = images[place[pairs.a_sequence], level, pairs.a_number]
                b = images[place[pairs.b_sequence], level, pairs.b_number]
                parts.append((a, pairs.a_patch, b, pairs.b_patch))
                at[kind] = (start, start + len(pairs))
                start += len(pairs)
            first, stop = at["positive"]
            few = (first, first + imbalanced_part(stop - first))
            for kind in NEGATIVES:
                rankings.append(Ranking(split.name, noise, kind, True, at["positive"], at[kind]))
                rankings.append(Ranking(split.name, noise, kind, False, few, at[kind]))
    return tuple(rankings), Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _ranked_lists(rankings: tuple[Ranking, ...], lists: dict[str, NumberedPairs]) -> tuple[RankedLists, ...]:
    """What views group: the lists of each balanced ranking, with the sequences of their pairs."""
    of: dict[tuple[str, str], PairSequences] = {}
    for split in dict.fromkeys(r.split for r in rankings):
        own = {kind: lists[f"{stem}_split-{split}"] for kind, stem in KINDS.items()}
        names = sorted({name for pairs in own.values() for name in pairs.sequences})
        for kind, pairs in own.items():
            place = np.array([names.index(name) for name in pairs.sequences])
            of[split, kind] = PairSequences.of(names, place[pairs.a_sequence], place[pairs.b_sequence])
    return tuple(
        RankedLists(
            *(r.split, r.noise, r.negatives, r.positive_at, r.negative_at),
            *(of[r.split, "positive"], of[r.split, r.negatives]),
        )
        for r in rankings
        if r.balanced
    )


def _rows(rankings: tuple[Ranking, ...], figures: list[float]) -> tuple[tuple[Cell, ...], ...]:
    """A row a noise level, then their mean, by split and kind of negatives."""
    found = {(r.split, r.negatives, r.noise, r.balanced): f for r, f in zip(rankings, figures, strict=True)}
    rows: list[tuple[Cell, ...]] = []
    for split in dict.fromkeys(r.split for r in rankings):
        for kind in NEGATIVES:
            levels = [[found[split, kind, noise, balanced] for balanced in (True, False)] for noise in LEVELS]
            mean = np.mean(levels, axis=0).tolist()
            rows += [(split, noise, kind, *row) for noise, row in zip((*LEVELS, "mean"), [*levels, mean], strict=True)]
    return tuple(rows)


@dataclass(frozen=True)
class Scores:
    """The stage that measures: one figure and its curve points, a ranking a shard."""

    distances: Mapped
    rankings: tuple[Ranking, ...]

    name = "scores"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        layout = [(r.name, r.positive_at, r.negative_at) for r in self.rankings]
        return digest_of("hpatches-verification", self.version, self.distances.digest, layout)

    def load(self, shard: Shard) -> tuple[bool, NDArray[np.float64], NDArray[np.float64]]:
        ranking = self.rankings[shard.start]
        values = self.distances.read(0)["values"]
        return ranking.balanced, values[slice(*ranking.positive_at)], values[slice(*ranking.negative_at)]

    def compute(self, payload: tuple[bool, NDArray[np.float64], NDArray[np.float64]]) -> Arrays:
        balanced, positives, negatives = payload
        ranked = ranking.negatives_first(positives, negatives)
        figure = ranking.roc_auc(ranked) if balanced else ranking.trapezoid_ap(ranked)
        return {
            "figure": np.array([figure], np.float64),
            **curve_arrays(ranked),
        }

    def keys(self, shard: Shard) -> str:
        return self.rankings[shard.start].name


BENCHMARK = Benchmark(
    name="hpatches-verification",
    summary="HPatches 2017 patch verification: ROC AUC (balanced) and trapezoid AP (imbalanced) of listed pairs",
    needs=hpatches.NEEDS,
    options=Options,
    prepare=prepare,
    fractions=FRACTIONS,
)
