"""How many workers a stage asks for: as many as there are or as the user asked for, and more where a cluster can grow.

Plain numbers, no Ray. Pending workers are what an autoscaler sees, so asking is all it takes.
"""

from __future__ import annotations

import time

WORTH_A_NODE_SECONDS = 120.0  # a machine of a cloud takes about so long to come up


class Demand:
    """The workers of one stage of so many shards. `asked`: by the user; None leaves it to what there is."""

    def __init__(self, shards: int, asked: int | None) -> None:
        self._shards, self._asked = shards, asked
        self._most_there = 1
        self._started = time.monotonic()

    def wanted(self, there: int, left: int, grows: bool) -> int:
        """Workers for what is left, of a cluster that has room for `there` and perhaps `grows`.

        What was lost on the way is asked for again. A cluster that grows is asked for twice what it has, for as long as
        the rest would take longer than a node takes to come.
        """
        if not there:
            self._started = time.monotonic()  # waiting for the first node says nothing about shards
        self._most_there = max(self._most_there, there)
        if self._asked is not None:
            return min(left, self._asked)
        takes_long = self._seconds_left(left) > WORTH_A_NODE_SECONDS
        return min(left, max(self._most_there, 2 * there if grows and takes_long else 0))

    def _seconds_left(self, left: int) -> float:
        """At the pace so far; of a stage without a single shard yet at the pace of one that is just done."""
        return (time.monotonic() - self._started) * left / max(self._shards - left, 1)
