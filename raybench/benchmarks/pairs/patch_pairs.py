"""patch-pairs: do two patches show the same point? One's own lists of pairs, or those of Brown's PhotoTour sets.

Pairs of a list are ranked by rising distance (falling score). FPR95 and FDR95 are those of DagnyT/hardnet (see
`metrics.error_rates`), AP is TREC's, the mean precision at matches, as in hbench-classification; AUC is the area under
the ROC. Among equal distances others stand before matches, in all four figures, whatever the order of the file.

Distances measured here are decided in float64, which tells apart what the published tool's float32 may round to one
value; such a pair of neighbours moves FPR95 by one pair at most. Distances that come with `--results` are ordered as
they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.curves import curve_arrays, curve_file
from raybench.benchmarks.job import Benchmark, Job, Outcome, ReportPicture, limit_notes
from raybench.benchmarks.pair_groups import PairSequences
from raybench.benchmarks.pair_rankings import RankedFigures, rank_sequence_pairs, ranking_ties
from raybench.benchmarks.pairs.inputs import LIST_SUFFIXES, RESULT_SUFFIXES, PairOptions, check_inputs, read_each_list
from raybench.benchmarks.pairs.origins import PairOrigin, open_patches
from raybench.benchmarks.pairs.repeated import repeated_notes
from raybench.benchmarks.patch_cases import PairsOfRow, draw_pairs, strips_of
from raybench.benchmarks.patches import DescribedPatches
from raybench.benchmarks.samples import RunSamples, write_samples
from raybench.benchmarks.ties import TiedFigure, note_equal_distances, tie_tables, tied_figures
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.extract.trials import NoTrial, Trial
from raybench.formats.pair_lists import PairList, read_pair_list
from raybench.formats.pair_scores import PairScores, read_pair_scores, write_pair_scores
from raybench.formats.shardfile import Arrays
from raybench.metrics.error_rates import FDR95, FPR95
from raybench.metrics.partials import Rows
from raybench.metrics.ranking import Flags
from raybench.metrics.samples import FigureOf
from raybench.search.pairs import Pairs, pair_distances
from raybench.sources.image_files import ImageFiles
from raybench.table import Cell, Figure, Table, columns_of, fractions_of, note_of

FIGURES = (
    Figure("ap", "TREC average precision"),
    Figure("auc", "area under the ROC"),
    FPR95,
    FDR95,
)
FLAVOURS = ("step_ap", "roc_auc", "fpr95", "fdr95")
COLUMNS = ("list", "pairs", "positives", *columns_of(FIGURES))
FRACTIONS = fractions_of(FIGURES)
NOTE = note_of(FIGURES, "of equal distances others stand before matches; in fpr95 and fdr95 less is better")


@dataclass(frozen=True)
class ListedPairs:
    """One list: which of its pairs are matches, where they stand among all of the run, and what is independent.

    `unit` numbers that of both patches of each pair, by their place in `units`; None: each pair by itself.
    """

    name: str
    positive: Flags
    start: int
    units: NDArray[np.int64] | tuple[str, ...] = ()
    unit: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None

    @property
    def part(self) -> slice:
        """Its pairs among all of the run."""
        return slice(self.start, self.start + len(self.positive))

    @property
    def sequences(self) -> PairSequences:
        """What each pair lies between."""
        if self.unit is None:
            each = np.arange(len(self.positive))
            return PairSequences.of([str(number) for number in range(1, len(each) + 1)], each, each)
        return PairSequences.of([str(name) for name in self.units], *self.unit)


@dataclass(frozen=True)
class GivenDistances:
    """The distances of all pairs of the run, as finished results have them."""

    values: NDArray[np.float64]

    name = "finished results"


@dataclass(frozen=True)
class MeasuredPairs:
    """Patches, and all pairs of the run whose distances are to be measured; `images`: what the patches are among."""

    patches: DescribedPatches
    pairs: Pairs
    images: ImageFiles | None


def prepare(job: Job[PairOptions]) -> PatchPairs:
    """Read and check every file that the job rests on; raises all problems together."""
    check_inputs(job)
    return _of_results(job) if job.options.results else _of_lists(job)


def _of_results(job: Job[PairOptions]) -> PatchPairs:
    problems = ProblemList()
    parse = partial(read_pair_scores, limits=job.limits)
    given = job.options.results or ""
    found, digest = read_each_list("results", given, RESULT_SUFFIXES, parse, job.limit is None, problems)
    problems.check()
    cut: dict[str, PairScores] = {
        stem: PairScores(one.name, one.distances[: job.limit], one.positive[: job.limit]) for stem, one in found.items()
    }
    lists = _laid_out({stem: one.positive for stem, one in cut.items()})
    values = np.concatenate([one.distances for one in cut.values()])
    return PatchPairs(job, lists, GivenDistances(values), {"results": digest}, "pairs")


def _of_lists(job: Job[PairOptions]) -> PatchPairs:
    problems = ProblemList()
    given = job.options.pairs or ""
    parse = partial(read_pair_list, problems=problems)
    found, digest = read_each_list("pairs", given, LIST_SUFFIXES, parse, job.limit is None, problems)
    sound = not problems.lines
    origin = open_patches(job, found, problems) if found else None
    notes = repeated_notes(origin, found, problems) if origin and sound else ()
    problems.check()
    assert origin is not None  # else a problem was noted
    lists = _laid_out({stem: one.positive[: job.limit] for stem, one in found.items()}, *_units(origin, found, job))
    pairs = Pairs.joined(
        origin.pairs(stem).at(slice(0, len(one.positive))) for stem, one in zip(found, lists, strict=True)
    )
    inputs = {"pairs": digest, **origin.digests}
    return PatchPairs(
        job,
        lists,
        MeasuredPairs(origin.patches, pairs, origin.images),
        inputs,
        _kind(origin, found),
        (*origin.notes, *notes),
    )


def _kind(origin: PairOrigin, lists: Mapping[str, PairList]) -> str:
    """What is independent: 3D points if all lists say them, else sequences if patches have such, else pairs."""
    return "points" if all(one.points for one in lists.values()) else "sequences" if origin.grouped else "pairs"


Units = dict[str, NDArray[np.int64] | tuple[str, ...]]
UnitOfSides = dict[str, tuple[NDArray[np.int32], NDArray[np.int32]]]


def _units(origin: PairOrigin, lists: Mapping[str, PairList], job: Job[PairOptions]) -> tuple[Units, UnitOfSides]:
    """The units of each list, and that of both patches of its pairs; nothing where pairs are units."""
    units: Units = {}
    of_sides: UnitOfSides = {}
    kind = _kind(origin, lists)
    if kind == "sequences":
        names, number = np.unique([key.split("/")[0] for key in origin.patches.source.keys], return_inverse=True)
    for stem, one in lists.items():
        if kind == "points" and one.points is not None:
            both, code = np.unique(np.concatenate([side[: job.limit] for side in one.points]), return_inverse=True)
            a, b = np.split(code.astype(np.int32), 2)
            units[stem], of_sides[stem] = both, (a, b)
        elif kind == "sequences":
            pairs = origin.pairs(stem).at(slice(0, job.limit))
            a, b = (number[np.maximum(item, 0)].astype(np.int32) for item in (pairs.a_image, pairs.b_image))
            of_sides[stem] = (a, b)
            units[stem] = tuple(names.tolist())
    return units, of_sides


def _laid_out(
    positive: Mapping[str, Flags], units: Units | None = None, unit: UnitOfSides | None = None
) -> tuple[ListedPairs, ...]:
    """The lists one behind the other."""
    starts = np.cumsum([0, *map(len, positive.values())]).tolist()
    return tuple(
        ListedPairs(stem, flags, start, (units or {}).get(stem, ()), (unit or {}).get(stem))
        for (stem, flags), start in zip(positive.items(), starts, strict=False)
    )


@dataclass(frozen=True)
class PatchPairs:
    """A job whose files were read and agree with each other; `kind` is what is independent."""

    job: Job[PairOptions]
    lists: tuple[ListedPairs, ...]
    origin: MeasuredPairs | GivenDistances
    inputs: dict[str, str]
    kind: str
    notes: tuple[str, ...] = field(default=())

    @property
    def summary(self) -> str:
        return f"{sum(len(one.positive) for one in self.lists):,} pairs in {len(self.lists)} lists"

    @property
    def trial(self) -> Trial:
        if not isinstance(self.origin, MeasuredPairs):
            return NoTrial()
        pairs = self.origin.pairs
        return self.origin.patches.trial(np.union1d(pairs.a_image, pairs.b_image))

    def execute(self, run: Run) -> Outcome:
        if isinstance(self.origin, MeasuredPairs):
            distances = measured_distances(run, self.origin)
            if self.job.limit is None:  # a part of a list is not that list
                run.write("results/{name}.csv", result_file, self.lists, distances)
        else:
            distances = run.each(given_distances, [self.origin], version=1).whole
        ranked = run.each(rank_list, self.lists, distances, version=1)
        write_samples(run, self.lists, ranked)
        scores = run.each(score_list, self.lists, ranked, version=1)
        run.write("curves/{name}.parquet", curve_file, self.lists, scores)
        scored = run.read_each(scores)
        rows: list[tuple[Cell, ...]] = [
            (one.name, *arrays["counts"].tolist(), *arrays["figures"].tolist())
            for one, arrays in zip(self.lists, scored, strict=True)
        ]
        ties = tie_tables(run, [tie for one, own in zip(self.lists, scored, strict=True) for tie in _ties(one, own)])
        if isinstance(self.origin, GivenDistances):
            note_equal_distances(run, all(arrays["equal"][0] for arrays in scored))
        notes = (NOTE, *limit_notes(self.job, "pairs of each list"), *self.notes)
        table = Table("patch_pairs", COLUMNS, tuple(rows), FRACTIONS, notes)
        samples = RunSamples(self.kind, (ranked,))
        return Outcome(table, ties, pictures=self._pictures(run, rows, distances), samples=samples)

    def _pictures(self, run: Run, rows: Sequence[tuple[Cell, ...]], distances: Mapped) -> tuple[ReportPicture, ...]:
        """The worst pairs of the list with the highest FPR95, at most one of a kind per point, sequence or pair."""
        if not isinstance(self.origin, MeasuredPairs):
            return ()
        pictured = strips_of(self.origin.patches)
        if pictured is None:
            return ()
        place = COLUMNS.index(FPR95.name)
        worst = int(np.argmax(np.nan_to_num([float(row[place] or 0) for row in rows], nan=-1.0)))
        one = self.lists[worst]
        unit = np.arange(len(one.positive)) if one.unit is None else one.unit[0].astype(np.int64)
        pairs = self.origin.pairs.at(one.part)
        return draw_pairs(run, pictured, PairsOfRow(one.name, pairs, one.positive, (one.part,), unit), distances)


def measured_distances(run: Run, origin: MeasuredPairs) -> Mapped:
    """Distances of all pairs."""
    patches, pairs = origin.patches, origin.pairs
    features = patches.features(run, np.union1d(pairs.a_image, pairs.b_image))
    return run.fold(pair_distances(run, features, pairs, patches.distance), Rows)


def result_file(one: ListedPairs, distances: Mapped) -> bytes:
    """The pairs of a list as `--results` takes them."""
    return write_pair_scores(distances.read(0)["values"][one.part], one.positive)


def given_distances(given: GivenDistances) -> Arrays:
    """Finished distances as if they were measured here."""
    return {"values": given.values}


def rank_list(one: ListedPairs, distances: Mapped) -> Arrays:
    """The pairs of a list by distance, others before matches among equal ones."""
    figures = RankedFigures(one.name, columns_of(FIGURES), FLAVOURS)
    values = distances.read(0)["values"][one.part]
    return rank_sequence_pairs(figures, values, one.positive, one.sequences, negatives_lead=True)


def score_list(one: ListedPairs, ranked: Arrays) -> Arrays:
    """Counts, figures and curve points of a list, and what ties do to its figures."""
    positive = ranked["positive"]
    figures = RankedFigures(one.name, columns_of(FIGURES), FLAVOURS).of(positive)
    return {
        "counts": np.array([len(positive), positive.sum()], np.int64),
        "figures": np.array(figures, np.float64),
        "equal": ranked["equal"],
        **ranking_ties(figures, (ranked,)),
        **curve_arrays(positive),
    }


def _ties(one: ListedPairs, scores: Arrays) -> list[TiedFigure]:
    places = [FigureOf(one.name, column) for column in columns_of(FIGURES)]
    return tied_figures(places, scores["figures"].tolist(), scores)


BENCHMARK = Benchmark(
    name="patch-pairs",
    options=PairOptions,
    prepare=prepare,
    keys=("list",),
    figures=columns_of(FIGURES),
    fractions=FRACTIONS,
    gallery=stored_cases,
)
