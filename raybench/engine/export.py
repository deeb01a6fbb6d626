"""Export: the stage whose shards are output files. It only writes; what it writes was computed by other stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybench.digests import digest_of
from raybench.engine.shards import Shard
from raybench.engine.stages import FILE_BYTES
from raybench.formats.shardfile import Arrays


@dataclass(frozen=True)
class Export:
    """`write` gives the bytes of a file by its number, on any worker (so it pickles); `words` name each, for errors.

    `source` is the digest of what is written.
    """

    name: str
    source: str
    write: Callable[[int], bytes]
    words: tuple[str, ...]

    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.source)

    def load(self, shard: Shard) -> int:
        return shard.start

    def compute(self, payload: int) -> Arrays:
        return {FILE_BYTES: np.frombuffer(self.write(payload), np.uint8)}

    def keys(self, shard: Shard) -> str:
        return self.words[shard.start]
