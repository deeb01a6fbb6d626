"""HPatches 2016, patch classification: are two patches of the same scene point? Pairs are ranked by distance.

Follows the HBench toolbox (branch av): TREC AP and ROC AUC over all pairs of a task, and `balanced`: all positives,
then the first as many negatives. Among equal distances the order of the file stands. The toolbox stores squared
distances; plain ones, written here, rank the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.curves import curve_arrays, curve_file
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.cases import classification_cases
from raybench.benchmarks.hbench.inputs import HBenchOptions
from raybench.benchmarks.hbench.pairs import (
    PairLists,
    PairTask,
    Segment,
    pair_tasks,
    read_pair_lists,
    read_pair_results,
)
from raybench.benchmarks.hbench.views import VIEWS, GroupedTask, grouped_tasks, pair_view_table
from raybench.benchmarks.job import Benchmark, Job, Outcome, limit_notes
from raybench.benchmarks.pair_groups import PairSequences
from raybench.benchmarks.pair_rankings import RankedFigures, rank_sequence_pairs, ranking_ties
from raybench.benchmarks.patches import DescribedPatches
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, note_equal_distances, tie_tables, tied_figures
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList, Problems
from raybench.extract.patches import unreadable_images
from raybench.extract.trials import NoTrial, Trial
from raybench.formats.hbench import write_distances
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking as metrics
from raybench.metrics.partials import Rows
from raybench.metrics.ranking import Flags
from raybench.metrics.samples import FigureOf
from raybench.search.pairs import Pairs, pair_distances
from raybench.sources.patches import Source, items_of
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of


@dataclass(frozen=True)
class GivenDistances:
    """The distances of all pairs of the run, as finished `.results` have them."""

    values: NDArray[np.float64]

    name = "finished results"


@dataclass(frozen=True)
class TaskRanking:
    """The pairs of a task that are ranked together, all or the balanced ones; without sequences if lists are absent."""

    task: PairTask
    sequences: PairSequences | None
    balanced: bool

    @property
    def name(self) -> str:
        return f"{'balanced' if self.balanced else 'all'}-{self.task.name}"

    @property
    def figures(self) -> RankedFigures:
        ending = "_balanced" if self.balanced else ""
        return RankedFigures(self.task.name, (f"ap{ending}", f"auc{ending}"), ("step_ap", "roc_auc"))


@dataclass(frozen=True)
class MeasuredPairs:
    """Patches, and all pairs of the run whose distances are to be measured, with images as items of the source."""

    patches: DescribedPatches
    pairs: Pairs


def prepare(job: Job[HBenchOptions]) -> HBenchClassification:
    """Read and check every file that the job rests on; raises all problems together."""
    root = hbench.check_inputs(job)
    problems, left_out = ProblemList(), ProblemList()
    patches = hbench.patches_to_describe(job, problems)
    lists = read_pair_lists(root, job, problems)
    results = read_pair_results(job, lists, problems)
    tasks, segments = pair_tasks(lists, results, job.limit, problems)
    origin: MeasuredPairs | GivenDistances
    if results is not None:
        given = [results.parsed[segment.name].distances[segment.positions] for segment in segments]
        origin, digests = GivenDistances(np.concatenate([[], *given])), {"results": results.digest}
    elif patches is not None:
        pairs = _located(lists, segments, patches.source, left_out if job.skip_bad_input else problems)
        if len(pairs) and not np.any((pairs.a_image >= 0) & (pairs.b_image >= 0)):
            problems.lines += left_out.lines or ["no pair can be read"]
        origin, digests = MeasuredPairs(patches, pairs), patches.digests
    else:
        raise Problems(problems.lines)
    problems.check()
    inputs = {"benchmarks": lists.digest, **digests}
    return HBenchClassification(
        job, tasks, grouped_tasks(tasks, lists), segments, origin, inputs, tuple(left_out.lines)
    )


def _located(lists: PairLists, segments: Sequence[Segment], source: Source, problems: ProblemList) -> Pairs:
    """All pairs of the run with images as items of the source; what is not there is noted and gets image -1."""
    stems = dict.fromkeys(stem for stems in lists.tasks.values() for stem in stems)
    items = items_of(source, sorted({image for stem in stems for image in lists.pairs[stem].images}), problems)
    counts = source.counts(items.values(), problems)
    located = {}
    for stem in stems:
        pairs = lists.pairs[stem]
        known = [item if item in counts else -1 for item in (items.get(image, -1) for image in pairs.images)]
        item = np.array(known, np.int32)
        count = np.array([counts.get(i, np.iinfo(np.int32).max) for i in known], np.int64)
        sides = ((pairs.a_image, pairs.a_patch), (pairs.b_image, pairs.b_patch))
        for image, patch in sides:
            beyond = np.flatnonzero(patch >= count[image])
            if len(beyond):
                line = int(beyond[0])
                key = pairs.images[image[line]]
                problems.add(
                    f"{lists.folder}/{stem}.pairs: line {line + 1}: patch "
                    f"{key.replace('/', '.')}.{patch[line]} is out of range; {key} has {count[image[line]]} patches "
                    f"({len(beyond):,} such lines)"
                )
        images = [np.where(patch < count[image], item[image], np.int32(-1)) for image, patch in sides]
        located[stem] = (images[0], pairs.a_patch, images[1], pairs.b_patch)
    nothing = [np.zeros(0, np.int32)] * 4
    kept = [[values[segment.positions] for values in located[segment.name]] for segment in segments]
    return Pairs(*(np.concatenate(column) for column in zip(nothing, *kept, strict=True)))


@dataclass(frozen=True)
class HBenchClassification:
    """A job whose files were read and agree with each other."""

    job: Job[HBenchOptions]
    tasks: tuple[PairTask, ...]
    grouped: tuple[GroupedTask, ...]
    segments: tuple[Segment, ...]
    origin: MeasuredPairs | GivenDistances
    inputs: dict[str, str]
    left_out: tuple[str, ...]

    @property
    def summary(self) -> str:
        pairs = self.segments[-1].stop if self.segments else 0
        return f"{len(self.tasks)} tasks over {pairs:,} pairs in {len(self.segments)} lists"

    @property
    def trial(self) -> Trial:
        if not isinstance(self.origin, MeasuredPairs):
            return NoTrial()
        pairs = self.origin.pairs
        return self.origin.patches.trial(np.union1d(pairs.a_image, pairs.b_image))

    def execute(self, run: Run) -> Outcome:
        unreadable: list[str] = []
        if isinstance(self.origin, MeasuredPairs):
            distances, unreadable = measured_distances(run, self.origin)
            if self.job.limit is None:  # a part of a list is no list in the published format
                pattern = hbench.results_pattern("classification", self.origin.patches)
                run.write(pattern, _result_file, self.segments, distances)
        else:
            distances = run.each(given_distances, [self.origin], version=1).whole
        ranked, samples = self._ranked(run, distances)
        scores = run.each(score_task, self.tasks, *ranked, version=2)
        run.write("curves/{name}.parquet", curve_file, self.tasks, scores)
        scored = run.read_each(scores)
        rows = _task_rows(self.tasks, scored)
        ties = tie_tables(run, [one for task, own in zip(self.tasks, scored, strict=True) for one in _ties(task, own)])
        if isinstance(self.origin, GivenDistances):
            note_equal_distances(run, all(arrays["equal"][0] for arrays in scored))
        notes = (
            *NOTES,
            *limit_notes(self.job, "pairs of each list"),
            *_skip_notes(self.tasks, rows),
            *_sample_notes(samples),
        )
        table = Table("hbench_classification", COLUMNS, rows, FRACTIONS, notes)
        drawn = self.origin if isinstance(self.origin, MeasuredPairs) else None
        pictures = classification_cases(run, drawn, self.tasks, rows, distances)
        further = (*self._views(run, distances), *ties)
        return Outcome(table, further, (*self.left_out, *unreadable), pictures=pictures, samples=samples)

    def _ranked(self, run: Run, distances: Mapped) -> tuple[tuple[PerItem, PerItem], RunSamples | None]:
        """All pairs of each task in order, and its balanced ones; samples if the sequences of all are known."""
        known = {grouped.name: grouped.sequences for grouped in self.grouped}
        every, even = (
            [TaskRanking(task, known.get(task.name), balanced) for task in self.tasks] for balanced in (False, True)
        )
        ranked = tuple(run.each(rank_pairs, rankings, distances, version=1) for rankings in (every, even))
        if len(known) < len(self.tasks):
            return (ranked[0], ranked[1]), None
        for rankings, stage in zip((every, even), ranked, strict=True):
            write_samples(run, rankings, stage)
        return (ranked[0], ranked[1]), RunSamples("sequences", ranked)

    def _views(self, run: Run, distances: Mapped) -> tuple[Table, ...]:
        """The views of all tasks whose lists are there; no table if there are none."""
        if not self.grouped:
            return ()
        scored = run.read_each(run.each(score_pair_groups, self.grouped, distances, version=1))
        known = {task.name for task in self.grouped}
        return (pair_view_table(FIGURES, self.grouped, scored, [t.name for t in self.tasks if t.name not in known]),)


def measured_distances(run: Run, origin: MeasuredPairs) -> tuple[Mapped, list[str]]:
    """Distances of all pairs, and what could not be read on the way."""
    patches, pairs, job = origin.patches, origin.pairs, origin.patches.job
    images = np.union1d(pairs.a_image, pairs.b_image)
    wanted = images[images >= 0]
    features = patches.features(run, wanted)
    unreadable = unreadable_images(run, features, wanted.tolist()) if job.skip_bad_input else []
    distances = pair_distances(run, features, pairs, patches.distance, skip=job.skip_bad_input)
    return run.fold(distances, Rows), [f"{key}: can't be read" for key in unreadable]


def _result_file(segment: Segment, distances: Mapped) -> bytes:
    """A `.results` file in the published layout, `distance,label` per line."""
    return write_distances(distances.read(0)["values"][segment.start : segment.stop], segment.positive)


def given_distances(given: GivenDistances) -> Arrays:
    """Finished distances as if they were measured here."""
    return {"values": given.values}


def rank_pairs(ranking: TaskRanking, distances: Mapped) -> Arrays:
    """The pairs of a ranking by distance. One that was skipped has no distance, and does not count."""
    values, positive = ranking.task.of(distances.read(0)["values"]), ranking.task.positive
    sequences = ranking.sequences or PairSequences.unknown(len(positive))
    skipped = np.isnan(values)
    if ranking.balanced or skipped.any():
        counted = np.flatnonzero(~skipped)
        chosen = counted[metrics.balanced(positive[counted])] if ranking.balanced else counted
        values, positive, sequences = values[chosen], positive[chosen], sequences.kept(chosen)
    return rank_sequence_pairs(ranking.figures, values, positive, sequences)


def score_task(_: PairTask, every: Arrays, even: Arrays) -> Arrays:
    """Counts, figures and curve points of a task, and what ties do to its figures."""
    ranked = every["positive"], even["positive"]
    figures = pair_figures(ranked)
    return {
        "counts": np.array([len(ranked[0]), ranked[0].sum()], np.int64),
        "figures": np.array(figures, np.float64),
        "equal": every["equal"],
        **ranking_ties(figures, (every, even)),
        **curve_arrays(ranked[0]),
    }


def _ties(task: PairTask, scores: Arrays) -> list[TiedFigure]:
    places = [FigureOf(task.name, column) for column in columns_of(FIGURES)]
    return tied_figures(places, scores["figures"].tolist(), scores)


def full_and_balanced(distances: NDArray[np.float64], positive: Flags) -> tuple[Flags, Flags]:
    """Pairs in file order by distance: all of them, and their balanced part."""
    even = metrics.balanced(positive)
    return metrics.by_distance(distances, positive), metrics.by_distance(distances[even], positive[even])


FIGURES = (
    Figure("ap", "TREC average precision over all pairs"),
    Figure("auc", "area under the ROC"),
    Figure("ap_balanced"),
    Figure("auc_balanced"),
)
COLUMNS = ("task", "pairs", "positives", *columns_of(FIGURES))
FRACTIONS = fractions_of(FIGURES)
NOTES = (note_of(FIGURES, "balanced: positives and as many negatives"),)


def pair_figures(ranked: tuple[Flags, Flags]) -> list[float]:
    """AP and AUC of all pairs, then of their balanced part.

    >>> pair_figures((np.array([True, False, False]), np.array([True, False])))
    [1.0, 1.0, 1.0, 1.0]
    """
    return [figure(flags) for flags in ranked for figure in (metrics.trec_ap, metrics.roc_auc)]


def _task_rows(tasks: Sequence[PairTask], scored: Sequence[Arrays]) -> tuple[tuple[Cell, ...], ...]:
    """A row per task: its pairs, positives and figures."""
    return tuple(
        (task.name, *arrays["counts"].tolist(), *arrays["figures"].tolist())
        for task, arrays in zip(tasks, scored, strict=True)
    )


def _skip_notes(tasks: Sequence[PairTask], rows: Sequence[tuple[Cell, ...]]) -> list[str]:
    notes = []
    for task, row in zip(tasks, rows, strict=True):
        pairs = len(task.positive)
        missing = pairs - int(row[1] or 0)
        if missing:
            notes.append(f"SKIPPED: {missing:,} of {pairs:,} pairs of {task.name} could not be read.")
    return notes


def _sample_notes(samples: RunSamples | None) -> tuple[str, ...]:
    words = "No intervals can be drawn: .pairs are not there, which say in which sequences pairs are."
    return () if samples else (words,)


def score_pair_groups(grouped: GroupedTask, distances: Mapped) -> Arrays:
    """Figures and counts of a task's groups of pairs, by view: each group is ranked by itself, as a task is."""
    values, positive = grouped.task.of(distances.read(0)["values"]), grouped.task.positive
    measured = ~np.isnan(values)
    arrays: Arrays = {"pairs": np.array([np.count_nonzero(measured)], np.int64)}
    for view in VIEWS:
        groups = grouped.groups(view)
        members = groups.members(measured)
        figures = [_group_figures(values[own], positive[own]) for own in members]
        counts = [(len(own), positive[own].sum(), groups.between[own].sum()) for own in members]
        arrays[f"{view}_figures"] = np.array(figures, np.float64).reshape(-1, len(FIGURES))
        arrays[f"{view}_counts"] = np.array(counts, np.int64).reshape(-1, 3)
    return arrays


def _group_figures(distances: NDArray[np.float64], positive: Flags) -> list[float]:
    both = positive.any() and not positive.all()
    return pair_figures(full_and_balanced(distances, positive)) if both else [float("nan")] * len(FIGURES)


BENCHMARK = Benchmark(
    name="hbench-classification",
    options=HBenchOptions,
    prepare=prepare,
    keys=("task",),
    figures=columns_of(FIGURES),
    fractions=FRACTIONS,
    can_skip=True,
    gallery=stored_cases,
)
