"""A lease: which driver works on an output folder, since when, and that it still lived a moment ago."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True)
class Lease:
    """`key` is one driver's own. `machine` and `started` tell its process from others of the same number."""

    host: str
    pid: int
    machine: str
    started: str
    since: float
    renewed: float
    key: str

    @classmethod
    def of_this_process(cls) -> Lease:
        pid, now = os.getpid(), time.time()
        return cls(socket.gethostname(), pid, _machine(), _started(pid), now, now, uuid.uuid4().hex)

    @classmethod
    def read(cls, data: bytes) -> Lease | None:
        """The lease that these bytes hold, None if they hold none."""
        try:
            found = cls(**json.loads(data))
            is_one = found.words and isinstance(found.pid, int) and isinstance(found.renewed, int | float)
            return found if is_one else None
        except (ValueError, TypeError, OverflowError, OSError, RecursionError):  # some are of a time that is none
            return None

    def to_bytes(self) -> bytes:
        return json.dumps(dataclasses.asdict(self)).encode() + b"\n"

    def again(self) -> Lease:
        """The same, renewed now."""
        return dataclasses.replace(self, renewed=time.time())

    @property
    def words(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {self.pid} on {self.host}, since {since}"

    @property
    def is_surely_dead(self) -> bool:
        """Whether it was of a process of this machine that has ended; of others nothing is known."""
        return self.machine != "" and self.machine == _machine() and _started(self.pid) != self.started


def _machine() -> str:
    """What tells this machine's process ids, since it was booted, from those of any other machine or container."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return ""


def _started(pid: int) -> str:
    """When a process was started, in ticks since the boot; nothing if there is no such process."""
    with suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else fields[18]
    return ""
