"""How shards pass through a worker: while one is computed, the next is loaded and those before it are published.

A shard leaves a station only once the next has room for it. So a worker holds one loaded shard, one computed and a few
that are being published at the most, whichever part is the slowest.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from types import TracebackType

from raybench.engine.shards import Shard
from raybench.engine.stages import Loaded, Place, Receipt, Sink, Stage, compute_shard, load_shard, publish_shard

PUBLISHED_AT_ONCE = 2  # publishing waits for storage


class Stations:
    """The three stations of one worker. Each shard is brought by a thread of its own, to which its errors go."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._load, self._compute, self._publish = Semaphore(1), Semaphore(1), Semaphore(PUBLISHED_AT_ONCE)
        # The same thread for all shards: torch, FAISS and CUDA keep settings per thread.
        self._computer = ThreadPoolExecutor(1, "compute")

    def pass_through(self, stage: Stage, shard: Shard, sink: Sink, loaded: Loaded | None = None) -> Receipt:
        """Load a shard (unless it was done ahead), compute and publish it."""
        with _Passage() as passage:
            if loaded is None:
                passage.move_to(self._load)
                loaded = load_shard(stage, shard, self._place)
            passage.move_to(self._compute)
            computed = self._computer.submit(compute_shard, stage, loaded).result()
            del loaded
            passage.move_to(self._publish)
            return publish_shard(stage, shard, computed, sink, self._place)


class _Passage:
    """Where one shard is."""

    def __init__(self) -> None:
        self._at: Semaphore | None = None

    def __enter__(self) -> _Passage:
        return self

    def move_to(self, station: Semaphore) -> None:
        """Wait for room there, then leave the station before it."""
        station.acquire()
        self._leave()
        self._at = station

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._at is not None:
            self._at.release()
            self._at = None
