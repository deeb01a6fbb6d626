"""A search of images among images, from sets to scored candidates: what disc2021 and image-retrieval share.

Vectors by codec, the nearest references of each query or the best pairs over all, score normalisation by training
images, and figures of all candidates in one pool. Junk is taken out of the candidates before they are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.figures import Candidates, Variant, pooled_curve_file, score_candidates
from raybench.benchmarks.images.labelled_sets import LabelledSets, Labels
from raybench.benchmarks.images.mistakes import Threshold, draw_mistakes
from raybench.benchmarks.images.preprocessing import preprocessing_notes
from raybench.benchmarks.images.search_options import DEFAULT_NORM, NO_NORM, SearchOptions
from raybench.benchmarks.images.sets import ImageSet
from raybench.benchmarks.images.ties import note_constant_sets
from raybench.benchmarks.job import Job, ReportPicture
from raybench.descriptors.image_descriptors import ImageSpec
from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.errors import ProblemList, Problems
from raybench.extract.images import Described
from raybench.extract.isc_files import isc_content, submission_file
from raybench.extract.trials import Trial
from raybench.extract.vector_set import VectorSet
from raybench.formats.disc import write_predictions
from raybench.formats.names import Names
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import TruePairs
from raybench.search.candidates import global_pairs, nearest_pairs
from raybench.search.running import turns
from raybench.search.score_norm import ScoreNorm, parse_norms, query_biases
from raybench.search.set_search import FoundNeighbours, search_sets_by
from raybench.search.vector_facts import leakage_notes, vector_facts

CANDIDATE_KINDS = ("knn", "global")  # of candidates


@dataclass(frozen=True)
class ImageSearch:
    """A job whose images or vectors were found and agree with each other and with the truth."""

    job: Job[SearchOptions]
    inputs: dict[str, str]
    sets: LabelledSets
    descriptor: ImageSpec | None
    codecs: tuple[str, ...]  # none: the published list, once dimension and lengths are known
    norms: tuple[ScoreNorm, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        job: Job[SearchOptions],
        descriptor: ImageSpec | None,
        found: Mapping[str, ImageSet | None],
        labels: Labels | None,
        truth_digest: str,
        problems: ProblemList,
    ) -> ImageSearch:
        """The search of these sets; raises all problems together. What is None was noted already."""
        options, queries, references, training = job.options, found["queries"], found["references"], found["training"]
        norms: tuple[ScoreNorm, ...] = ()
        image_sets.check_k(options.k, problems)
        with problems.noting():
            norms = parse_norms(options.score_norm or DEFAULT_NORM)
        codecs = image_sets.asked_codecs(options)
        image_sets.check_codecs(codecs, queries, training, problems)
        _check_norms(options, norms, training, problems)
        if problems.lines or queries is None or references is None or labels is None:
            raise Problems(problems.lines)
        sets = LabelledSets(queries, references, training, labels)
        inputs = {"ground truth": truth_digest, **image_sets.digests(sets.all, descriptor)}
        notes = [*preprocessing_notes(options, descriptor), *sets.leakage_notes()]
        if training is None:
            norms = ()
            notes.append("No training set: codecs and score normalisation that need one are left out.")
        if job.limit is not None:
            sets = sets.limited(job.limit, training=max((norm.last + 1 for norm in norms), default=0))
            notes.append(f"LIMITED: the first {job.limit:,} queries, their references and the first others were used.")
        return cls(job, inputs, sets, descriptor, codecs, norms, tuple(notes))

    @property
    def trial(self) -> Trial:
        return image_sets.trial(self.job, self.sets.all, self.descriptor, self.notes)

    def perform(self, run: Run) -> Searched:
        """Describe, project, search and score."""
        job, options, sets = self.job, self.job.options, self.sets
        described = image_sets.describe(run, job, sets.all, self.descriptor)
        vectors = {role: one.vectors for role, one in described.items()}
        note_constant_sets(run, vectors)
        facts = {role: vector_facts(run, one) for role, one in vectors.items()}
        codecs = self.codecs or image_sets.published_codecs(facts)
        labels = sets.readable_labels(described)

        by_codec, failed = image_sets.project(run, codecs, vectors, vectors.get("training"), job.seed)
        looked = {codec: self._search(run, projected, labels) for codec, projected in by_codec.items()}
        found = {one.variant: one for codec in looked for one in self._candidates(run, codec, by_codec, looked, labels)}
        norms = (NO_NORM, *map(str, self.norms))
        order = [Variant(codec, norm, kind) for norm in norms for codec in codecs for kind in CANDIDATE_KINDS]
        candidates = [found[variant] for variant in order if variant in found]
        scores = run.each(score_candidates, candidates, labels.relevant, len(sets.queries), job.seed, version=1)
        scored = dict(zip([one.variant for one in candidates], run.read_each(scores), strict=True))
        skipped = image_sets.skipped_images(sets.all, described)
        lost = _skip_notes(len(skipped), len(sets.labels.relevant) - len(labels.relevant))
        notes = (*self.notes, *leakage_notes(run, facts), *lost, *failed)
        kind = CANDIDATE_KINDS[options.global_candidates]
        return Searched(
            described, by_codec, looked, labels, tuple(order), kind, candidates, scores, scored, skipped, notes
        )

    def _search(self, run: Run, sets: Mapping[str, VectorSet], labels: Labels) -> dict[str, FoundNeighbours]:
        """One search serves both kinds of candidates and every normalisation, whose scores are inner products."""
        distances = ("squared_L2", "ip") if self.norms else ("squared_L2",)
        both = sets["queries"], sets["references"]
        how = {**self._how(run), "global_candidates": True, "spare": most_junk(labels)}
        return search_sets_by(distances, run, *both, self.job.options.k, **how)

    def _candidates(
        self,
        run: Run,
        codec: str,
        by_codec: Mapping[str, Mapping[str, VectorSet]],
        looked: Mapping[str, Mapping[str, FoundNeighbours]],
        labels: Labels,
    ) -> Iterator[Candidates]:
        """The candidates by one codec: of each kind, without a normalisation and by each."""
        sets, found = by_codec[codec], looked[codec]
        yield from self._both_kinds(run, codec, NO_NORM, found["squared_L2"], None, labels)
        if self.norms:
            biases = query_biases(run, sets["queries"], sets["training"], self.norms, **self._how(run))
            for norm, bias in zip(self.norms, biases, strict=True):
                yield from self._both_kinds(run, codec, str(norm), found["ip"], bias, labels)

    def _both_kinds(
        self, run: Run, codec: str, norm: str, found: FoundNeighbours, bias: PerItem | None, labels: Labels
    ) -> Iterator[Candidates]:
        k, queries = self.job.options.k, len(found.queries)
        for kind, pairs in zip(CANDIDATE_KINDS, (nearest_pairs, global_pairs), strict=True):
            listed = pairs(run, found, bias)
            if found.k > k:
                listed = run.each(without_junk, [kind], listed, labels.junk, k, queries, version=1)
            yield Candidates(Variant(codec, norm, kind), listed)

    def _how(self, run: Run) -> dict[str, Any]:
        return {"device": "gpu" if run.gpus else "cpu", "shard_size": self.job.shard_size}

    def write_results(self, run: Run, searched: Searched) -> None:
        """Curves, predictions, and descriptors if they are asked for."""
        run.write("curves/{name}.parquet", pooled_curve_file, searched.candidates, searched.scores)
        names = self.sets.queries.names, self.sets.references.names
        run.write("results/predictions.csv", predictions_file, searched.shown[:1], *names)
        run.write("results/{name}/predictions.csv", predictions_file, searched.shown, *names)
        if self.job.options.export_descriptors:
            vectors = searched.vectors
            image_sets.export_descriptors(run, self.sets.all, vectors)
            submission = submission_file("submission", vectors["queries"], names[0], vectors["references"], names[1])
            run.write("results/{name}.h5", isc_content, [submission])

    def draw(self, run: Run, searched: Searched) -> tuple[ReportPicture, ...]:
        """The worst mistakes of the first row, where there are pictures."""
        shown, sets = searched.shown[:1], self.sets
        limit = float(searched.scored[shown[0].variant]["threshold_at"][0]) if shown else float("nan")
        return tuple(
            draw_mistakes(run, shown, searched.labels.relevant, sets.queries, sets.references, Threshold(limit))
        )


@dataclass(frozen=True)
class Searched:
    """What a search found: candidates of every variant that did not fail, with their scores."""

    described: Mapping[str, Described]
    by_codec: Mapping[str, Mapping[str, VectorSet]]
    found: Mapping[str, Mapping[str, FoundNeighbours]]  # by codec, then by distance
    labels: Labels  # of images that could be read
    order: tuple[Variant, ...]
    kind: str  # of the candidates that the main table is for
    candidates: list[Candidates]
    scores: PerItem
    scored: Mapping[Variant, Arrays]
    skipped: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def vectors(self) -> dict[str, VectorSet]:
        return {role: one.vectors for role, one in self.described.items()}

    @property
    def chosen(self) -> list[Variant]:
        """The variants of the main table, in its order."""
        return [variant for variant in self.order if variant.candidates == self.kind]

    @property
    def shown(self) -> list[Candidates]:
        """The candidates of the main table."""
        return [one for one in self.candidates if one.variant.candidates == self.kind]


def _check_norms(
    options: SearchOptions, norms: tuple[ScoreNorm, ...], training: ImageSet | None, problems: ProblemList
) -> None:
    if training is not None:
        for line in [norm.problem(len(training)) for norm in norms]:
            if line is not None:
                problems.add(f"--score-norm: {line}")
    elif options.score_norm and norms:
        problems.add("--score-norm: needs a training set; give --training, or vectors of one, or --score-norm none")


def _skip_notes(images: int, pairs: int) -> Iterable[str]:
    if images:
        yield f"SKIPPED: {images:,} images could not be read; {pairs:,} true pairs are left out with them."


def most_junk(labels: Labels) -> int:
    """The most junk of a query: so many more neighbours are searched for, so that k are left."""
    return int(np.bincount(labels.junk.query).max(initial=0))


def without_junk(kind: str, listed: Arrays, junk: TruePairs, k: int, queries: int) -> Arrays:
    """Candidates without junk: the first k of each query, or the best k times the queries over all."""
    kept = np.flatnonzero(junk.places(listed["query"], listed["reference"]) < 0)
    by_query = kind == CANDIDATE_KINDS[0]  # then by falling score
    kept = kept[turns(listed["query"][kept]) < k] if by_query else kept[: k * queries]
    return {name: values[kept] for name, values in listed.items()}


def predictions_file(candidates: Candidates, queries: Names, references: Names) -> bytes:
    """Candidates in the ISC format, by query, then falling score."""
    found = candidates.read()
    order = np.lexsort((found.reference, -found.score, found.query))
    names = queries.take(found.query[order]), references.take(found.reference[order])
    return write_predictions(*names, found.score[order])
