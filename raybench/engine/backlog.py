"""How far loading runs ahead of the devices: as far as CPUs allow and devices need, and never beyond the room there is.

Plain numbers, no Ray: the flow says what happens and asks whether another load may start.
"""

from __future__ import annotations

import math

LOADED_PER_DEVICE = 4  # beyond what devices take up in the time of one load
UNKNOWN_BYTES = 2.0**26  # of a payload, until the first is loaded
NEWEST = 0.2  # weight of the newest in a recent mean: shards are often ordered by size


class Backlog:
    """What is loaded or being loaded and not yet published, against its bounds.

    `loaders`: loads that may run at once. `room_bytes`: of payloads, in the object stores. All may change on the way.
    """

    def __init__(self, devices: int, loaders: int, room_bytes: float) -> None:
        self.devices, self.loaders, self.room_bytes = devices, loaders, room_bytes
        self._loading = self._loaded = self._loaded_bytes = 0
        self._recent_bytes: float | None = None
        self._recent_load: float | None = None  # seconds
        self._recent_compute: float | None = None  # seconds

    def __len__(self) -> int:
        return self._loading + self._loaded

    def has_room(self) -> bool:
        """Whether another load may start. One shard per device always may, else nothing would ever make room."""
        if self._loading >= max(self.loaders, 1):
            return False
        return len(self) < self.devices or (len(self) < self._most_needed() and self._fits())

    def started(self) -> None:
        self._loading += 1

    def loaded(self, payload_bytes: int) -> None:
        """A load ended well; its payload waits for a device."""
        self._loading -= 1
        self._loaded += 1
        self._loaded_bytes += payload_bytes
        self._recent_bytes = _recent(self._recent_bytes, payload_bytes)

    def failed(self) -> None:
        """A load ended without a payload."""
        self._loading -= 1

    def gone(self, payload_bytes: int) -> None:
        """A payload is needed no longer: its shard is published, or will be loaded again."""
        self._loaded -= 1
        self._loaded_bytes -= payload_bytes

    def took(self, load_seconds: float, compute_seconds: float) -> None:
        """How long a shard was loaded and computed."""
        self._recent_load = _recent(self._recent_load, load_seconds)
        self._recent_compute = _recent(self._recent_compute, compute_seconds)

    def _fits(self) -> bool:
        each = UNKNOWN_BYTES if self._recent_bytes is None else self._recent_bytes
        return self._loaded_bytes + (self._loading + 1) * each <= self.room_bytes

    def _most_needed(self) -> float:
        """By Little's law: what devices take up in the time of one load, and some for each."""
        spare = LOADED_PER_DEVICE * self.devices
        if self._recent_load is None or self._recent_compute is None:
            return spare + self.loaders
        return spare + math.ceil(self.devices * self._recent_load / max(self._recent_compute, 1e-6))


def _recent(before: float | None, value: float) -> float:
    return value if before is None else (1 - NEWEST) * before + NEWEST * value
