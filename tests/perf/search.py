"""Search of 10,000 queries in 100,000 references, 256-d and 512-d, by two warm actors, against one call of FAISS."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np

from raybench.digests import digest_of
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.ray_core import connect
from raybench.engine.run import Executor, Run
from raybench.engine.shards import Shard
from raybench.extract.vector_set import VectorSet, vector_arrays
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import TopK
from raybench.search.set_search import search_sets
from tests.perf.figures import Figure, best_of_each

ROUNDS = 2
INLINE_ROUNDS = 2
QUERIES, REFERENCES, K = 10_000, 100_000, 10
DIMENSIONS = 256, 512
ROWS_PER_SHARD = 16_384
THREADS = 2
TARGET = 1.0  # as fast as FAISS, fold and publishing included


@dataclass(frozen=True)
class MadeUp:
    """The stage that makes up vectors of length 1, the same for each shard whenever it is asked."""

    role: str
    dimension: int

    name = "made-up"
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.role, self.dimension)

    def load(self, shard: Shard) -> Shard:
        return shard

    def compute(self, payload: Shard) -> Arrays:
        random = np.random.default_rng([payload.index, len(self.role), self.dimension])
        rows = random.standard_normal((len(payload), self.dimension), np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return vector_arrays(np.arange(payload.start, payload.stop), rows)

    def keys(self, shard: Shard) -> str:
        return f"{self.role} {shard.start}..{shard.stop - 1}"


def made_up(run: Run, what: str, count: int, dimension: int, rows_per_shard: int = ROWS_PER_SHARD) -> VectorSet:
    """A set in the run's store."""
    return VectorSet(what, run.map(MadeUp(what, dimension), count, rows_per_shard), count)


def figures(folder: Path) -> Iterator[Figure]:
    """From sets on disk to the folded neighbours. Rounds take turns; the best of each stands."""
    executor = connect("local", cpus=THREADS, gpus=0, device="cpu", observer=Observer())
    try:
        for dimension in DIMENSIONS:
            yield from _of_dimension(folder / str(dimension), executor, dimension)
    finally:
        executor.close()


def _of_dimension(folder: Path, executor: Executor, dimension: int) -> Iterator[Figure]:
    run = Run(f"{folder}/out", f"{folder}/store", executor, Observer())
    sets = made_up(run, "queries", QUERIES, dimension), made_up(run, "references", REFERENCES, dimension)
    for one in sets:
        np.save(folder / f"{one.role}.npy", np.concatenate([one.read(n)[1] for n in range(len(one.mapped.shards))]))
    for warm in sets:
        search_sets(run, sets[0], warm, 1, "ip", device="cpu", shard_size=50_000)
    turns = [(_ours(folder, number, executor, sets), _baseline(folder)) for number in range(ROUNDS)]
    seconds, shards, nearest = min((own for own, _ in turns), key=lambda own: own[0])
    agreed = float((nearest.reference == np.load(folder / "neighbours.npy")).mean())
    assert agreed > 0.9999, f"only {agreed:.4%} of the neighbours are those of FAISS"
    wide = min(_ours(folder, f"wide-{number}", executor, sets, wide=True)[0] for number in range(INLINE_ROUNDS))
    what = f"{QUERIES:,} x {REFERENCES:,}, {dimension}-d, k = {K}"
    note = f"{shards} shards, publishing and fold included; {agreed:.3%} of the places as FAISS has them"
    baseline = min(other for _, other in turns)
    called = f"faiss.knn, {THREADS} threads"
    yield Figure(what, seconds, called, baseline, TARGET, note)
    yield Figure(f"the same, {4 * K} kept for global candidates", wide, called, baseline)
    rows = np.load(folder / "queries.npy"), np.load(folder / "references.npy")
    inline, numbers = InlineExecutor(Observer()), itertools.count()
    own, other = best_of_each(
        lambda: _ours(folder, f"inline-{next(numbers)}", inline, sets), lambda: faiss.knn(*rows, K), INLINE_ROUNDS
    )
    yield Figure("the same, CPU seconds of one process", own, "faiss.knn, 1 thread", other, TARGET)


def _ours(
    folder: Path, name: object, executor: Executor, sets: tuple[VectorSet, VectorSet], wide: bool = False
) -> tuple[float, int, TopK]:
    run = Run(f"{folder}/round-{name}/out", f"{folder}/round-{name}/store", executor, Observer())
    started = time.perf_counter()
    found = search_sets(run, *sets, K, "squared_L2", device="cpu", global_candidates=wide)
    seconds = time.perf_counter() - started
    return seconds, run.records[0].shards, TopK.from_arrays(found.nearest.read(0))


def _baseline(folder: Path) -> float:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))
    command = [sys.executable, "-m", "tests.perf.search", str(folder)]
    said = subprocess.run(command, env={**os.environ, **threads}, check=True, capture_output=True, text=True).stdout
    return float(said)


if __name__ == "__main__":
    faiss.omp_set_num_threads(THREADS)
    place = Path(sys.argv[1])
    queries, references = np.load(place / "queries.npy"), np.load(place / "references.npy")
    faiss.knn(queries[:2_000], references[:2_000], K)  # threads up
    begun = time.perf_counter()
    _, neighbours = faiss.knn(queries, references, K)
    print(time.perf_counter() - begun)
    np.save(place / "neighbours.npy", neighbours)
