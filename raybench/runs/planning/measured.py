"""A stage that is measured: it computes some items, or a part of a search, and says what that took beside seconds."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raybench import storage
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt, Stage
from raybench.formats import shardfile
from raybench.formats.shardfile import Arrays
from raybench.search.running import References
from raybench.search.set_search import SearchRuns

TAKEN = "probe.taken"  # array beside the stage's own: bytes read, bytes of the payload, memory of the process


@dataclass(frozen=True)
class Part:
    """Some queries by some references of a search: a shard of one is too large for a probe."""

    queries: range
    references: range

    @property
    def work(self) -> float:
        return float(len(self.queries)) * len(self.references)


@dataclass(frozen=True)
class Measure:
    """What some work took; `work` and `base` are what seconds and bytes are held against."""

    work: float
    base: float
    load_seconds: float
    compute_seconds: float
    publish_seconds: float
    bytes_read: float
    bytes_written: float
    payload_bytes: float
    memory_bytes: float

    @classmethod
    def of(cls, work: float, base: float, receipt: Receipt, arrays: Arrays) -> Measure:
        read, payload, memory = arrays[TAKEN].tolist()
        seconds = receipt.load_seconds, receipt.compute_seconds, receipt.publish_seconds
        return cls(work, base, *seconds, read, receipt.size_bytes, payload, memory)

    @property
    def seconds(self) -> float:
        return self.load_seconds + self.compute_seconds + self.publish_seconds


@dataclass(frozen=True)
class Measured:
    """The stage, as an executor runs it."""

    stage: Any
    part: Part | None = None

    @property
    def name(self) -> str:
        return str(self.stage.name)

    @property
    def digest(self) -> str:
        return str(self.stage.digest)

    @property
    def on_device(self) -> bool:
        return bool(self.stage.on_device)

    def load(self, shard: Shard) -> tuple[Any, int]:
        before = storage.BYTES_READ.total
        if self.part is None:
            return self.stage.load(shard), before
        asked, among = self.part.queries, self.part.references
        pieces = self.stage.references.pieces(among.start, among.stop)
        return (self.stage.queries.read(asked.start, asked.stop), References(*pieces)), before

    def compute(self, payload: tuple[Any, int]) -> Arrays:
        given, before = payload
        arrays: Arrays = self.stage.compute(given)
        taken = [storage.BYTES_READ.total - before, size_of(given), memory_now()]
        return {**arrays, TAKEN: np.array(taken, np.int64)}

    def keys(self, shard: Shard) -> str:
        return str(self.stage.keys(shard))


@dataclass(frozen=True)
class SampleFile:
    """The Sink of a sample: one file, of which the size without what was measured counts."""

    uri: str

    def publish(self, shard: Shard, arrays: Arrays) -> int:
        storage.publish(self.uri, shardfile.encode(arrays, self.uri))
        return sum(array.nbytes for name, array in arrays.items() if name != TAKEN)

    def read(self) -> Arrays:
        return shardfile.decode(storage.read(self.uri), self.uri)


def first_part(stage: Stage, shard: Shard, queries: int, references: int) -> Part | None:
    """So many queries and references of a shard of a search; None for any other stage."""
    if not isinstance(stage, SearchRuns):
        return None
    asked, among = stage.tiles.at(shard.index)
    return Part(asked[:queries], among[:references])


def size_of(value: Any) -> int:
    """Bytes of the arrays and texts in a payload."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, bytes | memoryview):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sum(size_of(getattr(value, field.name)) for field in dataclasses.fields(value))
    return 0


def memory_now() -> int:
    """Bytes that this process has in memory; on systems without /proc what an average worker has."""
    if not sys.platform.startswith("linux"):
        return 300 * 2**20
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
