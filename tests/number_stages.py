"""Stages over whole numbers and their sinks, for tests of the engine: they die, fail, wait to be killed, or count."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raybench.errors import DataError, StorageUnavailable
from raybench.metrics.partials import Rows


def count_up(path):
    """How often this was called for a path, by any process."""
    with path.open("a") as file:
        file.write("x")
    return path.stat().st_size


def announce_and_wait(folder):
    """Leave this process's number in the file `here`, and wait to be killed."""
    (folder / "here.tmp").write_text(str(os.getpid()))
    (folder / "here.tmp").rename(folder / "here")
    time.sleep(60)


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
        return count_up(Path(self.folder) / self.how)


@dataclass(frozen=True)
class Unavailable(Squares):
    """A store does not answer at one item, a number of times."""

    how: str = "unavailable"

    def load(self, shard):
        if shard.start <= self.at < shard.stop and self._count() <= self.times:
            raise StorageUnavailable("s3://bucket: no answer")
        return super().load(shard)

    def compute(self, payload):
        return Rows.of(payload, payload.astype(np.float64) ** 2).to_arrays()


@dataclass(frozen=True)
class DyingLoads(Squares):
    """Ends the process that loads one item, a number of times."""

    on_device: bool = True
    how: str = "load"

    def load(self, shard):
        if shard.start <= self.at < shard.stop and self._count() <= self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(shard)

    def compute(self, payload):
        return Rows.of(payload, payload.astype(np.float64) ** 2).to_arrays()


@dataclass(frozen=True)
class Announcing(Squares):
    """Waits at item 7 to be killed, once."""

    def compute(self, payload):
        folder = Path(self.folder)
        if 7 in payload and not (folder / "gone").exists():
            announce_and_wait(folder)
        return super().compute(payload)


@dataclass(frozen=True)
class SlowLast(Squares):
    """Takes three seconds for number 15, the last of sixteen."""

    def compute(self, payload):
        time.sleep(3.0 if 15 in payload else 0.0)
        return super().compute(payload)


@dataclass(frozen=True)
class Gathering(Squares):
    """No shard is computed before so many processes are in it, however slowly they start."""

    at_once: int = 1

    def compute(self, payload):
        folder = Path(self.folder)
        (folder / f"{self.digest}-{os.getpid()}").touch()
        deadline = time.monotonic() + 120
        while (there := len(list(folder.glob(f"{self.digest}-*")))) < self.at_once:
            assert time.monotonic() < deadline, f"{there} processes, not {self.at_once}"
            time.sleep(0.01)
        return super().compute(payload)


@dataclass(frozen=True)
class MeetingLoads(Squares):
    """Loads wait for each other until so many are inside at once; each leaves a file that says how many it saw."""

    on_device: bool = True
    at_once: int = 1

    def load(self, shard):
        folder = Path(self.folder)
        mine = folder / f"inside-{shard.index}"
        mine.touch()
        deadline = time.monotonic() + 60
        while (inside := len(list(folder.glob("inside-*")))) < self.at_once and not (folder / "met").exists():
            assert time.monotonic() < deadline, f"{inside} loads at once, not {self.at_once}"
            time.sleep(0.01)
        (folder / f"saw-{inside}").touch()
        if inside >= self.at_once:
            (folder / "met").touch()
        mine.unlink()
        return super().load(shard)


@dataclass(frozen=True)
class Heavy(Squares):
    """Loads 10 MB per shard; a slow device sees how many are loaded and not yet computed."""

    on_device: bool = True

    def load(self, shard):
        count_up(Path(self.folder) / "loaded")
        return super().load(shard), np.ones(10**7, np.uint8)

    def compute(self, payload):
        numbers, _ = payload
        folder = Path(self.folder)
        waiting = (folder / "loaded").stat().st_size - count_up(folder / "computed")
        (folder / f"waiting-{waiting}").touch()
        return super().compute(numbers)


@dataclass(frozen=True)
class Travelling(Squares):
    """Leaves a line with the process's number wherever it arrives."""

    def __setstate__(self, state):
        self.__dict__.update(state)
        with (Path(self.folder) / "arrivals").open("a") as file:
            file.write(f"{os.getpid()}\n")


@dataclass(frozen=True)
class FaultySink:
    """Publishes as another sink does, but at one shard: fails there a number of times, or waits to be killed once."""

    sink: object
    folder: str
    at: int
    how: str
    times: int = 10**9

    def publish(self, shard, arrays):
        folder = Path(self.folder)
        if shard.index == self.at and self.how == "fail" and count_up(folder / "publish") <= self.times:
            raise OSError("the disk is full")
        if shard.index == self.at and self.how == "wait" and not (folder / "gone").exists():
            announce_and_wait(folder)
        return self.sink.publish(shard, arrays)
