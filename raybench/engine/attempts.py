"""Failures of shards: which are tried again, and when it is enough.

A worker returns a Failure instead of raising, so that an exception of the user's code, which may not pickle,
can't get lost on the way to the driver.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass

from raybench.engine.shards import Shard
from raybench.engine.stages import Stage
from raybench.errors import CorruptShard, InputError, ShardFailed, StorageUnavailable
from raybench.masking import masked

MOST_FAILURES = 3


@dataclass(frozen=True)
class Failure:
    """Why a shard was not published: `error` is one of our own, `cause` is any other in words."""

    cause: str
    trace: str = ""
    error: Exception | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        # A store that does not answer may do so for the next attempt; any other trouble with it is the user's to mend.
        final = isinstance(error, InputError | CorruptShard) and not isinstance(error, StorageUnavailable)
        ours = error if final else None
        trace = "".join(traceback.format_exception(error))
        return cls(masked(f"{type(error).__name__}: {error}"), masked(trace), ours)


class Attempts:
    """Counts the failures of one stage's shards."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._failures: Counter[int] = Counter()

    def of(self, shard: Shard) -> int:
        """The number of the attempt that is under way, from 1."""
        return self._failures[shard.index] + 1

    def note(self, shard: Shard, failure: Failure) -> None:
        """Count a failure; raises if it is final: the user's input, a broken shard, or the third one."""
        if failure.error is not None:
            raise failure.error
        self._failures[shard.index] += 1
        if self._failures[shard.index] >= MOST_FAILURES:
            raise ShardFailed(
                f"stage {self._stage.name}, shard {shard.index} ({self._stage.keys(shard)}) failed "
                f"{MOST_FAILURES} times; the last cause: {failure.cause}"
            ) from (RuntimeError(failure.trace) if failure.trace else None)
