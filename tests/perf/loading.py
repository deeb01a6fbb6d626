"""How many CPUs load ahead of devices: pictures whose `prepare` waits 50 ms, so that only the number of loaders counts.

The CPUs are logical: on two cores sixteen loaders that wait are as fast as on sixteen, once their processes are up. The
baseline is what that many CPUs need for the waiting alone. The first round has its processes still to start.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raybench.descriptors.image_descriptors import resolve_images
from raybench.engine.progress import Observer
from raybench.engine.run import Executor, Run
from raybench.extract.images import Extraction, describe_images
from raybench.formats.images import Preprocess
from raybench.sources.image_files import ImageFiles
from tests.perf.figures import Figure
from tests.perf.modelled import executor, ray_with

PICTURES, PICTURES_PER_SHARD = 1_600, 20
WAIT_SECONDS = 0.05
CPUS, DEVICES, FEW_CPUS = 16, 2, 4
ROUNDS = 3  # the best of all but the first


class Waits:
    """An image descriptor that takes its time on the CPU and none on the device."""

    name = "waits"
    distance = "L2"
    uses_gpu = True

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[Any]:
        time.sleep(WAIT_SECONDS)
        return image[:4, :4].astype(np.float32)

    def describe(self, batch: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(batch).reshape(len(batch), -1)


def figures(folder: Path) -> Iterator[Figure]:
    """All CPUs, in rounds; then only as many as are asked for."""
    pictures = _pictures(folder / "pictures", PICTURES)
    few, fewer = (_pictures(folder / f"{count}", count) for count in (PICTURES // 4, 4 * PICTURES_PER_SHARD))
    with ray_with(CPUS, DEVICES):
        with executor(None, DEVICES) as by:
            first, *later = (_described_seconds(by, pictures, f"{folder}/all-{number}") for number in range(ROUNDS))
        yield _figure(f"{PICTURES:,} pictures, processes start", first, PICTURES, CPUS, None)
        yield _figure(f"{PICTURES:,} pictures, processes up", min(later), PICTURES, CPUS, 0.85)
        with executor(FEW_CPUS, DEVICES) as by:
            _described_seconds(by, fewer, f"{folder}/warm")
            seconds = _described_seconds(by, few, f"{folder}/asked")
            yield _figure(f"{len(few):,} pictures, --cpus {FEW_CPUS}", seconds, len(few), FEW_CPUS, 0.85)


def _figure(what: str, seconds: float, pictures: int, cpus: int, target: float | None) -> Figure:
    note = (
        f"{pictures / seconds:.0f} pictures per second of the {cpus / WAIT_SECONDS:.0f} of {cpus} CPUs that only wait"
    )
    return Figure(what, seconds, f"{cpus} CPUs", pictures * WAIT_SECONDS / cpus, target, note)


def _pictures(folder: Path, count: int) -> ImageFiles:
    folder.mkdir()
    data = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(data, "PNG")
    for number in range(count):
        (folder / f"{number:05d}.png").write_bytes(data.getvalue())
    return ImageFiles.scan(str(folder))


def _described_seconds(by: Executor, pictures: ImageFiles, place: str) -> float:
    """Seconds of the stage that describes pictures, into a new store."""
    run = Run(f"{place}/out", f"{place}/store", by, Observer())
    how = Extraction(resolve_images(f"{__name__}:Waits", {}, Preprocess()), "gpu", shard_size=PICTURES_PER_SHARD)
    describe_images(run, {"references": pictures}, how)
    return next(record.seconds for record in run.records if record.name == "describe-images")
