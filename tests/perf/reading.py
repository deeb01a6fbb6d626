"""Parsing the 2016 text files: `.pairs`, `.results` and CSV descriptors, against a line loop and np.loadtxt."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.formats import hbench
from tests.perf import scene
from tests.perf.figures import Figure, best_of_each
from tests.perf.full_size import csv_of_bytes

ROUNDS = 3
WHOLE_TARGET = 4.0  # 150 MB/s where the parser has 32
CSV_FILES, CSV_SAMPLE = 100, 10  # files that ours reads; files that np.loadtxt is timed on


def figures(folder: Path) -> Iterator[Figure]:
    """Each from bytes in memory to arrays, on one thread. Nothing is read from `folder`."""
    pairs = pairs_file()
    ours, loop = best_of_each(lambda: hbench.read_pairs(pairs, "made"), lambda: loop_over_pairs(pairs), ROUNDS)
    yield Figure("1,000,000 lines of .pairs", ours, "line loop", loop, note=_rate(len(pairs), ours))

    results = results_file()
    ours, loop = best_of_each(
        lambda: hbench.read_distances(results, "made"), lambda: loop_over_results(results), ROUNDS
    )
    yield Figure("1,200,000 lines of .results", ours, "line loop", loop, note=_rate(len(results), ours))

    files = [descriptor_file(seed) for seed in range(CSV_SAMPLE)]
    ours, sample = best_of_each(
        lambda: [hbench.read_descriptors(files[i % CSV_SAMPLE], "made") for i in range(CSV_FILES)],
        lambda: [np.loadtxt(io.BytesIO(data), delimiter=",") for data in files],
        ROUNDS,
    )
    size = sum(map(len, files)) * CSV_FILES // CSV_SAMPLE
    what = f"{CSV_FILES} CSV files of {scene.PATCHES} x {scene.DIMENSION}"
    yield Figure(what, ours, "np.loadtxt", sample * CSV_FILES / CSV_SAMPLE, note=_rate(size, ours))

    files = [whole_file(seed) for seed in range(CSV_SAMPLE)]
    ours, parser = best_of_each(
        lambda: [hbench.read_descriptors(data, "made") for data in files],
        lambda: [hbench.read_numbers(data, "made", ",") for data in files],
        ROUNDS,
    )
    note = _rate(sum(map(len, files)), ours)
    yield Figure(f"{CSV_SAMPLE} of them in whole numbers", ours, "pyarrow.csv", parser, WHOLE_TARGET, note)
    ours, parser = best_of_each(
        lambda: [hbench.descriptors_shape(data, "made") for data in files],
        lambda: [(data.count(b"\n"), data.count(b",")) for data in files],
        ROUNDS,
    )
    yield Figure("their lines and values counted", ours, "bytes.count", parser, note=_rate(sum(map(len, files)), ours))


def pairs_file() -> bytes:
    """A million lines `SEQ.IM.K,SEQ.IM.K`."""
    pairs = scene.pairs(0, 1_000_000)
    names = [f"v_scene{i // scene.IMAGES:02d}.e{i % scene.IMAGES}" for i in range(scene.SEQUENCES * scene.IMAGES)]
    columns = (pairs.a_image, pairs.a_patch, pairs.b_image, pairs.b_patch)
    lines = zip(*(column.tolist() for column in columns), strict=True)
    return "".join(f"{names[a]}.{j},{names[b]}.{k}\n" for a, j, b, k in lines).encode()


def results_file() -> bytes:
    """As many lines `distance,label` as the classification bench has pairs, with every digit."""
    rng = np.random.default_rng(0)
    return hbench.write_distances(
        rng.uniform(0.0, 20.0, scene.POSITIVES + scene.NEGATIVES), rng.random(1_200_000) < 0.2
    )


def descriptor_file(seed: int) -> bytes:
    """One patch image's vectors, six decimals a value, as extraction scripts write them."""
    text = io.BytesIO()
    values = np.random.default_rng(seed).standard_normal((scene.PATCHES, scene.DIMENSION))
    np.savetxt(text, values, "%.6f", delimiter=",")
    return text.getvalue()


def whole_file(seed: int) -> bytes:
    """The same in whole numbers from 0 to 255, as SIFT has them."""
    values = np.random.default_rng(seed).integers(0, 256, (scene.PATCHES, scene.DIMENSION))
    return csv_of_bytes(values.astype(np.uint8))


def loop_over_pairs(data: bytes) -> tuple[NDArray[Any], ...]:
    """The plain way: split each line, number each image when it is first seen."""
    images: dict[str, int] = {}
    rows = []
    for line in io.StringIO(data.decode()):
        a, b = line.rstrip("\n").split(",")
        a_image, a_patch = a.rsplit(".", 1)
        b_image, b_patch = b.rsplit(".", 1)
        codes = images.setdefault(a_image, len(images)), images.setdefault(b_image, len(images))
        rows.append((codes[0], int(a_patch), codes[1], int(b_patch)))
    return tuple(np.array(rows, np.int32).T)


def loop_over_results(data: bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    """The plain way: split each line, append to two lists."""
    distances, labels = [], []
    for line in io.StringIO(data.decode()):
        distance, label = line.split(",")
        distances.append(float(distance))
        labels.append(int(label) == 1)
    return np.array(distances), np.array(labels)


def _rate(size_bytes: int, seconds: float) -> str:
    return f"{size_bytes / 1e6:,.0f} MB at {size_bytes / 1e6 / seconds:,.0f} MB/s"
