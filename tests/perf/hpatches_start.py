"""The 2017 HPatches tables as a user waits for them: seconds from the command to its end, with split `a` of a made set.

1,856 CSV files of whole numbers (0.9 GB), as `full-size` makes them, of which split `a` needs a third; and what
`--help` and `list` take. Beside them stand the published toolbox's loops, timed on a sample and scaled up to the same
tasks; they begin with descriptors in memory.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybench.benchmarks.hpatches.inputs import NOISE_LEVELS
from tests.perf import published
from tests.perf.figures import Wait, cpu_seconds_of
from tests.perf.full_size import DIMENSION, Command, Scale, check_room, make_features, make_tasks, raybench

SPLIT = "a"
TOGETHER, ALONE = 14.0, 10.0  # seconds on the two cores on which `run hpatches` took 27 s, each alone 20 to 26 s
HELP = 0.3  # CPU seconds
SAMPLED_PAIRS, SAMPLED_QUERIES = 20_000, 20


def figures(folder: Path, scale: Scale | None = None) -> Iterator[Wait]:
    """Help first; then the three benchmarks in one command, then each alone, every time into an empty store."""
    scale = scale or Scale()
    check_room(folder)
    for command in ("--help", "list"):
        yield Wait(f"raybench {command}", help_cpu_seconds(command), HELP, "CPU seconds")
    make_features(folder / "features", scale)
    make_tasks(folder, scale)
    loops = published_seconds(scale)
    yield wait_for("hpatches", folder, TOGETHER, sum(loops.values()))
    for task, seconds in loops.items():
        yield wait_for(f"hpatches-{task}", folder, ALONE, seconds)


def help_cpu_seconds(command: str, rounds: int = 3) -> float:
    """CPU seconds of a command in a process of its own, the best of some."""
    seen = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "raybench", command], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seen.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seen)


def wait_for(benchmark: str, folder: Path, most_seconds: float, loops_seconds: float) -> Wait:
    """One command, and where its seconds went."""
    out = folder / "out"
    inputs = ["--features", str(folder / "features"), "--tasks", str(folder / "tasks"), "--split", SPLIT]
    command = raybench("run", benchmark, *inputs, "--out", str(out), "--ray", "local", "--progress", "json")
    note = f"{where_it_went(command, out)}; the published loops {loops_seconds:,.0f} s"
    shutil.rmtree(out)
    return Wait(f"run {benchmark}", command.seconds, most_seconds, note)


def where_it_went(command: Command, out: Path) -> str:
    """Seconds until inputs were checked and Ray was up, of reading, of all other stages, and the rest."""
    up = command.seconds_until('"message": "hpatches-')
    checked = min(command.seconds_until('"starting Ray', up), up)
    manifests = [json.loads(path.read_text()) for path in sorted(out.glob("**/manifest.json"))]
    stages = [stage for manifest in manifests for stage in manifest["stages"]]
    reading = sum(stage["seconds"] for stage in stages if stage["name"] == "read-vectors")
    others = sum(stage["seconds"] for stage in stages) - reading
    parts = {
        "inputs checked": checked,
        "then Ray up": up - checked,
        "reading": reading,
        "figures": others,
        "the rest": command.seconds - up - reading - others,
    }
    return ", ".join(f"{what} {seconds:.1f} s" for what, seconds in parts.items())


def published_seconds(scale: Scale) -> dict[str, float]:
    """What the loops of the published toolbox would take for each task, from a sample of it."""
    random = np.random.default_rng(0)
    patches, tests = (scale.fewest_patches + scale.most_patches) // 2, len(scale.sequences()) // 3
    made = random.integers(0, 256, (max(scale.distractors, patches), DIMENSION)).astype(np.float64)
    pairs = random.integers(0, len(made), (SAMPLED_PAIRS, 2))
    verified = cpu_seconds_of(lambda: published.verification(made, pairs)) / SAMPLED_PAIRS
    matched = cpu_seconds_of(lambda: published.matching(made[:patches], [made[-patches:]]))
    views = {level: random.random((SAMPLED_QUERIES, 5, DIMENSION)) for level in NOISE_LEVELS}
    own = np.ones((SAMPLED_QUERIES, scale.distractors), np.bool_)
    far = made[: scale.distractors]
    asked = cpu_seconds_of(lambda: published.retrieval(made[:SAMPLED_QUERIES], views, far, own)) / SAMPLED_QUERIES
    return {
        "verification": verified * 3 * scale.pairs * len(NOISE_LEVELS),
        "matching": matched * tests * len(NOISE_LEVELS) * 5,
        "retrieval": asked * scale.queries,
    }
