"""What an executor runs: a Stage on a Shard into a Sink, and the Receipt that remains.

`Mapped` is the handle on a stage's published shards that later stages read through. Nothing here knows what
the arrays mean, or whether Ray is there.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from raybench import storage
from raybench.engine.shards import Shard, Shards
from raybench.engine.threads import one_blas_thread
from raybench.errors import CorruptShard, StorageError
from raybench.formats import shardfile
from raybench.formats.shardfile import Arrays

ASIDE = "moved-aside"  # folder of the store with what had a shard's name and was not ours to delete
FILE_BYTES = "bytes"  # the array in which a stage that makes files gives their content


class Stage(Protocol):
    """A picklable step. Its digest covers inputs, parameters and a hand-bumped version.

    While one shard is computed, the next may be loaded: in another process, or in this one by another thread. A
    worker computes its shards one after the other and in one thread; it loads no two of them at once.

    Optional: `device_words`, what its process found of the device, once it computed; receipts say it. For plans (see
    `runs.probed_run`), where rows are not items: `work(shard)`, what its time grows with beside a part that grows with
    `base(shard)`; `rows(shard)`, the index of each row that it publishes; `counts(shard)`, the rows of each item;
    `settled(arrays, shard)`, another shard's arrays with names that may stand in this one.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def on_device(self) -> bool:
        """Whether `compute` wants a GPU where there is one; `load` never does."""
        ...

    def load(self, shard: Shard) -> Any:
        """Read what the shard needs, on a CPU."""
        ...

    def compute(self, payload: Any) -> Arrays:
        """The shard's arrays, from what `load` returned, on the device."""
        ...

    def keys(self, shard: Shard) -> str:
        """The shard's items in words, for errors."""
        ...


class Sink(Protocol):
    """Where a shard's arrays are published."""

    def publish(self, shard: Shard, arrays: Arrays) -> int:
        """Write them and return the number of bytes."""
        ...


@dataclass(frozen=True)
class Mapped:
    """A stage's published shards: the Sink that writes them and the handle that reads them."""

    store: str
    name: str
    digest: str
    shards: Shards

    @property
    def folder(self) -> str:
        return storage.join(self.store, self.digest)

    def uri(self, index: int) -> str:
        return storage.join(self.folder, self.shards[index].file_name)

    def publish(self, shard: Shard, arrays: Arrays) -> int:
        data = shardfile.encode(arrays, self._label(shard.index))
        with self._no_folder_at(shard.index):
            storage.publish(self.uri(shard.index), data)
        return len(data)

    def unpublish(self, index: int) -> str:
        """Make way for a shard; what was done with a folder that had its name, and may hold anything, in words."""
        uri = self.uri(index)
        if not storage.is_folder(uri):
            storage.delete(uri)
            return ""
        return f"; it is now {storage.move_aside(uri, storage.join(self.store, ASIDE))}"

    def read(self, index: int) -> Arrays:
        """A shard's arrays, as read-only views of a mapped file; raises CorruptShard."""
        uri, label = self.uri(index), self._label(index)
        try:
            with self._no_folder_at(index):
                try:
                    return shardfile.decode(storage.read_mapped(uri), label)
                except shardfile.BrokenShardFile:
                    storage.forget_copy(uri)  # perhaps only this node's copy is broken, not what is published
                    return shardfile.decode(storage.read_mapped(uri), label)
        except (shardfile.BrokenShardFile, FileNotFoundError) as error:
            raise CorruptShard(self.digest, index, str(error)) from error

    def _label(self, index: int) -> str:
        """What a shard file says it is."""
        return f"{self.digest}/{self.shards[index].file_name}"

    @contextmanager
    def _no_folder_at(self, index: int) -> Iterator[None]:
        """Whoever meets a folder in the place of a shard says so: Run knows what to do."""
        try:
            yield
        except (StorageError, IsADirectoryError) as error:
            if storage.is_folder(self.uri(index)):
                raise CorruptShard(self.digest, index, "a folder is in its place") from error
            raise


@dataclass(frozen=True)
class Files:
    """Output files, one per shard: the Sink of a stage whose arrays are `{"bytes": …}`."""

    folder: str
    names: tuple[str, ...]

    def publish(self, shard: Shard, arrays: Arrays) -> int:
        data = np.ascontiguousarray(arrays[FILE_BYTES], np.uint8).data  # a mapped file is not copied
        storage.publish(storage.join(self.folder, self.names[shard.index]), data)
        return data.nbytes


@dataclass(frozen=True)
class Place:
    """Who worked: actor (or `inline`, `task`), process, node, and the device it had."""

    actor: str
    pid: int
    node: str
    device: str

    @classmethod
    def here(cls, actor: str = "inline", device: str = "cpu") -> Place:
        return cls(actor, os.getpid(), socket.gethostname(), device)

    def with_words(self, words: str) -> Place:
        """The same with more on its device."""
        return dataclasses.replace(self, device=f"{self.device}: {words}") if words else self


@dataclass(frozen=True)
class Loaded:
    """What `load` gave, with when, where and how long."""

    payload: Any
    place: Place
    started: float
    seconds: float


@dataclass(frozen=True)
class Computed:
    """What `compute` gave, with what is to be said of the parts before publishing; the payload is gone."""

    arrays: Arrays
    loader: Place
    started: float
    load_seconds: float
    compute_seconds: float
    device_words: str


@dataclass(frozen=True)
class Receipt:
    """A shard is published: what came out, who did it, and how long each part took.

    `attempt` is the number of its own failures, and one. `lost`: how often it was given out again because a node or an
    actor went. Each part's seconds are its own, without the waits between them; other shards' parts may run in the
    same seconds.
    """

    stage: str
    index: int
    items: int
    rows: int
    size_bytes: int
    loader: Place
    worker: Place
    started: float
    finished: float
    load_seconds: float
    compute_seconds: float
    publish_seconds: float
    attempt: int = 1
    lost: int = 0


@one_blas_thread()
def load_shard(stage: Stage, shard: Shard, place: Place) -> Loaded:
    """Run the stage's CPU part."""
    started = time.time()
    payload = stage.load(shard)
    return Loaded(payload, place, started, time.time() - started)


@one_blas_thread()
def compute_shard(stage: Stage, loaded: Loaded) -> Computed:
    """Run the stage's device part."""
    begun = time.time()
    arrays = stage.compute(loaded.payload)
    seconds = time.time() - begun
    words = getattr(stage, "device_words", "")
    return Computed(arrays, loaded.place, loaded.started, loaded.seconds, seconds, words)


def publish_shard(stage: Stage, shard: Shard, computed: Computed, sink: Sink, place: Place) -> Receipt:
    """Publish what came out; from here on the shard is done."""
    begun = time.time()
    size_bytes = sink.publish(shard, computed.arrays)
    finished = time.time()
    return Receipt(
        stage=stage.name,
        index=shard.index,
        items=len(shard),
        rows=max((len(array) for array in computed.arrays.values() if array.ndim), default=0),
        size_bytes=size_bytes,
        loader=computed.loader,
        worker=place.with_words(computed.device_words),
        started=computed.started,
        finished=finished,
        load_seconds=computed.load_seconds,
        compute_seconds=computed.compute_seconds,
        publish_seconds=finished - begun,
    )
