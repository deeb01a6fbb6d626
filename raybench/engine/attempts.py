"""Failures of shards: which are tried again, whose fault they are, and when it is enough.

An exception of the user's own class is tried once more, since memory or a download may have run short; a second one of
the same type at the same line is final.

A worker returns a Failure instead of raising, so that an exception of the user's code, which may not pickle,
can't get lost on the way to the driver.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass

from raybench.engine.shards import Shard
from raybench.engine.stages import Stage
from raybench.errors import CorruptShard, InputError, OwnCodeFailed, ShardFailed, StorageUnavailable
from raybench.masking import masked

MOST_FAILURES = 3
STORAGE, NODE_LOST = "storage", "node_lost"  # causes that are nobody's fault


@dataclass(frozen=True)
class Failure:
    """Why a shard was not published: `error` is one of our own, `cause` is any other in words.

    `own` is set where the user's own class raised; `nobodys` is STORAGE or NODE_LOST where the shard did nothing wrong:
    it is tried again, and not counted.
    """

    cause: str
    trace: str = ""
    error: Exception | None = None
    nobodys: str = ""
    own: OwnCodeFailed | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        if isinstance(error, OwnCodeFailed):
            return cls(error.line, error.trace, own=error)
        if isinstance(error, StorageUnavailable):
            return cls(masked(str(error)), nobodys=STORAGE)
        final = isinstance(error, InputError | CorruptShard)
        ours = error if final else None
        trace = "".join(traceback.format_exception(error))
        return cls(masked(f"{type(error).__name__}: {error}"), masked(trace), ours)


class Attempts:
    """Counts the failures of one stage's shards, and apart from them what was nobody's fault."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._failures: Counter[int] = Counter()
        self._raised: dict[int, str] = {}  # where the user's own class raised last, by shard
        self._lost: Counter[int] = Counter()
        self._paused: Counter[int] = Counter()

    def of(self, shard: Shard) -> int:
        """The number of the attempt that is under way, from 1."""
        return self._failures.get(shard.index, 0) + 1

    def times_lost(self, shard: Shard) -> int:
        """How often the shard was given out again because a node or an actor went."""
        return self._lost.get(shard.index, 0)

    def lose(self, shard: Shard) -> None:
        self._lost[shard.index] += 1

    def pause(self, shard: Shard) -> int:
        """How often the shard has waited for storage, with this time."""
        self._paused[shard.index] += 1
        return self._paused[shard.index]

    def note(self, shard: Shard, failure: Failure) -> None:
        """Count a failure; raises if it is final: the user's input, a broken shard, the user's class twice at the same
        line, or the third one."""
        if failure.error is not None:
            raise failure.error
        if failure.own is not None:
            self._note_own(shard, failure.own)
        self._failures[shard.index] += 1
        if self._failures[shard.index] >= MOST_FAILURES:
            raise ShardFailed(
                f"stage {self._stage.name}, shard {shard.index} ({self._stage.keys(shard)}) failed "
                f"{MOST_FAILURES} times; the last cause: {failure.cause}"
            ) from (RuntimeError(failure.trace) if failure.trace else None)

    def _note_own(self, shard: Shard, own: OwnCodeFailed) -> None:
        if self._raised.get(shard.index) == own.where:
            where = f"stage {self._stage.name}, shard {shard.index}: {self._stage.keys(shard)}"
            raise OwnCodeFailed(f"{own.line} ({where})", own.where, own.trace)
        self._raised[shard.index] = own.where
