"""The session in which jobs run: an executor that is up, and who watches it. It may serve many evaluations.

Ray takes seconds to come up, so it does that in a thread, while the caller checks inputs. The thread stays and ends Ray
itself, at the end: the kernel ends Ray's processes together with the thread that started them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybench.benchmarks.job import Job
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer, Observers, progress
from raybench.engine.ray_environment import for_the_driver
from raybench.engine.run import Executor
from raybench.errors import ConfigError
from raybench.runs.jobs import Settings

BEFORE_RAY_SECONDS = 0.05  # in which wrong arguments and missing files are found
# How long a thread keeps Python while another waits for it. Ray looks once per second whether it is up: at Python's own
# 5 ms the caller's checks delayed it past a look in six of eight runs, at this in one of eight.
SHORT_TURN_SECONDS = 0.0005
USUAL_TURN_SECONDS = sys.getswitchinterval()


@dataclass(frozen=True)
class Session:
    """An executor that is up, and who watches it."""

    executor: Executor
    observer: Observer


class ComingSession:
    """A session that comes up once it is begun, in the background, or asked for; `close` ends it, or its coming."""

    def __init__(self, job: Job[Any], settings: Settings) -> None:
        self._job, self._settings = job, settings
        self._shown = progress(settings.progress)
        self._thread = threading.Thread(target=self._live, name="raybench-session", daemon=True)
        self._up, self._ending, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._session: Session | None = None
        self._failure: BaseException | None = None

    def begin(self) -> None:
        """Let it come up while the caller does something else."""
        if self._thread.ident is None:
            sys.setswitchinterval(SHORT_TURN_SECONDS)
            self._thread.start()

    def say(self, message: str) -> None:
        """A line for the person who watches, whether or not it is up."""
        self._shown.said(message)

    def waits_for(self, what: str) -> None:
        """Let the person who watches know of something else that takes time, if it takes long."""
        self._shown.waiting(what)

    def get(self) -> Session:
        """The session, once it is up; raises what kept it from that."""
        ray = self._settings.ray
        if ray != "off" and not self._up.is_set():
            self._shown.waiting(
                "starting Ray on this machine" if ray == "local" else f"joining Ray at {ray}", is_news=True
            )
        self.begin()
        self._up.wait()
        if self._failure is not None:
            raise self._failure
        assert self._session is not None
        return self._session

    def close(self) -> None:
        try:
            self._end()
        finally:
            self._shown.closed()

    def _end(self) -> None:
        self._ending.set()
        if self._thread.ident is None:
            return
        if self._settings.ray != "off":
            self._shown.waiting("ending the work on Ray")
        try:
            self._ended.wait()
        except KeyboardInterrupt:
            # Ray's end is near, and a process that goes before it leaves Ray's threads in the air. An event is waited
            # for, since Python 3.11 takes a thread for ended once a `join` of it was interrupted.
            self._ended.wait()
            raise

    def _live(self) -> None:
        """The session's life, from its start to its end."""
        try:
            self._session = self._started()
        except BaseException as error:  # noqa: BLE001 (whoever asks for the session gets it)
            self._failure = error
        sys.setswitchinterval(USUAL_TURN_SECONDS)
        self._up.set()
        try:
            if self._session is not None:
                self._ending.wait()
                self._session.executor.close()
        finally:
            self._ended.set()

    def _started(self) -> Session | None:
        """The session; None if it was ended before Ray's own start."""
        job, settings = self._job, self._settings
        if settings.ray == "off":
            gpus, patience = _gpu_here(job.device), settings.patience_seconds
            return Session(InlineExecutor(self._shown, gpus, patience), self._shown)
        if self._ending.wait(BEFORE_RAY_SECONDS):
            return None
        # Only a run on Ray pays for importing it, a quarter of a second, in which many a wrong file is found.
        with for_the_driver(local=settings.ray == "local"):
            from raybench.engine.ray_core import connect
            from raybench.engine.telemetry import Counters

        if self._ending.is_set():
            return None
        watchers: list[Observer] = [self._shown]
        observer = Observers(watchers)
        executor = connect(
            settings.ray,
            cpus=settings.cpus,
            gpus=job.gpus,
            device=job.device,
            accelerators=job.accelerators,
            observer=observer,
            patience_seconds=settings.patience_seconds,
        )
        watchers.append(Counters())
        return Session(executor, observer)


@contextmanager
def coming_session(job: Job[Any], settings: Settings) -> Iterator[ComingSession]:
    """A session that joins or starts Ray, or stays in this process; ended with the block."""
    session = ComingSession(job, settings)
    try:
        yield session
    finally:
        session.close()


def _gpu_here(device: str) -> int:
    """1 if `--ray off` may use a GPU of this machine."""
    there = Path("/dev/nvidiactl").exists()
    if device == "gpu" and not there:
        raise ConfigError("--device gpu: this machine has no GPU; give --device cpu or auto")
    return int(there and device != "cpu")
