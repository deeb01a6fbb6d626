"""Stages over whole numbers, for tests of the engine: they may die, fail, find bad data, or wait to be killed."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raybench.errors import DataError
from raybench.metrics.partials import Rows


@dataclass(frozen=True)
class Squares:
    """Squares of whole numbers, as Rows; may die, fail or find bad data at one item, a number of times."""

    folder: str = ""
    at: int = -1
    how: str = ""
    times: int = 10**9
    on_device: bool = False
    name: str = "squares"
    pause: float = 0.0

    @property
    def digest(self):
        return f"squares-{self.how}-{self.on_device}"

    def load(self, shard):
        return np.arange(shard.start, shard.stop)

    def compute(self, payload):
        time.sleep(self.pause)
        if self.at in payload and self._count() <= self.times:
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "data":
                raise DataError("item.csv: line 3: nonsense; mend it")
            if self.how == "fail":
                raise RuntimeError("the network fell over")
        return Rows.of(payload, payload.astype(np.float64) ** 2).to_arrays()

    def keys(self, shard):
        return f"numbers {shard.start}..{shard.stop - 1}"

    def _count(self):
        path = Path(self.folder) / self.how
        with path.open("a") as file:
            file.write("x")
        return path.stat().st_size


@dataclass(frozen=True)
class Announcing(Squares):
    """Waits at item 7 to be killed, once."""

    def compute(self, payload):
        folder = Path(self.folder)
        if 7 in payload and not (folder / "gone").exists():
            (folder / "here.tmp").write_text(str(os.getpid()))
            (folder / "here.tmp").rename(folder / "here")
            time.sleep(60)
        return super().compute(payload)
