"""The executor without Ray: a loop in this process. Same plan, same bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from raybench.engine.attempts import STORAGE, Attempts, Failure
from raybench.engine.patience import HOUR, Patience
from raybench.engine.progress import Observer
from raybench.engine.shards import Shard
from raybench.engine.stages import Place, Receipt, Sink, Stage, compute_shard, load_shard, publish_shard


class InlineExecutor:
    """Runs every shard here, one after the other, in the caller's thread: a debugger and an interrupt reach it.

    Nothing overlaps: torch keeps its number of threads, by which sums are rounded, per thread.
    """

    def __init__(self, observer: Observer, gpus: int = 0, patience_seconds: float = HOUR) -> None:
        self.gpus = gpus
        self._observer, self._patience_seconds = observer, patience_seconds

    def map(self, stage: Stage, shards: Sequence[Shard], sink: Sink) -> Iterator[Receipt]:
        """A receipt for each shard as it is published."""
        attempts = Attempts(stage)
        patience = Patience(stage.name, self._patience_seconds, self._observer)
        place = Place.here()
        for shard in shards:
            while True:
                attempt = attempts.of(shard)
                try:
                    computed = compute_shard(stage, load_shard(stage, shard, place))
                    receipt = publish_shard(stage, shard, computed, sink, place)
                except Exception as error:  # noqa: BLE001 (any failure of a stage is counted, then raised)
                    failure = Failure.of(error)
                    if failure.nobodys == STORAGE:
                        self._observer.retried(stage.name, STORAGE)
                        again = attempts.pause(shard)
                        if again == 1:
                            patience.progressed()  # however long the shard took to compute, storage is silent from now
                        patience.wait_for_storage(failure.cause, again)
                        continue
                    attempts.note(shard, failure)
                    self._observer.retried(stage.name, "error")
                else:
                    patience.progressed()
                    yield dataclasses.replace(receipt, attempt=attempt)
                    break

    def cluster(self) -> dict[str, Any]:
        """What the manifest says of where the run ran."""
        return {"executor": "inline", "nodes": 1, "cpus": 1, "gpus": self.gpus}

    def close(self) -> None:
        """Nothing is held."""
