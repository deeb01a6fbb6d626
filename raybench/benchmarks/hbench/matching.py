"""HPatches 2016, image matching: the nearest target of every reference patch, right or wrong, over pairs of images.

Follows the HBench toolbox (branch av); `metrics.matching` says how its AP differs from that of the text and of 2017.
Among equal distances the lowest target index comes first. The toolbox stores squared distances; plain ones, written
here, rank the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.hbench import inputs as hbench
from raybench.benchmarks.hbench.cases import matching_cases
from raybench.benchmarks.hbench.image_pairs import (
    GivenMatches,
    MatchingTask,
    as_indices,
    given_tasks,
    located_tasks,
    matching_tasks,
    read_match_results,
)
from raybench.benchmarks.hbench.views import labels_of, mean_view_table
from raybench.benchmarks.job import Benchmark, Job, Outcome, limit_notes
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import DescribedPatches
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, all_equal, note_equal_distances, tie_tables, tied_figures
from raybench.engine.run import Run
from raybench.errors import ConfigError, ProblemList, Problems
from raybench.extract.trials import NoTrial, Trial
from raybench.formats import hbench_matching as files
from raybench.formats.hbench_matching import PairMatches
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics import ranking
from raybench.metrics.matching import NOT_FOUND, MatchFigures, by_ratio, closer_in_list, match_figures, match_ties
from raybench.metrics.samples import FigureOf, MeanSample, Units
from raybench.search.closer import before_in_list
from raybench.search.neighbours import ImagePairs, Matches, joined_matches, match_images
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of

DEFAULT_K = 2
POINTS_PER_PAIR = 200


@dataclass(frozen=True)
class MatchingOptions(hbench.HBenchOptions):
    """Those of the 2016 benchmarks, and how many targets are kept."""

    k: int | None = option(None, "nearest targets per reference patch", "protocol", default_words=str(DEFAULT_K))


@dataclass(frozen=True)
class MatchedImages:
    """Patches, and the image pairs of the run that are to be matched, each once."""

    patches: DescribedPatches
    pairs: ImagePairs
    k: int


def prepare(job: Job[MatchingOptions]) -> HBenchMatching:
    """Read and check every file that the job rests on; raises all problems together."""
    root = hbench.check_inputs(job)
    k = chosen_k(job)
    problems = ProblemList()
    patches = hbench.patches_to_describe(job, problems)
    found = hbench.read_task_files(
        root, "matching", job.options.task, files.read_image_pairs, files.read_true_matches, problems
    )
    tasks = matching_tasks(found, job.limit)
    origin: MatchedImages | tuple[GivenMatches, ...]
    if job.options.results:
        results = read_match_results(job.options.results, found, problems)
        origin, digests = given_tasks(tasks, results), {"results": results.digest}
    elif patches is not None:
        tasks, pairs = located_tasks(tasks, found, patches.source, k, problems)
        origin, digests = MatchedImages(patches, pairs, k), patches.digests
    else:
        raise Problems(problems.lines)
    problems.check()
    return HBenchMatching(job, tasks, origin, {"benchmarks": found.digest, **digests})


def chosen_k(job: Job[MatchingOptions]) -> int:
    """`--k`, which goes with computing alone: finished results say themselves how many neighbours they have."""
    k: int | None = job.options.k
    if k is not None and job.options.results:
        raise ConfigError("--k: the .results files say how many neighbours they have; leave it out")
    if k is not None and k < 1:
        raise ConfigError(f"--k {k}: at least 1 neighbour is needed (2 for the ratio scores)")
    return DEFAULT_K if k is None else k


@dataclass(frozen=True)
class HBenchMatching:
    """A job whose files were read and agree with each other."""

    job: Job[MatchingOptions]
    tasks: tuple[MatchingTask, ...]
    origin: MatchedImages | tuple[GivenMatches, ...]
    inputs: dict[str, str]

    @property
    def summary(self) -> str:
        return f"{len(self.tasks)} tasks over {sum(len(task.pairs) for task in self.tasks):,} image pairs"

    @property
    def trial(self) -> Trial:
        if not isinstance(self.origin, MatchedImages):
            return NoTrial()
        return self.origin.patches.trial(np.concatenate([self.origin.pairs.a, self.origin.pairs.b]))

    def execute(self, run: Run) -> Outcome:
        if isinstance(self.origin, MatchedImages):
            patches, pairs = self.origin.patches, self.origin.pairs
            features = patches.features(run, np.concatenate([pairs.a, pairs.b]))
            matches = match_images(run, features, pairs, self.origin.k, patches.distance, self.job.shard_size)
            run.write(hbench.results_pattern("matching", patches), _result_file, self.tasks, matches)
        else:
            read = run.each(given_matches, self.origin, version=2)
            matches = Matches(read, tuple(task.numbers[0] for task in self.tasks))
        scores = run.each(score_matches, self.tasks, matches, version=2)
        samples = run.each(sample_pairs, self.tasks, scores, version=1)
        write_samples(run, self.tasks, samples)
        run.write("curves/{name}.parquet", match_curve_file, self.tasks, matches)
        scored = run.read_each(scores)
        figures = [arrays["figures"] for arrays in scored]
        notes = (*NOTES, *limit_notes(self.job, "pairs of each task"))
        table = Table("hbench_matching", COLUMNS, _task_rows(self.tasks, figures), FRACTIONS, notes)
        per_pair = Table("per_pair", PAIR_COLUMNS, _pair_rows(self.tasks, figures), FRACTIONS)
        drawn = self.origin if isinstance(self.origin, MatchedImages) else None
        pictures = matching_cases(run, drawn, self.tasks, figures, matches)
        ties = tie_tables(run, _ties(self.tasks, scored))
        if not isinstance(self.origin, MatchedImages):
            note_equal_distances(run, all(arrays["equal"][0] for arrays in scored))
        further = (per_pair, _view_table(self.tasks, figures), *ties)
        return Outcome(table, further, pictures=pictures, samples=RunSamples("sequences", (samples,)))


def _result_file(task: MatchingTask, matches: Matches) -> bytes:
    """The `.results` file of a task in the published layout."""
    found = matches.read(task.numbers)
    return files.write_matches(
        (pair, PairMatches(arrays["index"], arrays["distance"])) for pair, arrays in zip(task.pairs, found, strict=True)
    )


def given_matches(given: GivenMatches) -> Arrays:
    """Finished matches as if they were found here; the rank of a true target, and ties with it, are known within K."""
    return joined_matches(
        [
            _as_found(found, as_indices(truth, len(found.index)))
            for found, truth in zip(given.matches, given.task.truth, strict=True)
        ]
    )


def _as_found(found: PairMatches, truth: NDArray[np.int64]) -> Arrays:
    closer = closer_in_list(found.index, truth)
    listed, _ = before_in_list(found.distance, found.index, truth)
    fewest, most = (np.where(closer == NOT_FOUND, NOT_FOUND, count) for count in (listed.fewest, listed.most))
    return {"index": found.index, "distance": found.distance, "closer": closer, "fewest": fewest, "most": most}


def score_matches(task: MatchingTask, matches: Matches) -> Arrays:
    """The figures of every pair of a task, (pairs, figures), and what ties do to their means."""
    every = list(_with_truth(task, matches))
    rows = [
        dataclasses.astuple(match_figures(found["distance"], found["index"], truth, found["closer"]))
        for found, truth in every
    ]
    ties = [match_ties(found["distance"], found["fewest"], found["most"]) for found, _ in every]
    return {
        "figures": np.array(rows, np.float64),
        "worst": np.mean([one.worst for one in ties], axis=0),
        "best": np.mean([one.best for one in ties], axis=0),
        "tied": np.sum([one.tied for one in ties], axis=0),
        "equal": np.array([all_equal(np.concatenate([found["distance"][:, 0] for found, _ in every]))]),
    }


def sample_pairs(task: MatchingTask, scores: Arrays) -> Arrays:
    """The figures of every pair of a task as a sample, by the sequence of the reference image."""
    names, unit = np.unique([pair.a.partition("/")[0] for pair in task.pairs], return_inverse=True)
    units = Units.plain(names.tolist())
    return MeanSample(_places(task), units, unit.astype(np.int32), scores["figures"]).to_arrays()


def _places(task: MatchingTask) -> tuple[FigureOf, ...]:
    return tuple(FigureOf(task.name, column) for column in columns_of(FIGURES))


def match_curve_file(task: MatchingTask, matches: Matches) -> bytes:
    """PR points of every pair of a task, by distance and by ratio, as Parquet."""
    curves: list[tuple[str, str, ranking.Curve]] = []
    for pair, (found, truth) in zip(task.pairs, _with_truth(task, matches), strict=True):
        right = found["index"][:, 0] == truth
        ranked = {"distance": ranking.by_distance(found["distance"][:, 0], right)}
        if found["distance"].shape[1] > 1:
            ranked["ratio"] = by_ratio(found["distance"], right)
        curves += [(pair.head, score, ranking.curve(flags, POINTS_PER_PAIR)) for score, flags in ranked.items()]
    lengths = [len(points.rank) for _, _, points in curves]
    columns: dict[str, NDArray[np.generic]] = {
        "pair": np.repeat([pair for pair, _, _ in curves], lengths),
        "score": np.repeat([score for _, score, _ in curves], lengths),
        "rank": np.concatenate([points.rank for _, _, points in curves]),
        "recall": np.concatenate([points.recall for _, _, points in curves]),
        "precision": np.concatenate([points.precision for _, _, points in curves]),
    }
    return write_parquet(columns)


def _with_truth(task: MatchingTask, matches: Matches) -> list[tuple[Arrays, NDArray[np.int64]]]:
    found = matches.read(task.numbers)
    return [(arrays, as_indices(given, len(arrays["index"]))) for arrays, given in zip(found, task.truth, strict=True)]


MATCH_FIGURES = tuple(Figure(field.name) for field in dataclasses.fields(MatchFigures))
FIGURES = (  # their means over the pairs of a task, in the same order
    Figure(
        "map",
        "mean over image pairs of the TREC AP of nearest neighbours by distance, over the right ones found (HBench "
        "tool)",
    ),
    Figure("map_2nnr", "the same by the ratio of second to first distance"),
    Figure("map_all", "over all reference patches (2017)"),
    Figure(
        "map_ranked",
        "mean of 1 / rank of the true target among all targets (HBench text); from .results within their K, else 0",
    ),
    Figure("success_rate", "nearest neighbours that are right"),
)
COLUMNS = ("task", "pairs", *columns_of(FIGURES))
PAIR_COLUMNS = ("task", "pair", *columns_of(MATCH_FIGURES))
FRACTIONS = fractions_of((*FIGURES, *MATCH_FIGURES))
NOTES = (note_of(FIGURES[:3]), note_of(FIGURES[3:]))


def _ties(tasks: Sequence[MatchingTask], scored: Sequence[Arrays]) -> Iterator[TiedFigure]:
    for task, arrays in zip(tasks, scored, strict=True):
        yield from tied_figures(_places(task), arrays["figures"].mean(axis=0).tolist(), arrays)


def _task_rows(tasks: Sequence[MatchingTask], figures: Sequence[NDArray[np.float64]]) -> tuple[tuple[Cell, ...], ...]:
    """The mean over the pairs of each task."""
    return tuple(
        (task.name, len(task.pairs), *own.mean(axis=0).tolist()) for task, own in zip(tasks, figures, strict=True)
    )


def _pair_rows(tasks: Sequence[MatchingTask], figures: Sequence[NDArray[np.float64]]) -> tuple[tuple[Cell, ...], ...]:
    """The figures of every pair of every task."""
    return tuple(
        (task.name, pair.head, *row)
        for task, own in zip(tasks, figures, strict=True)
        for pair, row in zip(task.pairs, own.tolist(), strict=True)
    )


def _view_table(tasks: Sequence[MatchingTask], figures: Sequence[NDArray[np.float64]]) -> Table:
    """Means over all pairs, each once, whatever tasks they are in; the noise is that of the target image."""
    numbers = [number for task in tasks for number in task.numbers]
    images = [pair.b for task in tasks for pair in task.pairs]
    once = np.unique(numbers, return_index=True)[1].tolist()
    return mean_view_table("pairs", FIGURES, [labels_of(images[i]) for i in once], np.concatenate(figures)[once])


BENCHMARK = Benchmark(
    name="hbench-matching",
    options=MatchingOptions,
    prepare=prepare,
    keys=("task",),
    figures=columns_of(FIGURES),
    fractions=FRACTIONS,
    gallery=stored_cases,
)
