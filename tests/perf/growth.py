"""Four walks at 1, 4 and 16 times the data on one and on two cores: what an item takes as data grows, and the gain.

From inputs on disk to the walk's end, on actors that are up and warm, wall seconds. Linear growth is a ratio of 1
(below: what each stage costs once weighs less); the gain of a second core is bounded by what the driver does alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.task_files import ListSizes, hpatches_tasks
from raybench.descriptors.image_descriptors import resolve_images
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.ray_core import RayExecutor, connect
from raybench.engine.run import Executor, Run
from raybench.extract.images import Extraction, describe_images
from raybench.extract.vector_set import VectorSet
from raybench.formats.images import Preprocess
from raybench.runs.jobs import make_job
from raybench.search.set_search import search_sets
from raybench.sources.image_files import ImageFiles
from tests.perf import ceilings, flow
from tests.perf.figures import Measured, wall_seconds_of
from tests.perf.full_size import Scale, make_features
from tests.perf.search import made_up

FACTORS, CORES, ROUNDS = (1, 4, 16), (1, 2), 3
SEQUENCES, PATCHES, PAIRS = 2, 300, 2_000
QUERIES, REFERENCES, DIMENSION, K = 2_048, 8_192, 256, 10
PICTURES, DIFFERENT = 32, 16
FLOW_PAIRS = 6
MOST_GROWTH = 1.15  # of the seconds of an item from the least data to the most

Walk = Callable[[Run], object]


@dataclass(frozen=True)
class Sweep:
    """A walk over data of each size: what its items are, how many there are, and what is done with a new run."""

    what: str
    items: str
    counts: Mapping[int, int]
    walks: Mapping[int, Walk]


def figures(folder: Path) -> Iterator[Measured]:
    """One sweep after the other; sizes and cores take turns within each."""
    # Three logical CPUs: the actors of both executors stay up, and those of one rest while the other's work.
    owner = connect("local", cpus=sum(CORES), gpus=0, device="cpu", observer=Observer())
    executors = {cores: RayExecutor(Observer(), cores, 0, insist_on_gpus=False, owned=False) for cores in CORES}
    try:
        for number, make in enumerate((verification, search, extraction, tss)):
            place = folder / str(number)
            place.mkdir()
            yield from swept(make(place), executors, place)
    finally:
        for executor in (*executors.values(), owner):
            executor.close()


def swept(sweep: Sweep, executors: Mapping[int, Executor], folder: Path) -> Iterator[Measured]:
    """Seconds of an item at most data, its growth from least to most, and how much faster two cores are."""
    numbers = itertools.count()

    def seconds(factor: int, cores: int) -> float:
        place = f"{folder}/run-{next(numbers)}"
        run = Run(f"{place}/out", f"{place}/store", executors[cores], Observer())
        return wall_seconds_of(partial(sweep.walks[factor], run))

    for cores in CORES:
        seconds(FACTORS[0], cores)  # modules imported, files in the page cache
    cells = list(itertools.product(FACTORS, CORES))
    turns = [{cell: seconds(*cell) for cell in cells} for _ in range(ROUNDS)]
    least, most = FACTORS[0], FACTORS[-1]
    each = {(factor, cores): [turn[factor, cores] / sweep.counts[factor] for turn in turns] for factor, cores in cells}
    note = "; ".join(
        f"{cores} core{'s' * (cores > 1)}: "
        + ", ".join(f"x{factor} {1e3 * min(each[factor, cores]):.3g} ms" for factor in FACTORS)
        for cores in CORES
    )
    milliseconds = [1e3 * one for one in each[most, 1]]
    what = f"{sweep.what}, {sweep.counts[most]:,} {sweep.items}"
    yield Measured(f"{what}, 1 core", f"ms per {sweep.items[:-1]}", milliseconds, note=note, lower_is_better=True)
    grown = [large / small for large, small in zip(each[most, 1], each[least, 1], strict=True)]
    yield Measured(f"{sweep.what}, x{most} against x{least}, an item", "times the seconds", grown, most=MOST_GROWTH)
    gained = [turn[most, 1] / turn[most, 2] for turn in turns]
    yield Measured(f"{sweep.what}, x{most}, second core", "times as fast", gained)


def verification(folder: Path) -> Sweep:
    """HPatches 2017 verification from CSV files to its tables."""
    counts, walks = {}, {}
    for factor in FACTORS:
        place, half = folder / str(factor), SEQUENCES * factor // 2
        scale = Scale(half, half, PATCHES, PATCHES)
        make_features(place / "features", scale)
        pairs = PAIRS * factor
        patches = {name: dict.fromkeys(_images(place / "features" / name), PATCHES) for name in scale.sequences()}
        for name, text in hpatches_tasks(patches, ListSizes(pairs, pairs, 10, 2, 10), seed=0).items():
            file = place / "tasks" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        given = {"features": f"{place}/features", "tasks": f"{place}/tasks", "split": ["full"]}
        counts[factor] = sum(map(len, patches.values()))
        walks[factor] = partial(evaluate, "hpatches-verification", given)
    return Sweep("verification from CSV", "files", counts, walks)


def search(folder: Path) -> Sweep:
    """Nearest references of queries that are in a store, folded."""
    run = Run(f"{folder}/out", f"{folder}/store", InlineExecutor(Observer()), Observer())
    queries = made_up(run, "queries", QUERIES, DIMENSION)
    counts = {factor: REFERENCES * factor for factor in FACTORS}
    sets = {factor: made_up(run, "references", count, DIMENSION) for factor, count in counts.items()}
    walks = {factor: partial(_searched, queries, references) for factor, references in sets.items()}
    return Sweep(f"search, {QUERIES:,} queries", "references", counts, walks)


def extraction(folder: Path) -> Sweep:
    """A cheap descriptor over JPEGs: headers, decoding, publishing."""
    models = [ceilings.jpeg(number) for number in range(DIFFERENT)]
    counts = {factor: PICTURES * factor for factor in FACTORS}
    for factor, count in counts.items():
        (folder / str(factor)).mkdir()
        for number in range(count):
            (folder / str(factor) / f"{number:05d}.jpg").write_bytes(models[number % DIFFERENT])
    walks = {factor: partial(_described, ImageFiles.scan(f"{folder}/{factor}")) for factor in FACTORS}
    return Sweep("extraction by thumbnail, 1024 x 768", "images", counts, walks)


def tss(folder: Path) -> Sweep:
    """Finished flows of 512 x 384 against truth of 800 x 600, to the tables."""
    counts = {factor: FLOW_PAIRS * factor for factor in FACTORS}
    for factor, count in counts.items():
        flow.make_pairs(folder / str(factor), count)
    given = {
        factor: {"data": f"{folder}/{factor}/Dataset", "results": f"{folder}/{factor}/Results"} for factor in FACTORS
    }
    return Sweep("tss", "pairs", counts, {factor: partial(evaluate, "tss", given[factor]) for factor in FACTORS})


def evaluate(name: str, given: Mapping[str, Any], run: Run) -> object:
    """A benchmark from its inputs to its tables, as `raybench run` does once Ray is up."""
    benchmark = BENCHMARKS[name].open()
    job, _ = make_job(benchmark, {**given, "out": run.out})
    return benchmark.prepare(job).execute(run)


def _images(sequence: Path) -> list[str]:
    return sorted(file.stem for file in sequence.iterdir())


def _searched(queries: VectorSet, references: VectorSet, run: Run) -> object:
    return search_sets(run, queries, references, K, "squared_L2", device="cpu")


def _described(images: ImageFiles, run: Run) -> object:
    how = Extraction(resolve_images("thumbnail", {}, Preprocess()), "cpu")
    return describe_images(run, {"all": images}, how)
