"""The receipts of one stage as they come in: their sums stay in memory, their lines wait in a temporary file.

A stage may have a hundred thousand shards. As objects their receipts take 0.9 kB each; here it is one byte.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections.abc import Sequence
from types import TracebackType

from raybench import storage
from raybench.engine.shards import Shard
from raybench.engine.stages import Receipt

IN_MEMORY_BYTES = 2**20  # of lines, before a file is made


class Receipts:
    """What was computed so far; `publish` writes a JSON line per shard, in the order in which they were published."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.computed = self.items = self.rows = self.size_bytes = self.attempts = self.lost = 0
        self._there = bytearray(shards[-1].index + 1 if shards else 0)  # by the shard's number, which rise
        self._workers: set[tuple[str, int]] = set()
        self._lines = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115 (closed by __exit__)

    def __enter__(self) -> Receipts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()

    def __contains__(self, shard: Shard) -> bool:
        return bool(self._there[shard.index])

    @property
    def workers(self) -> int:
        """How many processes computed something."""
        return len(self._workers)

    def add(self, receipt: Receipt) -> None:
        self.computed += 1
        self.items += receipt.items
        self.rows += receipt.rows
        self.size_bytes += receipt.size_bytes
        self.attempts += receipt.attempt
        self.lost += receipt.lost
        self._there[receipt.index] = 1
        self._workers.add((receipt.worker.node, receipt.worker.pid))
        self._lines.write(json.dumps(vars(receipt), default=vars).encode() + b"\n")

    def publish(self, uri: str) -> None:
        """Write the lines, if there are any."""
        if not self.computed:
            return
        self._lines.rollover()
        self._lines.flush()
        with mmap.mmap(self._lines.fileno(), 0, access=mmap.ACCESS_READ) as lines, memoryview(lines) as view:
            storage.publish(uri, view)
