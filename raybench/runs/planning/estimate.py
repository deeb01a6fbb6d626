"""From what a probe measured to what a job takes: seconds, memory, hours and cost by the number of GPUs or CPUs.

Stages run one after the other. Within a stage on GPUs loading runs ahead on CPUs while devices compute, so its time is
the longer of the two; without GPUs each CPU loads, computes and publishes its own shards.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raybench.runs.planning.measured import Measure
from raybench.runs.planning.probed_run import PlannedStage
from raybench.table import Cell, Table

BYTES_PER_SECOND = 200e6  # of a stage that could not be measured: reading, checking and writing
PAYLOADS, RESULTS = 2, 3  # that a worker holds: one is computed and one loaded; one is made and two are published
START_UP = "start-up"
WORDS = {  # what a stage does, for the bottleneck
    "image-sizes": "reading image headers",
    "read-vectors": "reading vectors",
    "read-set": "reading vectors",
    "describe-images": "describe",
    "extract": "describe",
    "dense-flow": "flow",
    "search": "search",
    "neighbours": "search",
    "matches": "search",
    "match-images": "search",
    "count-closer": "search",
    "pairs-above": "search",
    "pairs": "comparing pairs",
    START_UP: "starting Ray and checking inputs",
}
READING = {"describe-images": "reading images", "extract": "reading images", "dense-flow": "reading images"}


@dataclass(frozen=True)
class Machines:
    """What is counted, how many CPUs go with each GPU, and how long it takes to begin."""

    gpus: int
    cpus_per_gpu: float
    start_seconds: float
    stage_seconds: float  # of the driver, for each stage

    @property
    def counted(self) -> str:
        return "GPUs" if self.gpus else "CPUs"


@dataclass(frozen=True)
class StageCost:
    """What the missing shards of one stage take: seconds of workers, in sum, and bytes."""

    stage: PlannedStage
    load_seconds: float
    compute_seconds: float
    publish_seconds: float
    bytes_read: float
    bytes_written: float
    memory_bytes: float

    @property
    def missing(self) -> int:
        return self.stage.shards - self.stage.found

    def wall(self, count: int, machines: Machines) -> tuple[float, str]:
        """Seconds on so many GPUs (or CPUs), and what they go to."""
        if not self.missing:
            return machines.stage_seconds, self._words()
        everything = self.load_seconds + self.compute_seconds + self.publish_seconds
        cpus = count * machines.cpus_per_gpu if machines.gpus else float(count)
        if not (machines.gpus and self.stage.on_device):
            is_reading = self.load_seconds > self.compute_seconds
            return machines.stage_seconds + self._on(cpus, everything), self._words(is_reading)
        device, load = self._on(count, self.compute_seconds), self._on(cpus, self.load_seconds)
        first_and_last = (self.load_seconds + self.publish_seconds) / self.missing
        return machines.stage_seconds + max(device, load) + first_and_last, self._words(load > device)

    def _on(self, workers: float, seconds: float) -> float:
        """Seconds of work on so many workers, of which none gets a part of a shard."""
        turns = math.ceil(self.missing / max(int(workers), 1))
        return max(seconds / self.missing * turns, seconds / max(workers, 1.0))

    def _words(self, is_reading: bool = False) -> str:
        name = self.stage.name
        return (is_reading and READING.get(name)) or WORDS.get(name, name)


def cost_of(stage: PlannedStage, known: Mapping[str, Sequence[Measure]]) -> StageCost:
    """The cost of a stage by its own measures, else by those of its namesakes, else by the bytes it reads."""
    measures = stage.measures or known.get(stage.name, ())
    if not measures:
        seconds = stage.input_bytes / BYTES_PER_SECOND if stage.shards > stage.found else 0.0
        return StageCost(stage, 0.0, seconds, 0.0, stage.input_bytes, 0.0, 0.0)

    def whole(key: str) -> float:
        return fitted([(one.work, one.base, getattr(one, key)) for one in measures], stage.work, stage.base)

    def largest(key: str) -> float:
        return fitted([(one.work, one.base, getattr(one, key)) for one in measures], *stage.largest)

    read = stage.input_bytes
    if stage.reads_data:  # what a library opens itself is not counted as read: then it is what came out
        read = whole("bytes_read") or whole("bytes_written")
    memory = PAYLOADS * largest("payload_bytes") + RESULTS * largest("bytes_written")
    has_any = stage.shards > stage.found
    least = min(one.memory_bytes for one in measures)
    return StageCost(
        stage,
        load_seconds=whole("load_seconds"),
        compute_seconds=whole("compute_seconds"),
        publish_seconds=whole("publish_seconds"),
        bytes_read=read if has_any else 0.0,
        bytes_written=whole("bytes_written"),
        memory_bytes=memory + least if has_any else 0.0,
    )


def fitted(samples: Sequence[tuple[float, float, float]], work: float, base: float) -> float:
    """What so much work and base take, from samples (work, base, value) in the order in which they grew.

    Of two sizes one part grows with work and another with base; of one size, or where that makes no sense, all grows
    with work. The first sample pays for what is done once, and counts only if there is no other.

    >>> fitted([(1, 1, 9.0), (8, 1, 10.0), (64, 1, 66.0)], work=640, base=10)  # 2 for each base and 1 for each work
    660.0
    """
    later = samples[1:] or samples
    most = max(one[0] for one in later)
    large = [one for one in later if one[0] > most / 2]
    small = [one for one in later if most / 16 < one[0] <= most / 2]
    many, its_base, last = (statistics.fmean(column) for column in zip(*large, strict=True))
    if small:
        few, _, first = (statistics.fmean(column) for column in zip(*small, strict=True))
        by_work = (last - first) / (many - few)
        by_base = (last - by_work * many) / its_base
        if by_work >= 0 and by_base >= 0:
            return by_work * work + by_base * base
    return last / many * work if many else 0.0


@dataclass(frozen=True)
class Estimate:
    """What a job will take. Wall seconds, hours and cost are by the number of GPUs, or of CPUs where there are none."""

    costs: tuple[StageCost, ...]
    counts: tuple[int, ...]
    machines: Machines
    price_per_hour: float | None
    probe: Mapping[str, Any]

    @property
    def wall_seconds(self) -> dict[int, float]:
        return {count: sum(seconds for seconds, _ in self._spent(count).values()) for count in self.counts}

    @property
    def gpu_hours(self) -> dict[int, float]:
        return {count: count * seconds / 3600 for count, seconds in self.wall_seconds.items()}

    @property
    def cost(self) -> dict[int, float] | None:
        price = self.price_per_hour
        return None if price is None else {count: hours * price for count, hours in self.gpu_hours.items()}

    @property
    def peak_memory_bytes(self) -> int:
        return int(max((one.memory_bytes for one in self.costs), default=0.0))

    @property
    def bottleneck(self) -> str:
        """What takes longest, by name; with the number of GPUs, as it may be another for another number."""
        found: dict[str, list[str]] = {}
        for count in self.counts:
            words: dict[str, float] = {}
            for seconds, name in self._spent(count).values():
                words[name] = words.get(name, 0.0) + seconds
            found.setdefault(max(words, key=lambda name: words[name]), []).append(str(count))
        unit = self.machines.counted
        return "; ".join(f"{name} on {' and '.join(counts)} {_of(unit, counts)}" for name, counts in found.items())

    def _spent(self, count: int) -> dict[int, tuple[float, str]]:
        """Seconds and what they go to: of the start (-1) and of each stage."""
        spent = {-1: (self.machines.start_seconds, WORDS[START_UP])}
        return spent | {place: one.wall(count, self.machines) for place, one in enumerate(self.costs)}

    def to_json(self) -> dict[str, Any]:
        """The keys of the contract (see the README)."""
        return {
            "stages": [self._stage(one) for one in self.costs],
            "wall_seconds": {str(count): round(seconds, 2) for count, seconds in self.wall_seconds.items()},
            "gpu_hours": {str(count): round(hours, 6) for count, hours in self.gpu_hours.items()},
            "cost": self.cost and {str(count): round(cost, 4) for count, cost in self.cost.items()},
            "peak_memory_bytes": self.peak_memory_bytes,
            "bottleneck": self.bottleneck,
            "probe": dict(self.probe),
        }

    def _stage(self, one: StageCost) -> dict[str, Any]:
        return {
            "name": one.stage.name,
            "shards": one.stage.shards,
            "found": one.stage.found,
            "items": one.stage.items,
            "bytes_read": int(one.bytes_read),
            "bytes_written": int(one.bytes_written),
            "seconds": round(one.wall(self.counts[0], self.machines)[0], 3),
            "worker_seconds": round(one.load_seconds + one.compute_seconds + one.publish_seconds, 3),
            "is_measured": bool(one.stage.measures) or not one.missing,
        }

    def tables(self) -> tuple[Table, Table]:
        """The stages, and the sums by number of GPUs or CPUs; stages of one name are one row."""
        unit = self.machines.counted
        rows: dict[str, list[float]] = {}
        for one in map(self._stage, self.costs):
            figures = [one[key] for key in ("shards", "found", "items", "bytes_read", "bytes_written", "seconds")]
            before = rows.get(one["name"], [0] * len(figures))
            rows[one["name"]] = [a + b for a, b in zip(before, figures, strict=True)]
        first = f"seconds on {self.counts[0]} {_of(unit, self.counts[:1])}"
        columns = ("stage", "shards", "found", "items", "MB read", "MB written", first)
        stages: tuple[tuple[Cell, ...], ...] = tuple(
            (name, shards, found, items, round(read / 1e6, 1), round(written / 1e6, 1), round(seconds, 2))
            for name, (shards, found, items, read, written, seconds) in rows.items()
        )
        hours, cost = self.gpu_hours, self.cost or {}
        sums: tuple[tuple[Cell, ...], ...] = tuple(
            (count, round(wall, 1), words_of(wall), round(hours[count], 4), *([round(cost[count], 2)] if cost else []))
            for count, wall in self.wall_seconds.items()
        )
        names = (unit, "wall seconds", "wall time", f"{unit[:-1]}-hours", *(["cost"] if cost else []))
        return Table("stages", columns, stages), Table("sums", names, sums)


def _of(unit: str, counts: Sequence[Any]) -> str:
    """The unit's name, in the singular for one."""
    return unit[:-1] if [str(count) for count in counts] == ["1"] else unit


def words_of(seconds: float) -> str:
    """A duration for a person: `42 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
