"""DISC2021 copy detection: which references are the queries copies of, over all queries in one pool?

Follows the SSCD evaluation (Pizzi et al. 2022) and the ISC 2021 metrics: descriptors by codec, ten nearest references
per query (score: minus the squared distance) or the best pairs over all, score normalisation by training images, and
µAP with wrong ones first among equal scores. Candidates are the pairs that a search proposes for scoring, predictions
what a file in the ISC format holds, true pairs what the ground truth says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.asked_cases import disc_cases
from raybench.benchmarks.images.disc_options import DEFAULT_NORM, NO_NORM, DiscOptions
from raybench.benchmarks.images.disc_sets import DiscSets, find_sets, find_truth, true_pairs
from raybench.benchmarks.images.figures import (
    DISC_FRACTIONS,
    HEADLINE,
    VARIANT_COLUMNS,
    Candidates,
    Variant,
    disc_table,
    further_disc_tables,
    pooled_curve_file,
    score_candidates,
)
from raybench.benchmarks.images.finished_predictions import PredictionsPlan, prepare_predictions
from raybench.benchmarks.images.mistakes import Threshold, draw_mistakes
from raybench.benchmarks.images.preprocessing import preprocessing_notes
from raybench.benchmarks.images.samples import disc_samples
from raybench.benchmarks.images.sets import ImageSet
from raybench.benchmarks.images.ties import disc_ties, note_constant_sets
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.descriptors.image_descriptors import ImageSpec
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.errors import ProblemList, Problems
from raybench.extract.isc_files import isc_content, submission_file
from raybench.extract.trials import Trial
from raybench.extract.vector_set import VectorSet
from raybench.formats.disc import write_predictions
from raybench.formats.names import Names
from raybench.formats.shardfile import Arrays
from raybench.search.candidates import global_pairs, nearest_pairs
from raybench.search.score_norm import ScoreNorm, parse_norms, query_biases
from raybench.search.set_search import FoundNeighbours, search_sets_by
from raybench.search.vector_facts import leakage_notes, vector_facts
from raybench.table import columns_of, note_of

CANDIDATE_KINDS = ("knn", "global")  # of candidates


def prepare(job: Job[DiscOptions]) -> DiscPlan | PredictionsPlan:
    """Read and check every file that the job rests on; raises all problems together."""
    image_sets.check_ways_in(job, ("descriptor", "features", "results"))
    return prepare_predictions(job, job.options.results) if job.options.results else _prepare_sets(job)


def _prepare_sets(job: Job[DiscOptions]) -> DiscPlan:
    options, problems = job.options, ProblemList()
    descriptor = truth = pairs = None
    norms: tuple[ScoreNorm, ...] = ()
    image_sets.check_k(options.k, problems)
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    with problems.noting():
        truth = find_truth(options.ground_truth, [options.data, options.features])
    folders = {"queries": options.queries, "references": options.references, "training": options.training}
    found = find_sets(job, folders, problems)
    queries, references, training = found["queries"], found["references"], found["training"]
    with problems.noting():
        norms = parse_norms(options.score_norm or DEFAULT_NORM)
    if truth is not None and queries is not None and references is not None:
        pairs = true_pairs(truth.pairs, queries.names, references.names, problems)
    codecs = image_sets.asked_codecs(options)
    image_sets.check_codecs(codecs, queries, training, problems)
    _check_norms(options, norms, training, problems)
    if problems.lines or truth is None or queries is None or references is None or pairs is None:
        raise Problems(problems.lines)
    sets = DiscSets(queries, references, training, pairs)
    inputs = {"ground truth": truth.digest, **image_sets.digests(sets.all, descriptor)}
    notes = [*preprocessing_notes(options, descriptor), *sets.leakage_notes()]
    if training is None:
        norms = ()
        notes.append("No training set: codecs and score normalisation that need one are left out.")
    if job.limit is not None:
        sets = sets.limited(job.limit, training=max((norm.last + 1 for norm in norms), default=0))
        notes.append(f"LIMITED: the first {job.limit:,} queries, their references and the first others were used.")
    return DiscPlan(job, inputs, sets, descriptor, codecs, norms, tuple(notes))


def _check_norms(
    options: DiscOptions, norms: tuple[ScoreNorm, ...], training: ImageSet | None, problems: ProblemList
) -> None:
    if training is not None:
        for line in [norm.problem(len(training)) for norm in norms]:
            if line is not None:
                problems.add(f"--score-norm: {line}")
    elif options.score_norm and norms:
        problems.add("--score-norm: needs a training set; give --training, or vectors of one, or --score-norm none")


@dataclass(frozen=True)
class DiscPlan:
    """A job that begins with images or vectors, which were found and agree with each other."""

    job: Job[DiscOptions]
    inputs: dict[str, str]
    sets: DiscSets
    descriptor: ImageSpec | None
    codecs: tuple[str, ...]  # none: the published list, once dimension and lengths are known
    norms: tuple[ScoreNorm, ...]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        counts = ", ".join(f"{len(images):,} {images.role}" for images in self.sets.all)
        return f"{counts}, {len(self.sets.truth):,} true pairs"

    @property
    def trial(self) -> Trial:
        return image_sets.trial(self.job, self.sets.all, self.descriptor, self.notes)

    def execute(self, run: Run) -> Outcome:
        job, options, sets = self.job, self.job.options, self.sets
        described = image_sets.describe(run, job, sets.all, self.descriptor)
        vectors = {role: one.vectors for role, one in described.items()}
        note_constant_sets(run, vectors)
        facts = {role: vector_facts(run, one) for role, one in vectors.items()}
        codecs = self.codecs or image_sets.published_codecs(facts)

        by_codec, failed = image_sets.project(run, codecs, vectors, vectors.get("training"), job.seed)
        found = {
            one.variant: one
            for codec, projected in by_codec.items()
            for one in find_candidates(run, codec, projected, self.norms, options.k, job.shard_size)
        }
        norms = (NO_NORM, *map(str, self.norms))
        order = [Variant(codec, norm, kind) for norm in norms for codec in codecs for kind in CANDIDATE_KINDS]
        candidates = [found[variant] for variant in order if variant in found]
        truth = sets.readable_truth(described)
        scores = run.each(score_candidates, candidates, truth, len(sets.queries), job.seed, version=1)
        scored = dict(zip([one.variant for one in candidates], run.read_each(scores), strict=True))

        kind = CANDIDATE_KINDS[options.global_candidates]
        chosen = [variant for variant in order if variant.candidates == kind]
        shown = [one for one in candidates if one.variant.candidates == kind]
        skipped = image_sets.skipped_images(sets.all, described)
        lost = _skip_notes(len(skipped), len(sets.truth) - len(truth))
        notes = (note_of(HEADLINE), *self.notes, *leakage_notes(run, facts), *lost, *failed)
        main = disc_table(scored, chosen, options.metadata, notes)

        run.write("curves/{name}.parquet", pooled_curve_file, candidates, scores)
        self._write_predictions(run, shown)
        if options.export_descriptors:
            self._write_descriptors(run, vectors)
        samples = disc_samples(run, shown, truth, sets.queries.names, sets.references.names)
        pictures = draw_mistakes(run, shown[:1], truth, sets.queries, sets.references, _threshold(scored, shown[:1]))
        return Outcome(
            main,
            (*further_disc_tables(scored, order), *disc_ties(run, shown, truth, scored)),
            skipped,
            {
                "queries": len(sets.queries),
                "references": len(sets.references),
                "k": options.k,
                "candidates": kind,
                "variants": {(one.codec, one.score_norm) for one in chosen},
            },
            tuple(pictures),
            samples,
        )

    def _write_predictions(self, run: Run, shown: list[Candidates]) -> None:
        """Each row of the main table as predictions.csv in a folder of its own, the first also by the plain name."""
        names = self.sets.queries.names, self.sets.references.names
        run.write("results/predictions.csv", predictions_file, shown[:1], *names)
        run.write("results/{name}/predictions.csv", predictions_file, shown, *names)

    def _write_descriptors(self, run: Run, vectors: Mapping[str, VectorSet]) -> None:
        """A file for each set, and a submission of queries and references."""
        image_sets.export_descriptors(run, self.sets.all, vectors)
        queries, references = self.sets.queries.names, self.sets.references.names
        submission = submission_file("submission", vectors["queries"], queries, vectors["references"], references)
        run.write("results/{name}.h5", isc_content, [submission])


def find_candidates(
    run: Run,
    codec: str,
    sets: Mapping[str, VectorSet],
    norms: tuple[ScoreNorm, ...],
    k: int,
    shard_size: int | None,
) -> Iterator[Candidates]:
    """One search serves both kinds of candidates and every normalisation, whose scores are inner products."""
    how: dict[str, Any] = {"device": "gpu" if run.gpus else "cpu", "shard_size": shard_size}
    queries, references = sets["queries"], sets["references"]
    distances = ("squared_L2", "ip") if norms else ("squared_L2",)
    found = search_sets_by(distances, run, queries, references, k, **how, global_candidates=True)
    yield from _both_kinds(run, codec, NO_NORM, found["squared_L2"], None)
    if norms:
        biases = query_biases(run, queries, sets["training"], norms, **how)
        for norm, bias in zip(norms, biases, strict=True):
            yield from _both_kinds(run, codec, str(norm), found["ip"], bias)


def _both_kinds(run: Run, codec: str, norm: str, found: FoundNeighbours, bias: PerItem | None) -> Iterator[Candidates]:
    yield Candidates(Variant(codec, norm, "knn"), nearest_pairs(run, found, bias))
    yield Candidates(Variant(codec, norm, "global"), global_pairs(run, found, bias))


def _threshold(scored: Mapping[Variant, Arrays], shown: list[Candidates]) -> Threshold:
    """That of the row whose mistakes are drawn."""
    return Threshold(float(scored[shown[0].variant]["threshold_at"][0]) if shown else float("nan"))


def _skip_notes(images: int, pairs: int) -> Iterable[str]:
    if images:
        yield f"SKIPPED: {images:,} images could not be read; {pairs:,} true pairs are left out with them."


def predictions_file(candidates: Candidates, queries: Names, references: Names) -> bytes:
    """Candidates in the ISC format, by query, then falling score."""
    found = candidates.read()
    order = np.lexsort((found.reference, -found.score, found.query))
    names = queries.take(found.query[order]), references.take(found.reference[order])
    return write_predictions(*names, found.score[order])


BENCHMARK = Benchmark(
    name="disc2021",
    options=DiscOptions,
    prepare=prepare,
    keys=VARIANT_COLUMNS[:2],
    figures=columns_of(HEADLINE),
    fractions=DISC_FRACTIONS,
    can_skip=True,
    main_table="disc_metrics",
    gallery=stored_cases,
    cases=disc_cases,
)
