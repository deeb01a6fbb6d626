"""A driver that sends very many tiny shards through a Ray of its own, published to disk, and samples itself on the way.

`python -m long_run SHARDS OUT GPUS`, with tests/ on the path, writes one JSON line: its memory and open files at each
sample, CPU and wall seconds. With (logical) GPUs, load tasks run ahead of device actors. It runs by itself, since a
test's own process holds more and grows for other reasons.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import ray
from number_stages import Squares

from raybench.engine.progress import Observer
from raybench.engine.ray_core import connect
from raybench.engine.run import Run

SAMPLES = 20
SIZE = 1


class Sampling(Observer):
    """Notes memory and open files each time another twentieth of the first stage is published."""

    def __init__(self, shards: int) -> None:
        self.samples: list[dict[str, float]] = []
        self._every, self._seen = shards // SAMPLES, 0
        self._started = time.monotonic()

    def published(self, receipt: object) -> None:
        self._seen += 1
        if self._seen % self._every == 0:
            self.samples.append(
                {
                    "shards": self._seen,
                    "rss_mb": resident_mb(),
                    "files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
                    "seconds": time.monotonic() - self._started,
                }
            )


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1_024


def main(shards: int, out: str, gpus: int) -> None:
    watcher = Sampling(shards)
    ray.init("local", num_cpus=2, num_gpus=gpus, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    executor = connect("local", cpus=2, gpus=gpus or None, device="gpu" if gpus else "cpu", observer=watcher)
    run = Run(out, f"{out}/stages", executor, watcher)
    run.map(Squares(name="warm", on_device=gpus > 0), 2_000, SIZE)  # actors, buffers and caches are there from now on
    watcher.__init__(shards)  # type: ignore[misc]
    started, own = time.monotonic(), time.process_time()
    run.map(Squares(how="many", on_device=gpus > 0), shards, SIZE)
    seconds, own = time.monotonic() - started, time.process_time() - own
    record = run.records[-1]
    executor.close()
    ray.shutdown()
    print(
        json.dumps(
            {
                "samples": watcher.samples,
                "wall_seconds": seconds,
                "driver_cpu_seconds": own,
                "computed": record.computed,
                "attempts": record.attempts,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
