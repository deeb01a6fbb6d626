"""DISC2021 copy detection: which references are the queries copies of, over all queries in one pool?

Follows the SSCD evaluation (Pizzi et al. 2022) and the ISC 2021 metrics: descriptors by codec, ten nearest references a
query (score: minus the squared distance) or the best pairs over all, score normalisation by training images, and µAP
with wrong ones first among equal scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.copies import sets as image_sets
from raybench.benchmarks.copies.disc_candidates import Candidates, find_candidates
from raybench.benchmarks.copies.disc_inputs import DiscSets, find_sets, predictions_file, read_truth, true_pairs
from raybench.benchmarks.copies.disc_tables import FRACTIONS, further_tables, main_table
from raybench.benchmarks.copies.files import ReadPredictions, export_curves, export_predictions, variant_slug
from raybench.benchmarks.copies.mistakes import SHEETS, Mistakes, draw_mistakes, gallery
from raybench.benchmarks.copies.scores import Variant, score
from raybench.benchmarks.copies.sets import CopyOptions, ImageSet
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.picture import Picture
from raybench.descriptors.image_descriptors import ImageSpec
from raybench.digests import digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ProblemList
from raybench.formats import disc
from raybench.formats.names import Names, common_names
from raybench.metrics.micro_ap import TruePairs
from raybench.search.score_norm import ScoreNorm, parse_norms

K = 10
DEFAULT_NORM = "1.0[0,2]"
NO_VARIANT = Variant("None", "None", "predictions")
SHOWN = 3  # names in a note
NOTES = (
    "uAP: step AP over all predictions in one pool, wrong ones first among equal scores; accuracy-at-1: share of true "
    "pairs whose reference stands alone at the top of its query; recall-at-p90: highest recall at precision >= 0.9.",
)


@dataclass(frozen=True)
class Options(CopyOptions):
    """Those of copy detection, and of DISC2021: its sets, candidates, and finished predictions."""

    queries: str | None = option(
        None, "folder of the query images", "input", default_words="DATA/val_query", is_uri=True
    )
    references: str | None = option(
        None, "folder of the reference images", "input", default_words="DATA/val_ref", is_uri=True
    )
    training: str | None = option(
        None, "folder of the training images", "input", default_words="DATA/training", is_uri=True
    )
    ground_truth: str | None = option(
        None,
        "query,reference lines",
        "input",
        default_words="val_groundtruth_matches.csv in DATA or FEATURES",
        is_uri=True,
    )
    results: str | None = option(None, "finished predictions.csv: query,reference,score lines", "input", is_uri=True)
    score_norm: str | None = option(
        None, "WEIGHT[FIRST,LAST] separated by ;, or none", "protocol", default_words=DEFAULT_NORM
    )
    k: int = option(K, "candidates per query", "protocol")
    global_candidates: bool = option(
        False, "main table of the best k x queries pairs over all, not of k per query", "protocol"
    )
    max_predictions: int = option(disc.MOST_PREDICTIONS, "lines that a predictions file may have", "protocol")


@dataclass(frozen=True)
class ScoredPlan:
    """A job that begins with finished predictions."""

    job: Job[Options]
    inputs: dict[str, str]
    truth: TruePairs
    queries: Names
    references: Names
    uri: str
    predictions: int

    @property
    def summary(self) -> str:
        return f"{self.predictions:,} predictions, {len(self.truth):,} true pairs"

    def execute(self, run: Run) -> Outcome:
        """From predictions to the tables."""
        most = self.job.options.max_predictions
        stage = ReadPredictions(self.uri, self.inputs["predictions"], most, self.queries, self.references)
        pairs = {NO_VARIANT: run.map(stage, 1, 1)}
        scored = score(run, pairs, self.truth, len(self.queries), self.job.seed)
        facts: dict[str, Any] = {"queries": len(self.queries), "references": len(self.references)}
        facts |= {"k": None, "variants": set(), "candidates": NO_VARIANT.candidates}
        metadata = self.job.options.metadata
        main = main_table(scored, [NO_VARIANT], metadata, NOTES)
        export_curves(run, scored)
        return Outcome(main, further_tables(scored, [NO_VARIANT]), facts=facts)


@dataclass(frozen=True)
class Plan:
    """A job that begins with images or vectors, which were found and agree with each other."""

    job: Job[Options]
    inputs: dict[str, str]
    sets: DiscSets
    descriptor: ImageSpec | None
    k: int
    codecs: tuple[str, ...]  # none: the published list, once dimension and lengths are known
    norms: tuple[ScoreNorm, ...]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        counts = ", ".join(f"{len(images):,} {images.what}" for images in self.sets.all)
        return f"{counts}, {len(self.sets.truth):,} true pairs"

    def execute(self, run: Run) -> Outcome:
        """From images or vectors to the tables, in one line of steps."""
        described = image_sets.described(run, self.job, self.descriptor, self.sets.all)
        skipped = [
            f"{images.what}: {images.names[place]}: can't be read"
            for images in self.sets.all
            for place in described[images.what].skipped.tolist()
        ]
        truth = self._readable_truth(*(described[role].skipped for role in ("queries", "references")))
        vectors = {role: found.vectors for role, found in described.items()}
        candidates = find_candidates(run, self.job, vectors, self.k, self.codecs, self.norms)
        scored = score(run, candidates.pairs, truth, len(self.sets.queries), self.job.seed)
        kind = "global" if self.job.options.global_candidates else "knn"
        chosen = [variant for variant in candidates.order if variant.candidates == kind]
        failed = [f"FAILED: {reason}." for reason in candidates.failed.values()]
        notes = (*NOTES, *self.notes, *candidates.notes, *self._skip_notes(len(skipped), truth), *failed)
        _, pictures = self._draw(run, candidates, chosen, truth)
        export_curves(run, scored)
        self._export_predictions(run, candidates, chosen)
        image_sets.exported(run, self.job, self.sets.all, vectors)
        return Outcome(
            main_table(scored, chosen, self.job.options.metadata, notes),
            further_tables(scored, candidates.order),
            tuple(skipped),
            {
                "queries": len(self.sets.queries),
                "references": len(self.sets.references),
                "k": self.k,
                "candidates": kind,
                "variants": {(variant.codec, variant.score_norm) for variant in chosen},
            },
            tuple(pictures),
        )

    def _draw(
        self, run: Run, candidates: Candidates, chosen: list[Variant], truth: TruePairs
    ) -> tuple[list[str], list[Picture]]:
        """The worst mistakes of the table's first row, where there are pictures."""
        there = [variant for variant in chosen if variant in candidates.pairs]
        if not there or not self.sets.queries.has_pictures:
            return [], []
        stage = Mistakes(candidates.pairs[there[0]], truth, self.sets.queries, self.sets.references)
        return draw_mistakes(run, stage, list(SHEETS))

    def _readable_truth(self, *skipped: NDArray[np.int64]) -> TruePairs:
        truth = self.sets.truth
        lost = np.isin(truth.query, skipped[0]) | np.isin(truth.reference, skipped[1])
        return TruePairs.of(truth.query[~lost], truth.reference[~lost])

    def _skip_notes(self, skipped: int, truth: TruePairs) -> Iterable[str]:
        if skipped:
            lost = len(self.sets.truth) - len(truth)
            yield f"SKIPPED: {skipped:,} images could not be read; {lost:,} true pairs are left out with them."

    def _export_predictions(self, run: Run, candidates: Candidates, chosen: list[Variant]) -> list[str]:
        """Each row of the main table as predictions.csv in a folder of its own, the first also by the plain name."""
        there = [variant for variant in chosen if variant in candidates.pairs]
        if not there:
            return []
        files = {"results/predictions.csv": candidates.pairs[there[0]]}
        files |= {f"results/{variant_slug(one)}/predictions.csv": candidates.pairs[one] for one in there}
        return export_predictions(run, files, self.sets.queries.names, self.sets.references.names)


def prepare(job: Job[Options]) -> Plan | ScoredPlan:
    """Read and check every file that the job rests on; raises all problems together."""
    image_sets.check_inputs(job, job.options.results)
    return _prepare_predictions(job) if job.options.results else _prepare_sets(job)


def _prepare_predictions(job: Job[Options]) -> ScoredPlan:
    assert job.options.results is not None
    uri = predictions_file(job.options.results)
    problems = ProblemList()
    truth, predictions = None, None
    with problems.noting():
        truth, digest = read_truth(job)
    with problems.noting():
        data = image_sets.read_text(uri, "predictions: query,reference,score lines")
        predictions = disc.read_predictions(data, uri, job.options.max_predictions)
    problems.check()
    assert truth is not None and predictions is not None
    matched = disc.match_tables(truth, predictions)
    pairs = TruePairs.of(matched.true_query, matched.true_reference)
    inputs = {"ground truth": digest, "predictions": digest_of_bytes(data)}
    return ScoredPlan(job, inputs, pairs, matched.queries, matched.references, uri, len(predictions))


def _prepare_sets(job: Job[Options]) -> Plan:
    problems = ProblemList()
    descriptor, truth, digest = None, None, ""
    norms: tuple[ScoreNorm, ...] = ()
    k = job.options.k
    with problems.noting():
        image_sets.check_k(k)
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    with problems.noting():
        truth, digest = read_truth(job)
    found = find_sets(job, problems)
    queries, references, training = (found.get(role) for role in ("queries", "references", "training"))
    with problems.noting():
        norms = parse_norms(job.options.score_norm or DEFAULT_NORM)
    pairs = None
    if truth is not None and queries is not None and references is not None:
        pairs = true_pairs(truth, queries.names, references.names, problems)
    codecs = image_sets.asked_codecs(job)
    image_sets.check_codecs(codecs, image_sets.known_dimension(queries), training, problems)
    _check_norms(job, norms, training, problems)
    problems.check()
    assert queries is not None and references is not None and pairs is not None
    sets = DiscSets(queries, references, training, pairs)
    notes = [*image_sets.preprocessing_notes(job), *_leakage_notes(sets)]
    if training is None:
        norms = ()
        notes.append("No training set: codecs and score normalisation that need one are left out.")
    if job.limit is not None:
        sets = sets.limited(job.limit, training=max((norm.last + 1 for norm in norms), default=0))
        notes.append(f"LIMITED: the first {job.limit:,} queries, their references and the first others were used.")
    inputs = {"ground truth": digest, **image_sets.digests(sets.all, descriptor)}
    return Plan(job, inputs, sets, descriptor, k, codecs, norms, tuple(notes))


def _check_norms(
    job: Job[Options], norms: tuple[ScoreNorm, ...], training: ImageSet | None, problems: ProblemList
) -> None:
    if training is not None:
        for line in [norm.problem(len(training)) for norm in norms]:
            if line is not None:
                problems.add(f"--score-norm: {line}")
    elif job.options.score_norm and norms:
        problems.add("--score-norm: needs a training set; give --training, or vectors of one, or --score-norm none")


def _leakage_notes(sets: DiscSets) -> Iterable[str]:
    """Names of training images that are also among queries or references."""
    for images in (sets.queries, sets.references) if sets.training else ():
        assert sets.training is not None
        shared = common_names(sets.training.names, images.names)
        if shared:
            shown = ", ".join(shared[:SHOWN]) + (" …" if len(shared) > SHOWN else "")
            yield f"LEAKAGE: {len(shared):,} names stand in training and in {images.what} ({shown})."


BENCHMARK = Benchmark(
    name="disc2021",
    summary="DISC2021 copy detection: pooled µAP over codecs and score normalisations",
    needs="--data (DISC root) and --descriptor, or --features (vectors), or --results predictions.csv",
    options=Options,
    prepare=prepare,
    fractions=FRACTIONS,
    can_skip=True,
    main_table="disc_metrics",
    gallery=gallery,
)
