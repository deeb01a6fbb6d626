"""A DISC2021 root with very many names: `raybench check`, then what a run plans before its first shard.

`names` has 100,000 references, `million-names` a million (and a twentieth as many queries), in one folder each: hard
links to small JPEGs, so that only names and stamps are many.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from raybench.descriptors.image_descriptors import resolve_images
from raybench.digests import digest_of
from raybench.engine.shards import Shards
from raybench.extract.image_headers import FILES_PER_SHARD, Headers, ImageSizes
from raybench.extract.images import DescribeImages, Extraction, default_shard_size, shape_order
from raybench.formats.images import Preprocess
from raybench.sources.image_files import ImageFiles
from tests.perf.figures import Measured, Memory, cpu_seconds_of

REFERENCES, MILLION = 100_000, 1_000_000
PER_QUERY = 20  # references for each query
LINKS = 30_000  # names of one file; file systems allow some 65,000
MOST_SECONDS, MOST_BYTES = 8.0, 1e9  # for a million
ROUNDS = 3
CHECK = """
import sys, time
from raybench.cli.commands import exit_code
from tests.perf.figures import peak_resident_bytes
code = exit_code(["check", "disc2021", "--data", sys.argv[1], "--descriptor", "thumbnail"])
print(time.process_time(), peak_resident_bytes())
sys.exit(code)
"""


def figures(folder: Path, references: int = REFERENCES, rounds: int = ROUNDS) -> Iterator[Measured | Memory]:
    """The command as a user gives it, then the plan's parts in this process."""
    make_root(folder / "disc", references)
    checks = [checked(folder / "disc") for _ in range(rounds)]
    names = references + references // PER_QUERY
    what, share = f"check disc2021, {names:,} names", references / MILLION
    note = f"{min(seconds for seconds, _, _ in checks):.2f} s by the clock, start included"
    most = max(2.0, MOST_SECONDS * share)
    yield Measured(what, "CPU s", [cpu for _, cpu, _ in checks], most=most, note=note)
    yield Memory(f"{what}, memory", max(peak for _, _, peak in checks), max(3e8, MOST_BYTES * share))
    yield from _planned(folder / "disc/val_ref")


def million(folder: Path) -> Iterator[Measured | Memory]:
    """The same with a million references, which takes half a minute to make."""
    yield from figures(folder, MILLION, rounds=2)


def make_root(root: Path, references: int) -> None:
    """Folders of references and queries, and a ground truth."""
    for name, letter, count in (("val_ref", "R", references), ("val_query", "Q", references // PER_QUERY)):
        (root / name).mkdir(parents=True)
        start = f"{root}/{name}/{letter}"
        for first in range(0, count, LINKS):
            Image.new("RGB", (16, 12), (first // LINKS, 0, 0)).save(f"{start}{first:07d}.jpg")
            for number in range(first + 1, min(first + LINKS, count)):
                os.link(f"{start}{first:07d}.jpg", f"{start}{number:07d}.jpg")
    pairs = range(references // PER_QUERY // 5)
    (root / "val_groundtruth_matches.csv").write_text("".join(f"Q{n:07d},R{3 * n:07d}\n" for n in pairs))


def checked(root: Path) -> tuple[float, float, int]:
    """Seconds, CPU seconds and peak resident bytes of `raybench check disc2021`, in a process of its own."""
    started = time.perf_counter()
    command = [sys.executable, "-c", CHECK, str(root)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1].split()
    return time.perf_counter() - started, float(said[0]), int(said[1])


def _planned(root: Path) -> Iterator[Measured]:
    """What the driver does with names that were listed, until shards go out; and what headers cost a worker."""
    folder = ImageFiles.scan(str(root))
    stage = ImageSizes(folder)
    shards = Shards(stage.name, len(folder), FILES_PER_SHARD)
    seconds = [cpu_seconds_of(lambda: stage.load(shards[0])) for _ in range(ROUNDS)]
    each = [1e6 * one / len(shards[0]) for one in seconds]
    yield Measured("reading a header, on a worker", "µs", each, lower_is_better=True)
    rng = np.random.default_rng(0)
    sizes = rng.integers(200, 1_025, (len(folder), 2))
    sizes[::2] = 1_024, 768

    def planned() -> None:
        spec = resolve_images("thumbnail", {}, Preprocess())
        order, prepared_bytes = shape_order(spec, Headers(sizes, {}))
        describe = DescribeImages(folder, order, Extraction(spec, "cpu"))
        digest_of(describe.digest, len(order))
        Shards(describe.name, len(order), default_shard_size(len(order), prepared_bytes))

    times = [cpu_seconds_of(planned) for _ in range(ROUNDS)]
    yield Measured(f"order and plan of {len(folder):,} images", "s", times, lower_is_better=True)
    times = [cpu_seconds_of(lambda: pickle.dumps(stage, 5)) for _ in range(ROUNDS)]
    note = f"{len(pickle.dumps(stage, 5)) / 1e6:.1f} MB, once per stage"
    yield Measured(f"pickling a stage with {len(folder):,} names", "s", times, note=note, lower_is_better=True)
