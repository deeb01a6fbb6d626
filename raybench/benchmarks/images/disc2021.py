"""DISC2021 copy detection: which references are the queries copies of, over all queries in one pool?

Follows the SSCD evaluation (Pizzi et al. 2022) and the ISC 2021 metrics: descriptors by codec, ten nearest references
per query (score: minus the squared distance) or the best pairs over all, score normalisation by training images, and
µAP with wrong ones first among equal scores. Candidates are the pairs that a search proposes for scoring, predictions
what a file in the ISC format holds, true pairs what the ground truth says. The search itself is `image_search`.
"""

from __future__ import annotations

from dataclasses import dataclass

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.asked_cases import disc_cases
from raybench.benchmarks.images.disc_options import DiscOptions
from raybench.benchmarks.images.disc_sets import find_sets, find_truth, true_pairs
from raybench.benchmarks.images.figures import (
    DISC_FRACTIONS,
    HEADLINE,
    VARIANT_COLUMNS,
    candidate_tables,
    disc_table,
)
from raybench.benchmarks.images.finished_predictions import PredictionsPlan, prepare_predictions
from raybench.benchmarks.images.image_options import check_ways_in
from raybench.benchmarks.images.image_search import ImageSearch
from raybench.benchmarks.images.labelled_sets import Labels
from raybench.benchmarks.images.samples import disc_samples
from raybench.benchmarks.images.ties import disc_ties
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.engine.run import Run
from raybench.errors import ProblemList
from raybench.extract.trials import Trial
from raybench.table import columns_of, note_of


def prepare(job: Job[DiscOptions]) -> DiscPlan | PredictionsPlan:
    """Read and check every file that the job rests on; raises all problems together."""
    check_ways_in(job, ("descriptor", "features", "results"))
    return prepare_predictions(job, job.options.results) if job.options.results else _prepare_sets(job)


def _prepare_sets(job: Job[DiscOptions]) -> DiscPlan:
    options, problems = job.options, ProblemList()
    descriptor = truth = labels = None
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    with problems.noting():
        truth = find_truth(options.ground_truth, [options.data, options.features])
    folders = {"queries": options.queries, "references": options.references, "training": options.training}
    found = find_sets(job, folders, problems)
    queries, references = found["queries"], found["references"]
    if truth is not None and queries is not None and references is not None:
        labels = Labels.plain(true_pairs(truth.pairs, queries.names, references.names, problems))
    digest = "" if truth is None else truth.digest
    return DiscPlan(ImageSearch.of(job, descriptor, found, labels, digest, problems))


@dataclass(frozen=True)
class DiscPlan:
    """A job that begins with images or vectors, which were found and agree with each other."""

    search: ImageSearch

    @property
    def inputs(self) -> dict[str, str]:
        return self.search.inputs

    @property
    def summary(self) -> str:
        return self.search.sets.summary

    @property
    def trial(self) -> Trial:
        return self.search.trial

    def execute(self, run: Run) -> Outcome:
        search, sets, options = self.search, self.search.sets, self.search.job.options
        searched = search.perform(run)
        truth, scored, shown = searched.labels.relevant, searched.scored, searched.shown
        main = disc_table(scored, searched.chosen, options.metadata, (note_of(HEADLINE), *searched.notes))
        search.write_results(run, searched)
        samples = disc_samples(run, shown, truth, sets.queries.names, sets.references.names)
        pictures = search.draw(run, searched)
        further = (*candidate_tables("disc", scored, searched.order), *disc_ties(run, shown, truth, scored))
        facts = {
            "queries": len(sets.queries),
            "references": len(sets.references),
            "k": options.k,
            "candidates": searched.kind,
            "variants": {(one.codec, one.score_norm) for one in searched.chosen},
        }
        return Outcome(main, further, searched.skipped, facts, pictures, samples)


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
