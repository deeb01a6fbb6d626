"""disc2021 from finished predictions: the file is checked and read in blocks, then scored like any candidates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from raybench import storage
from raybench.benchmarks.images.disc_options import DiscOptions
from raybench.benchmarks.images.disc_sets import find_truth
from raybench.benchmarks.images.figures import (
    HEADLINE,
    Candidates,
    Variant,
    candidate_tables,
    disc_table,
    pooled_curve_file,
    score_candidates,
)
from raybench.benchmarks.images.samples import disc_samples
from raybench.benchmarks.images.search_options import NO_NORM
from raybench.benchmarks.images.ties import disc_ties
from raybench.benchmarks.job import Job, Outcome
from raybench.engine.run import Run
from raybench.errors import DataError, ProblemList, Problems
from raybench.extract.trials import NoTrial, Trial
from raybench.formats.disc_predictions import (
    LineBlock,
    check_predictions,
    match_tables,
    read_block,
)
from raybench.formats.names import Names
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import TruePairs
from raybench.table import note_of

FROM_FILE = Variant("None", NO_NORM, "predictions")


def prepare_predictions(job: Job[DiscOptions], results: str) -> PredictionsPlan:
    options, problems = job.options, ProblemList()
    inside = storage.join(results, "predictions.csv")  # a folder is meant by its file, such as a run's own results/
    uri = inside if not results.endswith(".csv") and storage.exists(inside) else results
    truth = predictions = None
    with problems.noting():
        truth = find_truth(options.ground_truth, [options.data, options.features, uri.rpartition("/")[0]])
    with problems.noting(), _opened(uri) as file:
        predictions = check_predictions(file, uri, options.max_predictions)
    if truth is None or predictions is None:
        raise Problems(problems.lines)
    matched = match_tables(truth.pairs, predictions)
    pairs = TruePairs.of(matched.true_query, matched.true_reference)
    blocks = tuple(PredictionsBlock(uri, predictions.digest, block) for block in predictions.blocks)
    inputs = {"ground truth": truth.digest, "predictions": predictions.digest}
    return PredictionsPlan(job, inputs, pairs, matched.queries, matched.references, blocks, predictions.count)


@contextmanager
def _opened(uri: str) -> Iterator[BinaryIO]:
    """A predictions file to read from, a remote one in its node-local copy."""
    try:
        with storage.fetch(uri).open("rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected predictions: query,reference,score lines") from None
    except IsADirectoryError:
        raise DataError(f"{uri}: is a folder without predictions.csv; name a file of query,reference,score") from None


@dataclass(frozen=True)
class PredictionsBlock:
    """Some lines of a file in the ISC format: its URI, the digest of its whole content, and which lines."""

    uri: str
    file_digest: str
    lines: LineBlock

    @property
    def name(self) -> str:
        return f"{self.uri}: lines from {self.lines.first_line:,}"


@dataclass(frozen=True)
class PredictionsPlan:
    """A job that begins with finished predictions."""

    job: Job[DiscOptions]
    inputs: dict[str, str]
    truth: TruePairs
    queries: Names
    references: Names
    blocks: tuple[PredictionsBlock, ...]
    count: int

    @property
    def summary(self) -> str:
        return f"{self.count:,} predictions, {len(self.truth):,} true pairs"

    @property
    def trial(self) -> Trial:
        return NoTrial()

    def execute(self, run: Run) -> Outcome:
        read = run.each(load_predictions, self.blocks, self.queries, self.references, version=1)
        candidates = [Candidates(FROM_FILE, read)]
        scores = run.each(score_candidates, candidates, self.truth, len(self.queries), self.job.seed, version=1)
        scored = {FROM_FILE: run.read(scores, 0)}
        run.write("curves/{name}.parquet", pooled_curve_file, candidates, scores)
        samples = disc_samples(run, candidates, self.truth, self.queries, None)
        return Outcome(
            disc_table(scored, [FROM_FILE], self.job.options.metadata, [note_of(HEADLINE)]),
            (*candidate_tables("disc", scored, [FROM_FILE]), *disc_ties(run, candidates, self.truth, scored)),
            facts={
                "queries": len(self.queries),
                "references": len(self.references),
                "k": None,
                "candidates": FROM_FILE.candidates,
                "variants": set(),
            },
            samples=samples,
        )


def load_predictions(block: PredictionsBlock, queries: Names, references: Names) -> Arrays:
    """The pairs of some lines of a file, by index in these names."""
    with _opened(block.uri) as file:
        query, reference, score = read_block(file, block.lines, block.uri)
    return {
        "query": queries.indices(query).astype(np.int32),
        "reference": references.indices(reference).astype(np.int32),
        "score": score,
    }
