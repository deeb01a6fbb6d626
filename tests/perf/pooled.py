"""Scoring pooled predictions: 500,000 against 10,000 true pairs beside the published loop, and 50 M in blocks."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybench.metrics.micro_ap import Predictions, TruePairs, count_blocks, measure, score_pooled
from tests.perf import published
from tests.perf.figures import Figure, Memory, best_of_each, peak_resident_bytes

ROUNDS = 5
QUERIES, K, REFERENCES, PAIRS = 50_000, 10, 1_000_000, 10_000
TARGET = 15.0
BLOCKS, BLOCK_QUERIES = 50, 1_000  # 1,000 predictions per query: 50 M in blocks of 1 M
MOST_BYTES = 2e9


def figures(folder: Path) -> Iterator[Figure | Memory]:
    """The baseline has lists of tuples in memory, ours arrays; then the peak of a process that scores 50 M."""
    truth, predictions = made()
    pairs = list(zip(truth.query.tolist(), truth.reference.tolist(), strict=True))
    columns = (predictions.query.tolist(), predictions.reference.tolist(), predictions.score.tolist())
    rows = list(zip(*columns, strict=True))
    figure = score_pooled(truth, predictions)
    np.testing.assert_allclose(figure.micro_ap, published.micro_ap(pairs, rows), atol=1e-12)
    ours, baseline = best_of_each(
        lambda: score_pooled(truth, predictions), lambda: published.micro_ap(pairs, rows), ROUNDS
    )
    note = f"µAP {figure.micro_ap:.3f}; ours also has ranks, recalls and thresholds"
    yield Figure(f"{len(rows):,} predictions, {PAIRS:,} pairs", ours, "tuples, sorted", baseline, TARGET, note)
    command = [sys.executable, "-m", "tests.perf.pooled"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    seconds, peak = float(said[0]), int(said[1])
    yield Memory(f"{BLOCKS * BLOCK_QUERIES * 1_000:,} in blocks", peak, MOST_BYTES, f"{seconds:.1f} s")


def made() -> tuple[TruePairs, Predictions]:
    """Ten neighbours of each query in no order, with four fifths of the true pairs among them."""
    random = np.random.default_rng(0)
    query = np.repeat(np.arange(QUERIES), K)
    reference = (random.integers(0, REFERENCES // K, len(query)) * K + np.tile(np.arange(K), QUERIES)).astype(np.int64)
    score = random.normal(size=len(query))
    true = np.sort(random.permutation(QUERIES)[:PAIRS])
    chosen = true * K + random.integers(0, K, PAIRS)
    wanted = reference[chosen]
    wanted[: PAIRS // 5] = REFERENCES  # nobody predicts these
    score[chosen] += 2
    order = random.permutation(len(query))
    return TruePairs.of(true, wanted), Predictions(query[order], reference[order], score[order])


def large_block(number: int) -> Predictions:
    """A thousand neighbours of each of a thousand queries, the same each time."""
    random = np.random.default_rng(number)
    query = np.repeat(np.arange(BLOCK_QUERIES) + number * BLOCK_QUERIES, 1_000)
    reference = np.tile(np.arange(1_000), BLOCK_QUERIES)
    return Predictions(query, reference, random.normal(size=len(query)) + (reference == 7))


def main() -> None:
    """Score 50 M; print seconds and the peak resident size in bytes."""
    queries = np.arange(0, BLOCKS * BLOCK_QUERIES, 5)
    truth = TruePairs.of(queries, np.full(len(queries), 7))
    started = time.perf_counter()
    found, counts = count_blocks(truth, lambda: (large_block(number) for number in range(BLOCKS)))
    figure = measure(truth, found, counts)
    assert 0 < figure.micro_ap < 1
    print(time.perf_counter() - started, peak_resident_bytes())


if __name__ == "__main__":
    main()
