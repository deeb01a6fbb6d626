"""The pairs stage of hbench-classification on a local Ray that is up and warm, against the same stage inline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.ray_core import RayExecutor, connect
from raybench.engine.run import Executor, Run
from raybench.extract.patches import Features
from raybench.search.pairs import Pairs, pair_distances
from tests.perf import scene
from tests.perf.figures import Best, Figure

ROUNDS = 3
TINY_SHARDS, TINY_PAIRS = 500, 20  # pairs in each: next to no work, so that what a shard costs is seen

Timed = Callable[[Executor, Pairs, int | None], float]


def figures(folder: Path) -> Iterator[Figure]:
    """One and two actors over 1.2 M pairs, then what a shard costs. Ratio above 1: Ray is faster than inline."""
    inline = InlineExecutor(Observer())
    stored = scene.features(Run(f"{folder}/features/out", f"{folder}/features/store", inline, Observer()))
    timed = partial(_stage_seconds, folder, itertools.count(), stored)
    two = connect("local", cpus=2, gpus=0, device="cpu", observer=Observer())
    one = RayExecutor(Observer(), 1, 0, insist_on_gpus=False, owned=False)
    try:
        # Two actors hold both CPUs of this Ray: those of one executor end before the other's start.
        yield from _of_actors("1 actor", timed, inline, one)
        one.close()
        yield from _of_actors("2 actors", timed, inline, two)
    finally:
        two.close()


def _of_actors(actors: str, timed: Timed, inline: Executor, ray: Executor) -> Iterator[Figure]:
    many = scene.pairs()
    few = scene.pairs(TINY_SHARDS * TINY_PAIRS // 2, TINY_SHARDS * TINY_PAIRS // 2)
    timed(ray, few, len(few) // 2)  # actors up, modules imported
    own, base = _best(timed, ray, inline, many, None)
    yield Figure(f"{len(many):,} pairs, {actors}", own, "inline", base)
    own, base = _best(timed, ray, inline, few, TINY_PAIRS)
    cost = (own - base) * 1_000 / TINY_SHARDS
    note = f"{cost:.2f} ms per shard beyond the {base * 1_000 / TINY_SHARDS:.2f} ms that it takes inline"
    yield Figure(f"{TINY_SHARDS} shards of {TINY_PAIRS} pairs, {actors}", own, "inline", base, note=note)


def _best(timed: Timed, ray: Executor, inline: Executor, pairs: Pairs, size: int | None) -> tuple[Best, Best]:
    turns = [(timed(ray, pairs, size), timed(inline, pairs, size)) for _ in range(ROUNDS)]
    return Best([own for own, _ in turns]), Best([base for _, base in turns])


def _stage_seconds(
    folder: Path, rounds: Iterator[int], stored: Features, executor: Executor, pairs: Pairs, size: int | None
) -> float:
    """Seconds of the pairs stage alone, into a new store, with features that this process has not opened."""
    place = f"{folder}/round-{next(rounds)}"
    run = Run(f"{place}/out", f"{place}/store", executor, Observer())
    features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
    pair_distances(run, features, pairs, "L2", size)
    return next(record.seconds for record in run.records if record.name == "pairs")
