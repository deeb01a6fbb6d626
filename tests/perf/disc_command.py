"""`raybench run disc2021 --features` as a user waits for it, against a plain script with FAISS that holds everything.

Two codecs with and without score normalisation. The script has no global candidates, no predictions, curves, report or
checkpoints; it reads the files, whitens, searches with two threads, and takes µAP of ten neighbours per query.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from tests.perf.figures import Figure, Memory
from tests.perf.full_size import raybench
from tests.perf.search_memory import Watched

DIMENSION, THREADS, K = 256, 2, 10
CODECS = ("Flat", f"PCAW{DIMENSION},L2norm,Flat")
ROWS_AT_ONCE = 100_000
MOST_BYTES = 900e6  # private, of any process: torch, and shards that are loaded, computed and published at once


@dataclass(frozen=True)
class Size:
    """How many vectors there are; half of the queries have one true reference."""

    queries: int
    references: int
    training: int


def figures(folder: Path) -> Iterator[Figure | Memory]:
    """A fifth of the references: a plain script needs seconds, so that what a run costs beside its search shows."""
    yield from _of_size(folder, Size(4_000, 200_000, 100_000), target=None)


def full(folder: Path) -> Iterator[Figure | Memory]:
    """10,000 queries, 1 M references, 200,000 training vectors: 3 GB in the temporary folder."""
    yield from _of_size(folder, Size(10_000, 1_000_000, 200_000), target=1.5)


def _of_size(folder: Path, size: Size, target: float | None) -> Iterator[Figure | Memory]:
    make_features(folder / "features", size)
    with Watched() as watched:
        out = folder / "out"
        command = raybench(
            *("run", "disc2021", "--features", str(folder / "features"), "--out", str(out), "--ray", "local"),
            *("--cpus", str(THREADS), "--codecs", ";".join(CODECS), "--progress", "none"),
        )
    seconds, found = _plain(folder / "features")
    _compare(out / "disc_metrics.csv", found)
    stages: dict[str, float] = {}
    for stage in json.loads((out / "manifest.json").read_text())["stages"]:
        stages[stage["name"]] = stages.get(stage["name"], 0.0) + stage["seconds"]
    largest = sorted(stages.items(), key=lambda one: -one[1])[:5]
    note = "seconds of its longest stages: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in largest)
    what = f"disc2021, {size.queries:,} x {size.references:,}, {DIMENSION}-d, two codecs, score norm"
    yield Figure(what, command.seconds, f"plain FAISS, {THREADS} threads", seconds, target, note)
    yield Memory("its largest process, private", max(watched.peak_bytes.values()), MOST_BYTES)


def make_features(folder: Path, size: Size) -> None:
    """Vectors of length 1 in HDF5 files; the first half of the queries are noisy copies of the first references."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    copies = size.queries // 2
    for name, count in (("references", size.references), ("training", size.training), ("queries", size.queries)):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            vectors = file.create_dataset("vectors", (count, DIMENSION), np.float32)
            for start in range(0, count, ROWS_AT_ONCE):
                rows = random.standard_normal((min(ROWS_AT_ONCE, count - start), DIMENSION), np.float32)
                vectors[start : start + len(rows)] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            file["image_names"] = np.array([f"{name[0].upper()}{i:07d}" for i in range(count)], "S8")
    with h5py.File(folder / "references.h5") as references, h5py.File(folder / "queries.h5", "r+") as queries:
        noise = random.standard_normal((copies, DIMENSION), np.float32) * random.uniform(0, 0.15, (copies, 1))
        rows = references["vectors"][:copies] + noise.astype(np.float32)
        queries["vectors"][:copies] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    lines = [f"Q{i:07d},R{i:07d}\n" for i in range(copies)]
    (folder / "val_groundtruth_matches.csv").write_text("query_id,reference_id\n" + "".join(lines))


def _plain(folder: Path) -> tuple[float, dict[str, float]]:
    """Seconds of the plain script in a process of its own, imports and reading included, and its µAP by row."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))
    started = time.monotonic()
    command = [sys.executable, "-m", "tests.perf.disc_command", str(folder)]
    said = subprocess.run(command, env={**os.environ, **threads}, check=True, capture_output=True, text=True).stdout
    return time.monotonic() - started, json.loads(said)


def _compare(table: Path, found: dict[str, float]) -> None:
    with table.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows:
        ours, plain = float(row["uAP"]), found[f"{row['codec']} {row['score_norm']}"]
        assert abs(ours - plain) < 1e-3, f"{row['codec']} {row['score_norm']}: uAP {ours}, by the plain script {plain}"


def plain_micro_ap(folder: Path) -> dict[str, float]:
    """µAP of ten neighbours per query by codec and score norm `1.0[0,2]`, by FAISS alone."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    sets: dict[str, NDArray[np.float32]] = {}
    for name in ("queries", "references", "training"):
        with h5py.File(folder / f"{name}.h5") as file:
            sets[name] = file["vectors"][:]
    found = {}
    for codec in CODECS:
        queries, references, training = (_transformed(faiss, codec, sets, name) for name in sets)
        distance, place = faiss.knn(queries, references, K)
        found[f"{codec} None"] = _micro_ap(-distance, place, len(queries) // 2)
        near, _ = faiss.knn(queries, training, 3, metric=faiss.METRIC_INNER_PRODUCT)
        score, place = faiss.knn(queries, references, K, metric=faiss.METRIC_INNER_PRODUCT)
        found[f"{codec} 1.00[0,2]"] = _micro_ap(score - near.mean(axis=1, keepdims=True), place, len(queries) // 2)
    return found


def _transformed(faiss: Any, codec: str, sets: dict[str, NDArray[np.float32]], name: str) -> NDArray[np.float32]:
    if codec == "Flat":
        return sets[name]
    index = faiss.index_factory(DIMENSION, codec)
    index.train(sets["training"])
    rows = sets[name]
    for number in range(index.chain.size()):
        rows = index.chain.at(number).apply(rows)
    return rows


def _micro_ap(score: NDArray[np.float32], place: NDArray[np.int64], copies: int) -> float:
    right = (place == np.arange(len(place))[:, None]) & (np.arange(len(place)) < copies)[:, None]
    order = np.lexsort((right.reshape(-1), -score.reshape(-1)))
    hits = right.reshape(-1)[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / copies)


if __name__ == "__main__":
    print(json.dumps(plain_micro_ap(Path(sys.argv[1]))))
