"""Device actors by the dozen with modelled times, through the real executor: how busy one driver keeps them.

Actors are real processes on logical GPUs and only wait, 1 s per shard, so that cores are left for the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.perf.figures import Figure
from tests.perf.modelled import Modelled, executor, passed, ray_with, steady_seconds

DEVICES = (16, 64)
SHARDS_PER_DEVICE = 12
LOADERS = 8  # processes cost memory: loads are short, so that few keep up with all devices
LOAD_SECONDS, COMPUTE_SECONDS, PUBLISH_SECONDS = 0.05, 1.0, 0.2


def figures(folder: Path) -> Iterator[Figure]:
    """Ours against the seconds of computing alone; a ratio of 1 is a device that never waits."""
    stage = Modelled(LOAD_SECONDS, COMPUTE_SECONDS, on_device=True)
    with ray_with(cpus=LOADERS + 2, gpus=max(DEVICES)):
        for devices in DEVICES:
            with executor(LOADERS, devices) as by:
                passed(by, Modelled(on_device=True), 2 * devices, f"{folder}/{devices}/warm")  # processes up
                receipts = passed(by, stage, SHARDS_PER_DEVICE * devices, f"{folder}/{devices}/store", PUBLISH_SECONDS)
            computed = (SHARDS_PER_DEVICE - 1) * COMPUTE_SECONDS
            what = f"{devices} devices, {len(receipts)} shards of 1 s"
            yield Figure(what, steady_seconds(receipts), "computing alone", computed, target=0.9)
