"""The three 2017 benchmarks on a made set of the size of HPatches, through the command line: minutes, gigabytes.

116 sequences x 16 images x 800 to 1,800 patches of 128 whole numbers in CSV files, tasks by `raybench tasks`, split
`full`. No baseline: seconds of each stage as the manifest has them, wall seconds and peak memory of each command.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.task_files import IMAGES_PER_LEVEL, LEVEL_LETTERS
from tests.perf.bench import ONE_THREAD

DIMENSION, CPUS, SPLIT = 128, 2, "full"
NEEDED_BYTES = 4e9  # 0.9 GB of CSV files, 1.24 GB of float32 in the store, some 0.4 GB of lists, distances and curves
MOST_SECONDS = 1_800  # of one command; beyond that it is a failure
NOISE = {"e": 30.0, "h": 55.0, "t": 80.0}  # of values 0..255, by level; twice that for one patch, none for another
BENCHMARKS = {"hpatches-verification": "ap_imbalanced", "hpatches-matching": "map", "hpatches-retrieval": "map"}
SAMPLES_A_SECOND = 2


@dataclass(frozen=True)
class Scale:
    """How large the set and its tasks are."""

    illumination: int = 57
    viewpoint: int = 59
    fewest_patches: int = 800
    most_patches: int = 1_800
    pairs: int = 200_000
    queries: int = 10_000
    distractors: int = 20_000

    def sequences(self) -> dict[str, int]:
        """Patches by sequence, from fewest to most, kinds in turn."""
        kinds = ["i_"] * self.illumination + ["v_"] * self.viewpoint
        counts = np.linspace(self.fewest_patches, self.most_patches, len(kinds)).round().astype(int)
        mixed = np.random.default_rng(0).permutation(counts).tolist()
        return {f"{kind}{number:03d}": count for number, (kind, count) in enumerate(zip(kinds, mixed, strict=True))}


@dataclass(frozen=True)
class Timing:
    """One line of this bench: seconds of a stage, or of a whole command."""

    command: str
    stage: str
    shards: int | None
    seconds: float
    note: str = ""

    def line(self) -> str:
        """The timing as a line of text."""
        shards = "" if self.shards is None else f"{self.shards:,}"
        return f"{self.command:<29}{self.stage:<19}{shards:>7}{self.seconds:>10.1f} s   {self.note}".rstrip()


def figures(folder: Path, scale: Scale | None = None) -> Iterator[Timing]:
    """Make the set and its tasks, run each benchmark, check the set once more."""
    check_room(folder)
    scale = scale or Scale()
    started = time.monotonic()
    patches, size_bytes = make_features(folder / "features", scale)
    seconds = time.monotonic() - started
    yield Timing("(making the set)", "", None, seconds, f"{patches:,} patches, {size_bytes / 1e9:.2f} GB of CSV files")
    command = make_tasks(folder, scale)
    yield Timing("tasks hpatches", "(whole command)", None, command.seconds, command.note)
    inputs = ["--features", str(folder / "features"), "--tasks", str(folder / "tasks"), "--split", SPLIT]
    for benchmark, column in BENCHMARKS.items():
        yield from run_benchmark(folder, benchmark, column, inputs)
    for benchmark in BENCHMARKS:
        command = raybench("check", benchmark, *inputs)
        yield Timing(f"check {benchmark}", "(whole command)", None, command.seconds, command.note)


def check_room(folder: Path) -> None:
    """End with a line if the set would not fit the disk."""
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise SystemExit(f"{folder}: {free / 1e9:.1f} GB free; the full size needs {NEEDED_BYTES / 1e9:.0f} GB")


def make_tasks(folder: Path, scale: Scale) -> Command:
    """Tasks over the features in the folder, by `raybench tasks`."""
    made = ["--out", str(folder / "tasks"), "--positives", str(scale.pairs), "--negatives", str(scale.pairs)]
    made += ["--queries", str(scale.queries), "--distractors", str(scale.distractors)]
    return raybench("tasks", "hpatches", "--features", str(folder / "features"), *made)


def run_benchmark(folder: Path, benchmark: str, column: str, inputs: list[str]) -> Iterator[Timing]:
    """Timings of one run with the shared store: its stages, what is outside them, the whole."""
    out = folder / benchmark
    where = ["--out", str(out), "--store", str(folder / "store"), "--ray", "local", "--cpus", str(CPUS)]
    command = raybench("run", benchmark, *inputs, *where, "--progress", "json")
    stages = json.loads((out / "manifest.json").read_text())["stages"]
    ray_up = command.seconds_until('"stage_started"')
    checked = command.seconds_until('"starting Ray', ray_up)
    yield Timing(benchmark, "(inputs checked)", None, checked, "imports, digests of all files, tasks; Ray comes up")
    yield Timing(benchmark, "(Ray up)", None, ray_up - checked)
    for stage in stages:
        note = "" if stage["computed"] else "found in the store"
        yield Timing(benchmark, stage["name"], stage["shards"], stage["seconds"], note)
    rest = command.seconds - ray_up - sum(stage["seconds"] for stage in stages)
    yield Timing(benchmark, "(the rest)", None, rest, "plans between stages, tables, report, Ray ended")
    note = f"{command.note}; mean {column} {mean_figure(out, benchmark, column):.3f}"
    yield Timing(benchmark, "(whole command)", None, command.seconds, note)


def make_features(folder: Path, scale: Scale) -> tuple[int, int]:
    """Write `SEQ/IM.csv` of every image; how many patches and bytes that were.

    Patches of one scene point are noisy copies of one random vector, skewed towards 0 as SIFT is.
    """
    patches = size_bytes = 0
    names = ["ref", *(f"{letter}{i}" for letter in LEVEL_LETTERS.values() for i in range(1, IMAGES_PER_LEVEL + 1))]
    for number, (sequence, count) in enumerate(scale.sequences().items()):
        (folder / sequence).mkdir(parents=True)
        random = np.random.default_rng([3, number])
        scene = 45.0 * random.standard_exponential((count, DIMENSION), np.float32)
        hardness = random.uniform(0, 2, (count, 1)).astype(np.float32)
        for name in names:
            noise = hardness * random.standard_normal(scene.shape, np.float32) * np.float32(NOISE.get(name[0], 0.0))
            text = csv_of_bytes(np.clip(scene + noise, 0, 255).astype(np.uint8))
            (folder / sequence / f"{name}.csv").write_bytes(text)
            patches, size_bytes = patches + count, size_bytes + len(text)
    return patches, size_bytes


def csv_of_bytes(rows: NDArray[np.uint8]) -> bytes:
    """Rows of values 0..255 as CSV, without a loop: each value becomes four bytes, then the empty ones are left out.

    >>> csv_of_bytes(np.array([[0, 255], [17, 3]], np.uint8))
    b'0,255\\n17,3\\n'
    """
    words = np.array([f"{value}," for value in range(256)], "S4").view("<u4")
    octets = words[rows].view(np.uint8).reshape(len(rows), -1)
    last = octets[:, -4:]
    last[last == ord(",")] = ord("\n")
    text: bytes = octets[octets != 0].tobytes()
    return text


def mean_figure(out: Path, benchmark: str, column: str) -> float:
    """The mean of a column over the rows of mean noise in a run's main table; shows that the run made sense."""
    with (out / f"{benchmark.replace('-', '_')}.csv").open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return float(np.mean([float(row[column]) for row in rows if row["noise"] == "mean"]))


@dataclass(frozen=True)
class Command:
    """What a finished command took, and its lines with the seconds at which they came."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    lines: tuple[tuple[float, str], ...]

    @property
    def note(self) -> str:
        return f"{self.cpu_seconds:.1f} CPU s, peak {self.peak_bytes / 1e9:.2f} GB"

    def seconds_until(self, part: str, otherwise: float | None = None) -> float:
        """When the first line with this part came; `otherwise` if none may have come."""
        return next((seconds for seconds, line in self.lines if part in line), otherwise or self.seconds)


def raybench(*arguments: str) -> Command:
    """Run a command in a process of its own, with as many threads as it has for a user; raises if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in (*ONE_THREAD, "RAY_ADDRESS")}
    line = [sys.executable, "-m", "raybench", *arguments]
    started = time.monotonic()
    with subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        watch = Watch(process)
        watch.start()
        lines = tuple((time.monotonic() - started, text) for text in process.stdout)
    seconds = time.monotonic() - started
    watch.join()
    if process.returncode:
        said = "".join(text for _, text in lines[-20:])
        raise RuntimeError(f"{' '.join(line)}: ended with {process.returncode} after {seconds:.0f} s:\n{said}")
    return Command(seconds, sum(watch.cpu_seconds.values()), watch.peak_bytes, lines)


class Watch(threading.Thread):
    """The peak of memory and the CPU seconds of a process and all below it; ends it if it takes too long.

    Pages that processes share, such as mapped files, count once. What a process does after the last look is missed.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self.cpu_seconds: dict[int, float] = {}
        self._process = process

    def run(self) -> None:
        stop = time.monotonic() + MOST_SECONDS
        while self._process.poll() is None:
            processes = tree(self._process.pid)
            self.cpu_seconds.update(processes)
            self.peak_bytes = max(self.peak_bytes, sum(map(proportional_bytes, processes)))
            if time.monotonic() > stop:
                self._process.terminate()
            time.sleep(1 / SAMPLES_A_SECOND)


def tree(root: int) -> dict[int, float]:
    """CPU seconds of the process and of all its descendants, as /proc has them now."""
    children: dict[int, list[int]] = {}
    cpu_seconds: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            process, parent, ticks = int(entry.name), int(fields[1]), int(fields[11]) + int(fields[12])
            children.setdefault(parent, []).append(process)
            cpu_seconds[process] = ticks / os.sysconf("SC_CLK_TCK")
    found = [root]
    for process in found:
        found += children.get(process, [])
    return {process: cpu_seconds.get(process, 0.0) for process in found}


def proportional_bytes(process: int) -> int:
    """Resident bytes of a process, each page divided by the number of processes that have it; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1_024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
