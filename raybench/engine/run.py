"""A run: a store, an executor and four verbs, `map`, `each`, `fold`, `write`. What exists is done; the rest is mapped.

No Ray, even indirectly. A broken shard file, whoever finds it, is unpublished and mapped again here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from raybench import storage
from raybench.digests import digest_of
from raybench.engine.items import Each, PerItem, Write, name_of
from raybench.engine.patience import HOUR, Patience
from raybench.engine.progress import Observer
from raybench.engine.receipts import Receipts
from raybench.engine.shards import ChosenShards, Shard, Shards
from raybench.engine.stages import Files, Mapped, Receipt, Sink, Stage
from raybench.errors import CorruptShard, DataError, ShardFailed
from raybench.formats import shardfile
from raybench.formats.shardfile import Arrays

R = TypeVar("R")

FAN_IN = 32  # partial files that one metric shard merges
MOST_REPAIRS = 3  # of one shard, before its store is called broken


class Executor(Protocol):
    """Maps a stage over shards; receipts come in any order."""

    @property
    def gpus(self) -> int: ...

    def map(self, stage: Stage, shards: Sequence[Shard], sink: Sink) -> Iterator[Receipt]: ...

    def cluster(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class Partial(Protocol):
    """A mergeable result; merging is associative and commutative."""

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self: ...

    def to_arrays(self) -> Arrays: ...

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self: ...


@dataclass(frozen=True)
class StageRecord:
    """What the manifest says of one stage: shards in all, found in the store, computed now.

    `items`, `rows`: of those computed now. `attempts`: with the failures of shards. `lost`: how often shards were given
    out again because a node or an actor went, which is no failure of theirs.
    """

    name: str
    digest: str
    shards: int
    found: int
    computed: int
    items: int
    rows: int
    size_bytes: int
    seconds: float
    repaired: int
    attempts: int
    lost: int
    workers: int


class Run:
    """Maps stages into `store` and files into `out`, through one executor."""

    def __init__(
        self, out: str, store: str, executor: Executor, observer: Observer, patience_seconds: float = HOUR
    ) -> None:
        self.out, self.store = out, store
        self.records: list[StageRecord] = []
        self.files: list[str] = []  # what was written into `out`, in order
        self.notes: list[str] = []  # for below the main table
        self._executor, self._observer, self._patience_seconds = executor, observer, patience_seconds
        self._known: dict[str, tuple[Stage, Mapped]] = {}
        self._repairs: Counter[tuple[str, int]] = Counter()
        self._said_devices: set[tuple[str, str]] = set()  # stage and node

    @property
    def gpus(self) -> int:
        """How many GPUs stages that want one will get; 0 means CPU."""
        return self._executor.gpus

    def cluster(self) -> dict[str, Any]:
        return self._executor.cluster()

    def say(self, message: str) -> None:
        """A line for the person who watches."""
        self._observer.said(message)

    def note(self, message: str) -> None:
        """Say something once that also belongs below the table."""
        if message not in self.notes:
            self.notes.append(message)
            self.say(message)

    def patiently(self, what: str, action: Callable[[], R]) -> R:
        """The result of something that the driver itself asks of storage, which may be silent for a while."""
        return Patience(what, self._patience_seconds, self._observer).through_silence(action)

    def map(self, stage: Stage, count: int, size: int, wanted: Iterable[int] | None = None) -> Mapped:
        """Publish the stage's shards that hold the wanted items (all by default); those that exist stay."""
        digest = digest_of(shardfile.VERSION, stage.digest, count, size)
        shards = Shards(stage.name, count, size)
        mapped = Mapped(self.store, stage.name, digest, shards)
        self._known[digest] = (stage, mapped)
        numbers: Sequence[int] = range(len(shards)) if wanted is None else sorted({item // size for item in wanted})
        storage.remove_leftovers(mapped.folder)
        listed = self.patiently(stage.name, lambda: storage.list_files(mapped.folder))
        there = {entry.name for entry in listed if entry.stamp != storage.NOTHING}
        missing = [number for number in numbers if shards[number].file_name not in there] if there else numbers
        found = len(numbers) - len(missing)
        self._perform(stage, ChosenShards(shards, missing), mapped, found, digest)
        return mapped

    def fold(self, mapped: Mapped, partial: type[Partial]) -> Mapped:
        """One shard with the merge of all partials; each metric shard merges a fixed run of partial files."""
        while True:
            stage = Merge(mapped, partial)
            mapped = self.map(stage, len(mapped.shards), FAN_IN)
            if len(mapped.shards) <= 1:
                return mapped

    def each(self, function: Callable[..., Arrays], items: Sequence[Any], *inputs: Any, version: int) -> PerItem:
        """Publish `function(item, *inputs)` for each item; those that exist stay. The function is a module's own.

        Of an input that itself came from `each`, the function gets the arrays of its item. Bump `version` when the
        function's meaning changes.
        """
        mapped = self.map(Each(function, items, inputs, version), len(items), 1)
        return PerItem(mapped.store, mapped.name, mapped.digest, mapped.shards)

    def write(self, pattern: str, function: Callable[..., Any], items: Sequence[Any], *inputs: Any) -> None:
        """Write one output file per item, `function(item, *inputs)` as bytes; always, since the store has none of them.

        `{name}` in the pattern is the item's name, `{item.…}` another of its attributes.
        """
        names = [output_name(pattern.format(name=name_of(item), item=item)) for item in items]
        self.files += names
        stage = Write(function, items, inputs, version=0)
        shards = Shards(stage.name, len(names), 1)
        self._perform(stage, shards, Files(self.out, tuple(names)), found=0, digest=stage.digest)

    def read(self, mapped: Mapped, index: int) -> Arrays:
        """A small shard for the driver, mended if it is broken."""
        while True:
            try:
                return self.patiently(mapped.name, lambda: mapped.read(index))
            except CorruptShard as broken:
                self._repair(broken)

    def read_each(self, mapped: PerItem) -> list[Arrays]:
        """Every item's arrays for the driver, which are small: figures, not rankings."""
        return [self.read(mapped, index) for index in range(len(mapped.shards))]

    def _perform(self, stage: Stage, shards: Sequence[Shard], sink: Sink, found: int, digest: str) -> None:
        started = time.monotonic()
        repaired_before = self._repairs.total()
        self._observer.stage_started(stage.name, found + len(shards), found)
        with Receipts(shards) as receipts:
            try:
                self._complete(stage, shards, sink, receipts, self._observer.published)
            finally:
                self._observer.stage_ended(stage.name)
            place = storage.join(self.out, f"receipts/{len(self.records):02d}-{stage.name}.jsonl")
            self.patiently(stage.name, lambda: receipts.publish(place))
        self.records.append(
            StageRecord(
                name=stage.name,
                digest=digest,
                shards=found + len(shards),
                found=found,
                computed=receipts.computed,
                items=receipts.items,
                rows=receipts.rows,
                size_bytes=receipts.size_bytes,
                seconds=round(time.monotonic() - started, 3),
                repaired=self._repairs.total() - repaired_before,
                attempts=receipts.attempts,
                lost=receipts.lost,
                workers=receipts.workers,
            )
        )

    def _complete(
        self, stage: Stage, shards: Sequence[Shard], sink: Sink, receipts: Receipts, tell: Callable[[Receipt], None]
    ) -> None:
        missing = shards
        while missing:
            try:
                for receipt in self._executor.map(stage, missing, sink):
                    receipts.add(receipt)
                    self._say_device(receipt)
                    tell(receipt)
            except CorruptShard as broken:
                self._repair(broken)
            missing = [shard for shard in shards if shard not in receipts]

    def _say_device(self, receipt: Receipt) -> None:
        """Say what a stage found of a node's devices, which are alike."""
        place = receipt.worker
        if ": " in place.device and (receipt.stage, place.node) not in self._said_devices:
            self._said_devices.add((receipt.stage, place.node))
            self._observer.said(f"{receipt.stage}: node {place.node[:8]}, {place.device}")

    def _repair(self, broken: CorruptShard) -> None:
        self._repairs[broken.digest, broken.index] += 1
        if self._repairs[broken.digest, broken.index] > MOST_REPAIRS:
            raise ShardFailed(f"{broken}; mapped again {MOST_REPAIRS} times: the store {self.store} loses data")
        stage, mapped = self._known[broken.digest]
        moved = self.patiently(stage.name, lambda: mapped.unpublish(broken.index))
        self._observer.said(f"mapping {stage.name} shard {broken.index} again: {broken.reason}{moved}")
        self._observer.retried(stage.name, "corrupt")
        shards = [mapped.shards[broken.index]]
        with Receipts(shards) as unpublished:
            self._complete(stage, shards, mapped, unpublished, lambda receipt: None)  # progress is of another stage


def output_name(name: str) -> str:
    """The name of an output file, which holds names from data; one that would leave its folder is refused.

    >>> output_name("curves/a.parquet")
    'curves/a.parquet'
    """
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise DataError(f"{name}: a name from the data makes no output file inside --out; rename what it is made of")
    return name


@dataclass(frozen=True)
class Merge:
    """A fold as a map: items are partial files, each shard merges a run of them."""

    mapped: Mapped
    partial: type[Partial]

    on_device = False

    @property
    def name(self) -> str:
        return self.mapped.name.removesuffix("-fold") + "-fold"

    @property
    def digest(self) -> str:
        return digest_of("merge", 1, self.mapped.digest, self.partial.__qualname__)

    def load(self, shard: Shard) -> list[Arrays]:
        return [self.mapped.read(index) for index in range(shard.start, shard.stop)]

    def compute(self, payload: list[Arrays]) -> Arrays:
        return self.partial.merged([self.partial.from_arrays(arrays) for arrays in payload]).to_arrays()

    def keys(self, shard: Shard) -> str:
        return f"partial files {shard.start}..{shard.stop - 1} of {self.mapped.name}"
