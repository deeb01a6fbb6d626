"""Retrieval of one's own images: do the references that belong to a query stand first in its ranking of all?

Each query ranks all references by distance of their vectors (squared L2; by inner product where scores are normalised,
which adds one number to all scores of a query), equal ones by index. Junk is taken out of the ranking first. Figures,
as trec_eval has them, are means over the queries with at least one relevant reference: AP (precision at each relevant
reference, over all that are relevant), the same cut at k and still over all that are relevant (map_cut), P@k (over k),
recall@k (over all relevant), nDCG (linear gain, log2 discount). µAP is that of disc2021, by the same code: the k best
candidates of every query in one pool; there a query without relevant references has false alarms only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.asked_cases import retrieval_cases
from raybench.benchmarks.images.figures import DISC_FRACTIONS, candidate_tables
from raybench.benchmarks.images.image_search import ImageSearch, Searched
from raybench.benchmarks.images.own_labels import OwnTruth, labels_of, own_notes, own_pairs, truth_uri
from raybench.benchmarks.images.own_sets import find_sets
from raybench.benchmarks.images.retrieval_figures import (
    KEYS,
    MAIN_FIGURES,
    MEANS,
    RETRIEVAL_FRACTIONS,
    Ranking,
    all_means_table,
    graded_notes,
    main_note,
    measure_queries,
    per_query_file,
    query_means,
    retrieval_table,
)
from raybench.benchmarks.images.retrieval_options import RetrievalOptions
from raybench.benchmarks.images.retrieval_ties import retrieval_ties
from raybench.benchmarks.images.samples import retrieval_samples
from raybench.benchmarks.images.search_options import NO_NORM
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import ProblemList
from raybench.extract.trials import Trial
from raybench.search.set_standings import pair_standings
from raybench.table import columns_of, note_of


def prepare(job: Job[RetrievalOptions]) -> RetrievalPlan:
    """Read and check every file that the job rests on; raises all problems together."""
    options, problems, notes = job.options, ProblemList(), list[str]()
    descriptor = truth = labels = None
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    with problems.noting():
        truth = OwnTruth.read(truth_uri(options.ground_truth, options.data, options.features), problems, job.limits)
    found = find_sets(job, problems)
    queries, references = found["queries"], found["references"]
    if truth is not None and queries is not None and references is not None:
        own = own_pairs(queries, references)
        labels = labels_of(truth.relevance, queries, references, own, problems)
        notes += own_notes(queries, references, own)
    search = ImageSearch.of(job, descriptor, found, labels, "" if truth is None else truth.digest, problems)
    return RetrievalPlan(replace(search, notes=(*search.notes, *notes)))


@dataclass(frozen=True)
class RetrievalPlan:
    """A job whose images or vectors were found and agree with each other and with the truth."""

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
        labels, count = searched.labels, len(sets.queries)
        rankings = self._rankings(run, searched)
        measured = run.each(measure_queries, rankings, labels, count, version=1)
        means = run.read_each(run.each(query_means, rankings, measured, version=1))
        by_variant = dict(zip([one.variant for one in rankings], means, strict=True))

        graded = graded_notes(labels, searched.chosen, by_variant)
        notes = (main_note(options.k, not options.global_candidates), *graded, *self._notes(searched))
        main = retrieval_table(searched.chosen, searched.scored, by_variant, options.metadata, notes)
        every = all_means_table(searched.chosen, by_variant, note_of(MEANS))
        search.write_results(run, searched)
        if rankings:
            run.write(
                "tables/per_query.parquet", per_query_file, ["per query"], rankings, measured.whole, sets.queries.names
            )
        pictures = search.draw(run, searched)
        samples = retrieval_samples(run, searched.shown, labels.relevant, rankings, measured, sets)
        ties = retrieval_ties(run, searched.shown, rankings, labels, main)
        further = (every, *candidate_tables("retrieval", searched.scored, searched.order), *ties)
        facts = {"queries": count, "references": len(sets.references), "k": options.k, "candidates": searched.kind}
        return Outcome(main, further, searched.skipped, facts, pictures, samples)

    def _rankings(self, run: Run, searched: Searched) -> list[Ranking]:
        """The rows of the main table; a score norm leaves the order within a query, so standings are by distance."""
        known: dict[tuple[str, str], Mapped] = {}
        rankings = []
        pairs, size = searched.labels.counted.pairs, self.search.job.shard_size
        for row in [one.variant for one in searched.shown] if len(pairs) else []:
            by = row.codec, "squared_L2" if row.score_norm == NO_NORM else "ip"
            if by not in known:
                queries, references = (searched.by_codec[row.codec][role] for role in ("queries", "references"))
                known[by] = pair_standings(run, queries, references, pairs, by[1], size)
            rankings.append(Ranking(row, known[by]))
        return rankings

    def _notes(self, searched: Searched) -> Iterable[str]:
        by = "squared L2 (with a score norm by inner product)" if self.search.norms else "squared L2"
        yield f"Each query ranks all references by {by}, equal ones in name order; junk is taken out first."
        yield from searched.notes
        there = len(self.search.sets.queries) - len(searched.described["queries"].skipped)
        lone = there - len(np.unique(searched.labels.relevant.query))
        if lone:
            yield (
                f"{lone:,} of {there:,} queries have no relevant reference: they are in no mean, and count in uAP, as "
                "false alarms."
            )


BENCHMARK = Benchmark(
    name="image-retrieval",
    options=RetrievalOptions,
    prepare=prepare,
    keys=KEYS,
    figures=columns_of(MAIN_FIGURES),
    fractions=RETRIEVAL_FRACTIONS | DISC_FRACTIONS,
    can_skip=True,
    gallery=stored_cases,
    cases=retrieval_cases,
)
