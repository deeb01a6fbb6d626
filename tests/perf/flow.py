"""TSS scores of 800 x 600 pairs: against the plain loop, where the milliseconds go, memory. Growth: see `growth`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from raybench import storage
from raybench.benchmarks.tss import rules_vc, trees
from raybench.benchmarks.tss.scoring import Rules, score_pairs
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.formats.flo import UNKNOWN_PX, write_flo
from raybench.formats.tss import write_png
from tests.perf import published
from tests.perf.figures import Figure, Memory, best_of_each, cpu_seconds_of, peak_resident_bytes

SIZE, SMALL = (600, 800), (384, 512)  # of the truth, and of results as the kit's own are
ROUNDS = 7
PAIRS = 20
ALL_PAIRS = 400
MOST_BYTES = 600e6

Opened = tuple[trees.TruthTree, trees.ResultsTree]


@dataclass(frozen=True)
class Said:
    """A line of the bench that has no baseline."""

    text: str

    def line(self) -> str:
        return self.text


def figures(folder: Path) -> Iterator[Figure | Memory | Said]:
    """Fields alone, then pairs from disk to scores in the store."""
    yield from _fields()
    make_pairs(folder, ALL_PAIRS)
    yield _shares(folder)
    yield _memory(folder)


def _fields() -> Iterator[Figure]:
    """Errors and all fifty thresholds of one field, with every true pixel known and with a third, as in TSS."""
    limits = rules_vc.thresholds_px(SIZE)
    for what, known_share in (("all pixels known", 1.0), ("a third known", 1 / 3)):
        fields = (_field(0, 15.0), _truth(known_share))
        np.testing.assert_allclose(_accuracies(*fields), published.flow_accuracy(*fields, limits), atol=1e-12)
        ours, baseline = best_of_each(
            partial(_accuracies, *fields), partial(published.flow_accuracy, *fields, limits), ROUNDS
        )
        yield Figure(f"800 x 600, {what}", ours, "a pass a threshold", baseline, 1.0)


def _accuracies(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return rules_vc.shares_within(rules_vc.true_pixel_errors(found, truth), rules_vc.thresholds_px(SIZE))


def _field(seed: int, reach: float, size: tuple[int, int] = SIZE) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, reach, (*size, 2)).astype(np.float32)


def _truth(known_share: float) -> np.ndarray:
    truth = _field(1, 10.0)
    truth[:, round(SIZE[1] * known_share) :] = UNKNOWN_PX
    return truth


def make_pairs(folder: Path, count: int) -> None:
    """Dataset and Results trees; pairs are four different ones, linked under many names."""
    models = []
    for model in range(4):
        place = folder / "models" / str(model)
        place.mkdir(parents=True, exist_ok=True)
        files = {}
        for side in (1, 2):
            mask = np.zeros(SIZE, np.uint8)
            mask[:, : SIZE[1] // 3] = 255
            files |= {f"true_flow{side}.flo": write_flo(_truth(1 / 3)), f"true_mask{side}.png": write_png(mask)}
            small = _field(10 * model + side, 15.0, SMALL)
            files |= {f"flow{side}.flo": write_flo(small), f"mask{side}.png": write_png(mask[: SMALL[0], : SMALL[1]])}
        files |= {"true_pair.txt": b"Image1,Image2\na,b\n", "true_flip_gt.txt": b"0"}
        for name, data in files.items():
            (place / name).write_bytes(data)
        models.append(place)
    for pair in range(count):
        for file in models[pair % 4].iterdir():
            tree, name = ("Dataset", file.name[5:]) if file.name.startswith("true_") else ("Results", file.name)
            target = folder / tree / "MADE" / f"{pair:04d}" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, target)


def opened(folder: Path, count: int) -> Opened:
    """Truth and results of the first pairs."""
    true, found = trees.list_truth(f"{folder}/Dataset"), trees.list_results(f"{folder}/Results")
    names = list(true.files)[:count]
    pairs, files = trees.look_at_truth(true, names, images=False), trees.look_at_results(found, names)
    truth = trees.TruthTree.of(true, list(pairs.values()), by_content=False)
    return truth, trees.ResultsTree.of(found, files, by_content=False)


def _run(folder: Path) -> Run:
    name = f"{folder}/runs/{time.monotonic_ns()}"
    return Run(f"{name}/out", f"{name}/store", InlineExecutor(Observer()), Observer())


def _shares(folder: Path) -> Said:
    """Where the milliseconds of a pair go."""
    spent: defaultdict[str, float] = defaultdict(float)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            started = time.process_time()
            try:
                return function(*args)
            finally:
                spent[part] += time.process_time() - started

        return call

    made = opened(folder, PAIRS)
    score_pairs(_run(folder), *made, Rules())  # warm
    with (
        mock.patch.object(storage, "read", timed("reading", storage.read)),
        mock.patch.object(rules_vc, "fitted_flows", timed("resizing flows", rules_vc.fitted_flows)),
        mock.patch.object(rules_vc, "resized_bytes", timed("resizing masks", rules_vc.resized_bytes)),
        mock.patch.object(rules_vc, "true_pixel_errors", timed("error", rules_vc.true_pixel_errors)),
        mock.patch.object(rules_vc, "shares_within", timed("thresholds", rules_vc.shares_within)),
    ):
        whole = cpu_seconds_of(lambda: score_pairs(_run(folder), *made, Rules()))
    spent["the rest (decoding masks, NaN, IoU, publishing)"] = whole - sum(spent.values())
    shares = ", ".join(f"{part} {seconds / whole:.0%}" for part, seconds in spent.items())
    return Said(f"a pair of 800 x 600, results of 512 x 384       {1e3 * whole / PAIRS:.1f} ms CPU: {shares}")


def _memory(folder: Path) -> Memory:
    """Peak resident size of a process that scores all pairs."""
    code = f"from tests.perf import flow; from pathlib import Path; flow.score_all(Path({str(folder)!r}))"
    peak = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return Memory(f"{ALL_PAIRS} pairs of 800 x 600 in one process", int(peak), MOST_BYTES)


def score_all(folder: Path) -> None:
    """Score every pair and print this process' peak resident bytes."""
    score_pairs(_run(folder), *opened(folder, ALL_PAIRS), Rules())
    print(peak_resident_bytes())
