"""HPatches 2017, patch verification: do two patches show the same point? Listed pairs are ranked by distance.

Follows the HPatches toolbox: `balanced` is the ROC AUC of all positives and negatives, `imbalanced` the trapezoid AP of
all negatives and the first fifth of the positives (`int(0.2 * P)` lines of their list). Negatives stand before
positives and the sort is stable: among equal distances negatives lead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.curves import curve_arrays, curve_file
from raybench.benchmarks.hpatches.cases import verification_cases
from raybench.benchmarks.hpatches.inputs import (
    NOISE_LEVELS,
    HPatchesOptions,
    SplitPatches,
    job_notes,
    note_out_of_range,
    open_splits,
    read_folder,
)
from raybench.benchmarks.hpatches.views import MEAN_WORDS, SEQUENCE_VIEWS, groups_of, level_means, level_rows
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.pair_groups import RULE, PairSequences
from raybench.benchmarks.pair_rankings import RankedFigures, rank_sequence_pairs, ranking_ties
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, tie_tables, tied_figures, with_means
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.extract.trials import Trial
from raybench.formats import hpatches as files
from raybench.formats.hpatches import NumberedPairs
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking as metrics
from raybench.metrics.partials import Rows
from raybench.search.pairs import Pairs, pair_distances
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of, row_name

NEGATIVES = ("intra", "inter")
PAIR_FILES = {  # their stems, by kind of pairs; {} is the split's name
    "positive": "verif_pos_split-{}",
    "intra": "verif_neg_intra_split-{}",
    "inter": "verif_neg_inter_split-{}",
}
GROUP_COUNTS = ("pairs", "positives", "between")
IMBALANCED_SHARE = 0.2  # of the positives, the first of their list


@dataclass(frozen=True)
class VerificationOptions(HPatchesOptions):
    """Those of the 2017 benchmarks, and what is done with pairs that a list repeats."""

    dedup_pairs: bool = option(
        False, "count a pair that a list repeats once (published figures count every line)", "protocol"
    )


@dataclass(frozen=True)
class Ranking:
    """Positives and negatives that are ranked together: where their distances stand among all pairs of the run."""

    split: str
    noise: str
    negatives: str
    balanced: bool
    positive_at: slice
    negative_at: slice

    @property
    def name(self) -> str:
        return f"{self.split}-{self.noise}-{self.negatives}-{'balanced' if self.balanced else 'imbalanced'}"

    @property
    def figures(self) -> RankedFigures:
        row = row_name(self.split, self.noise, self.negatives)
        column, flavour = ("auc_balanced", "roc_auc") if self.balanced else ("ap_imbalanced", "trapezoid_ap")
        return RankedFigures(row, (column,), (flavour,))

    def sides(self, distances: Mapped) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The distances of its positives and negatives."""
        values = distances.read(0)["values"]
        return values[self.positive_at], values[self.negative_at]


def prepare(job: Job[VerificationOptions]) -> HPatchesVerification:
    """Read and check every file that the job rests on; raises all problems together."""
    problems = ProblemList()
    patterns = [f"{stem}.csv" for stem in PAIR_FILES.values()]
    folder = read_folder(job, patterns, problems)
    lists, digest = folder.read(patterns, files.read_numbered_pairs, problems)
    patches = open_splits(job, folder.splits, _numbers_named(lists), problems)
    note_out_of_range(folder, lists, patches, problems)
    problems.check()
    kept, repeated = _kept(job, lists)
    notes = (note_of(FIGURES, MEAN_WORDS), *repeated, *job_notes(job, folder, "pairs of each list"))
    inputs = {"tasks": digest, **patches.described.digests}
    return HPatchesVerification(patches, kept, _rankings(patches, kept), _sequences(patches, kept), inputs, notes)


def _numbers_named(lists: Mapping[str, NumberedPairs]) -> dict[str, frozenset[int]]:
    """The image numbers that the lists name, by sequence."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    width = files.MOST_NUMBER + 1
    for pairs in lists.values():
        for sequence, number, _ in pairs.sides:
            for both in np.flatnonzero(np.bincount(sequence * width + number)).tolist():
                numbers[pairs.sequences[both // width]].add(both % width)
    return {name: frozenset(found) for name, found in numbers.items()}


def _kept(
    job: Job[VerificationOptions], lists: Mapping[str, NumberedPairs]
) -> tuple[dict[str, NumberedPairs], tuple[str, ...]]:
    """The lists as they count: without repetitions if the job says so, up to its limit; and what there is to note."""
    kept, again = {}, 0
    for name, pairs in lists.items():
        first = pairs.first_of_each()
        again += len(pairs) - len(first)
        unique = pairs.kept(first) if job.options.dedup_pairs else pairs
        kept[name] = unique.kept(slice(job.limit))
    what = "left out (--dedup-pairs)" if job.options.dedup_pairs else "counted, as published (see --dedup-pairs)"
    return kept, (f"{again:,} lines repeat a pair of their list and are {what}.",) if again else ()


def _rankings(patches: SplitPatches, lists: Mapping[str, NumberedPairs]) -> tuple[Ranking, ...]:
    """What is ranked, where pairs stand one behind the other by split, level and kind."""
    rankings: list[Ranking] = []
    start = 0
    for split in patches.splits:
        for noise in NOISE_LEVELS:
            at = {}
            for kind, stem in PAIR_FILES.items():
                count = len(lists[stem.format(split.name)])
                at[kind] = slice(start, start + count)
                start += count
            rankings += [
                Ranking(split.name, noise, kind, balanced, at["positive"], at[kind])
                for kind in NEGATIVES
                for balanced in (True, False)
            ]
    return tuple(rankings)


def _pairs(patches: SplitPatches, lists: Mapping[str, NumberedPairs]) -> Iterator[Pairs]:
    """All pairs of the run, list by list, by split, level and kind."""
    for number, split in enumerate(patches.splits):
        images = patches.layout.images(number)
        for level in range(len(NOISE_LEVELS)):
            for stem in PAIR_FILES.values():
                pairs = lists[stem.format(split.name)]
                place = patches.layout.of(pairs.sequences)
                a = images[place[pairs.a_sequence], level, pairs.a_number]
                b = images[place[pairs.b_sequence], level, pairs.b_number]
                yield Pairs(a, pairs.a_patch, b, pairs.b_patch)


def _sequences(patches: SplitPatches, lists: Mapping[str, NumberedPairs]) -> dict[str, PairSequences]:
    """The sequences of the pairs of each list; the lists of a split count into the same names."""
    found = {}
    for split in patches.splits:
        own = [stem.format(split.name) for stem in PAIR_FILES.values()]
        names = sorted({name for stem in own for name in lists[stem].sequences})
        for stem in own:
            place = np.array([names.index(name) for name in lists[stem].sequences])
            found[stem] = PairSequences.of(names, place[lists[stem].a_sequence], place[lists[stem].b_sequence])
    return found


@dataclass(frozen=True)
class HPatchesVerification:
    """A job whose files were read and agree with each other."""

    patches: SplitPatches
    lists: Mapping[str, NumberedPairs]
    rankings: tuple[Ranking, ...]
    sequences: Mapping[str, PairSequences]  # of the pairs of each list
    inputs: dict[str, str]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        pairs = sum(len(listed) for listed in self.lists.values())
        return f"{self.patches.split_names}: {pairs:,} pairs at {len(NOISE_LEVELS)} noise levels"

    @property
    def trial(self) -> Trial:
        images = [np.union1d(pairs.a_image, pairs.b_image) for pairs in _pairs(self.patches, self.lists)]
        return self.patches.trial(np.concatenate(images))

    def execute(self, run: Run) -> Outcome:
        wanted = [np.union1d(pairs.a_image, pairs.b_image) for pairs in _pairs(self.patches, self.lists)]
        features = self.patches.features(run, np.unique(np.concatenate(wanted)))
        described = self.patches.described
        measured = pair_distances(
            run,
            features,
            Pairs.joined(_pairs(self.patches, self.lists)),  # held by nobody else once they are brought into order
            described.distance,
        )
        distances = run.fold(measured, Rows)
        ranked = run.each(rank_lists, self.rankings, self.sequences, distances, version=1)
        write_samples(run, self.rankings, ranked)
        scores = run.each(score_ranking, self.rankings, ranked, version=2)
        run.write("curves/{name}.parquet", curve_file, self.rankings, scores)
        scored = run.read_each(scores)
        main = verification_table(self.rankings, scored, self.notes)
        means = level_means(main, FIGURES)
        ties = tie_tables(run, with_means(_ties(self.rankings, scored), means))
        whole = [ranking for ranking in self.rankings if ranking.balanced]
        groups = run.each(score_groups, whole, self.sequences, distances, version=1)
        views = group_tables(whole, self.sequences, run.read_each(groups))
        pairs = _pairs(self.patches, self.lists)
        pictures = verification_cases(run, self.patches, self.rankings, pairs, distances)
        samples = RunSamples("sequences", (ranked,), means)
        return Outcome(main, (*views, *ties), facts=self.patches.facts, pictures=pictures, samples=samples)


FIGURES = (
    Figure("auc_balanced", "area under the ROC of all positives and negatives"),
    Figure("ap_imbalanced", "trapezoid AP of all negatives and the first 20% of the positives"),
)


def rank_lists(ranking: Ranking, sequences: Mapping[str, PairSequences], distances: Mapped) -> Arrays:
    """The pairs of one ranking by distance: negatives stand before positives in the order that ties keep."""
    positives, negatives = ranking.sides(distances)
    own, others = (sequences[PAIR_FILES[kind].format(ranking.split)] for kind in ("positive", ranking.negatives))
    few = np.arange(len(positives) if ranking.balanced else imbalanced_count(len(positives)))
    positive = np.arange(len(negatives) + len(few)) >= len(negatives)
    values = np.concatenate([negatives, positives[few]])
    return rank_sequence_pairs(ranking.figures, values, positive, others.joined(own.kept(few)))


def score_ranking(ranking: Ranking, ranked: Arrays) -> Arrays:
    """The figure of one ranking, what ties do to it, and the points of its curves."""
    figures = ranking.figures.of(ranked["positive"])
    ties = ranking_ties(figures, (ranked,))
    return {"figures": np.array(figures), **ties, **curve_arrays(ranked["positive"])}


def _ties(rankings: Sequence[Ranking], scores: Sequence[Arrays]) -> Iterator[TiedFigure]:
    for ranking, found in zip(rankings, scores, strict=True):
        yield from tied_figures(ranking.figures.places, found["figures"].tolist(), found)


def imbalanced_count(positives: int) -> int:
    """How many of the positives are ranked with all negatives."""
    return int(IMBALANCED_SHARE * positives)


def verification_table(rankings: Sequence[Ranking], scores: Sequence[Arrays], notes: tuple[str, ...]) -> Table:
    """The main table, by split and kind of negatives."""
    found = {
        (r.split, r.negatives, r.noise, r.balanced): s["figures"][0] for r, s in zip(rankings, scores, strict=True)
    }
    rows: list[tuple[Cell, ...]] = []
    for split in dict.fromkeys(ranking.split for ranking in rankings):
        for kind in NEGATIVES:
            levels = [[found[split, kind, noise, balanced] for balanced in (True, False)] for noise in NOISE_LEVELS]
            rows += level_rows((split,), (kind,), levels)
    columns = ("split", "noise", "negatives", *columns_of(FIGURES))
    return Table("hpatches_verification", columns, tuple(rows), fractions_of(FIGURES), notes)


def score_groups(ranking: Ranking, sequences: Mapping[str, PairSequences], distances: Mapped) -> Arrays:
    """Both figures of every group of a ranking's pairs, each group ranked by itself; and how many pairs these are."""
    positives, negatives = ranking.sides(distances)
    own, others = (sequences[PAIR_FILES[kind].format(ranking.split)] for kind in ("positive", ranking.negatives))
    arrays: Arrays = {}
    for view in SEQUENCE_VIEWS:
        of_positives, of_negatives = groups_of(own, view), groups_of(others, view)
        members = list(zip(of_positives.members(), of_negatives.members(), strict=True))
        figures = [group_figures(positives[a], negatives[b]) for a, b in members]
        counts = [
            (len(a) + len(b), len(a), of_positives.between[a].sum() + of_negatives.between[b].sum()) for a, b in members
        ]
        arrays[f"{view}_figures"] = np.array(figures, np.float64)
        arrays[f"{view}_counts"] = np.array(counts, np.int64)
    return arrays


def group_figures(positives: NDArray[np.float64], negatives: NDArray[np.float64]) -> tuple[float, float]:
    """Both figures of some pairs; nan without both kinds of pairs."""
    if not len(positives) or not len(negatives):
        return float("nan"), float("nan")
    return (
        metrics.roc_auc(metrics.negatives_first(positives, negatives)),
        metrics.trapezoid_ap(metrics.negatives_first(positives[: imbalanced_count(len(positives))], negatives)),
    )


def group_tables(
    rankings: Sequence[Ranking], sequences: Mapping[str, PairSequences], scores: Sequence[Arrays]
) -> tuple[Table, ...]:
    """The tables by type and by sequence; a group without pairs has no rows."""
    found = {(r.split, r.negatives, r.noise): arrays for r, arrays in zip(rankings, scores, strict=True)}
    tables = []
    for view in SEQUENCE_VIEWS:
        rows: list[tuple[Cell, ...]] = []
        for split in dict.fromkeys(ranking.split for ranking in rankings):
            groups = groups_of(sequences[PAIR_FILES["positive"].format(split)], view).names
            for place, group in enumerate(groups):
                for kind in NEGATIVES:
                    levels = [found[split, kind, noise] for noise in NOISE_LEVELS]
                    counts = levels[0][f"{view}_counts"][place].tolist()  # the same at each level
                    figures = [arrays[f"{view}_figures"][place] for arrays in levels]
                    rows += level_rows((split, group), (kind, *counts), figures) if counts[0] else ()
        columns = ("split", view, "noise", "negatives", *GROUP_COUNTS, *columns_of(FIGURES))
        tables.append(Table(f"by_{view}", columns, tuple(rows), fractions_of(FIGURES), GROUP_NOTES))
    return tuple(tables)


GROUP_NOTES = (
    "auc_balanced, ap_imbalanced (trapezoid AP): as in the main table, of each group's own pairs, with the first 20% "
    f"of its positives; empty without both kinds of pairs; {MEAN_WORDS}.",
    RULE,
)

BENCHMARK = Benchmark(
    name="hpatches-verification",
    options=VerificationOptions,
    prepare=prepare,
    keys=("split", "noise", "negatives"),
    figures=columns_of(FIGURES),
    fractions=fractions_of(FIGURES),
    gallery=stored_cases,
)
