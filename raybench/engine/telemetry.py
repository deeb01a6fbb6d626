"""Prometheus counters and histograms per stage, through Ray's metrics agent.

They appear as `ray_raybench_*` on every node's metrics page about ten seconds after the first value. The board
in `dashboards/` reads these names; a test holds the two together.
"""

from __future__ import annotations

from ray.util.metrics import Counter, Gauge, Histogram

from raybench.engine.progress import Observer
from raybench.engine.stages import Receipt

METRICS: dict[str, tuple[str, ...]] = {
    "raybench_shards": ("stage", "outcome"),
    "raybench_rows": ("stage",),
    "raybench_bytes": ("stage",),
    "raybench_retries": ("stage", "cause"),
    "raybench_shard_seconds": ("stage", "phase"),
    "raybench_in_flight": ("stage",),
    "raybench_actors": ("stage",),
    "raybench_shards_left": ("stage",),
}
SECONDS_BOUNDARIES = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]


class Counters(Observer):
    """An observer that counts for Prometheus; needs a Ray that is up."""

    def __init__(self) -> None:
        self._shards = _counter("raybench_shards", "shards by outcome: computed, found")
        self._rows = _counter("raybench_rows", "rows published")
        self._bytes = _counter("raybench_bytes", "bytes published")
        self._retries = _counter("raybench_retries", "shards tried again, by cause")
        self._seconds = Histogram(
            "raybench_shard_seconds",
            "seconds a shard spends loading, computing, publishing",
            boundaries=SECONDS_BOUNDARIES,
            tag_keys=METRICS["raybench_shard_seconds"],
        )
        self._in_flight = _gauge("raybench_in_flight", "shards under way")
        self._actors = _gauge("raybench_actors", "actors at work")
        self._left = _gauge("raybench_shards_left", "shards not yet published")
        self._to_do = 0

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        self._to_do = shards - found
        if found:
            self._shards.inc(found, {"stage": stage, "outcome": "found"})
        self._left.set(self._to_do, {"stage": stage})

    def published(self, receipt: Receipt) -> None:
        stage = receipt.stage
        self._to_do -= 1
        self._shards.inc(1, {"stage": stage, "outcome": "computed"})
        for counter, value in ((self._rows, receipt.rows), (self._bytes, receipt.size_bytes)):
            if value:  # a counter refuses zero
                counter.inc(value, {"stage": stage})
        for phase in ("load", "compute", "publish"):
            self._seconds.observe(getattr(receipt, f"{phase}_seconds"), {"stage": stage, "phase": phase})
        self._left.set(self._to_do, {"stage": stage})

    def retried(self, stage: str, cause: str) -> None:
        self._retries.inc(1, {"stage": stage, "cause": cause})

    def in_flight(self, stage: str, shards: int, actors: int) -> None:
        self._in_flight.set(shards, {"stage": stage})
        self._actors.set(actors, {"stage": stage})

    def stage_ended(self, stage: str) -> None:
        for gauge in (self._in_flight, self._actors, self._left):
            gauge.set(0, {"stage": stage})


def _counter(name: str, description: str) -> Counter:
    return Counter(name, description, tag_keys=METRICS[name])


def _gauge(name: str, description: str) -> Gauge:
    return Gauge(name, description, tag_keys=METRICS[name])
