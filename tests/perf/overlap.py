"""A worker loads, computes and publishes consecutive shards at the same time: parts of 1 s each hide one another.

The baseline is the slowest part alone, which no worker can beat. What is counted starts with the first shard that is
published, since before that the parts fill up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.perf.figures import Figure
from tests.perf.modelled import Modelled, executor, passed, ray_with, steady_seconds

WORKERS, SHARDS = 2, 40
PART_SECONDS = 1.0
PARTS = ("load", "compute", "publish")


def figures(folder: Path) -> Iterator[Figure]:
    """CPU actors, which load themselves, then device actors, for which tasks load."""
    with ray_with(cpus=8, gpus=WORKERS):
        for kind, gpus in (("CPU actors", 0), ("device actors", WORKERS)):
            stage = Modelled(PART_SECONDS, PART_SECONDS, on_device=gpus > 0)
            with executor(WORKERS if not gpus else None, gpus) as by:
                passed(by, Modelled(on_device=gpus > 0), 16, f"{folder}/{kind}/warm")  # processes up
                receipts = passed(by, stage, SHARDS, f"{folder}/{kind}/store", PART_SECONDS)
            alone = (SHARDS / WORKERS - 1) * PART_SECONDS
            each = [sum(getattr(one, f"{part}_seconds") for one in receipts) / SHARDS for part in PARTS]
            note = f"a shard: {', '.join(f'{part} {value:.2f} s' for part, value in zip(PARTS, each, strict=True))}"
            what = f"{SHARDS} shards of 3 x {PART_SECONDS:g} s, {WORKERS} {kind}"
            yield Figure(what, steady_seconds(receipts), "slowest part alone", alone, target=0.9, note=note)
