"""Drivers as processes of their own, which tests stop at a chosen call, signal, kill, and look behind."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
PAIRS_PER_SHARD = "4"
AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")  # of a Ray that was killed: they look for it a minute longer


@dataclass(frozen=True)
class Stop:
    """The call at which a driver, or one of its workers, waits: see `stopping/sitecustomize.py`."""

    function: str
    named: str = ""
    call: int = 1


class Driver:
    """A `raybench` command under way; `stop` has it wait at a call. Its processes have a session of their own."""

    def __init__(self, arguments, folder, stop=None, env=None, ignored=None):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        environment = {**os.environ, **(env or {})}
        if stop is not None:
            (self.folder / "wait").touch()
            environment["STOP_AT"] = json.dumps({**vars(stop), "folder": str(self.folder)})
            environment["PYTHONPATH"] = f"{TESTS / 'stopping'}{os.pathsep}{environment['PYTHONPATH']}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "small_shards", PAIRS_PER_SHARD, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment,
            preexec_fn=lambda: set_signals(ignored),
        )

    @property
    def pid(self):
        return self.process.pid

    def wait_until_stopped(self):
        """The id of the process that waits."""
        wait_until(lambda: (self.folder / "here").exists(), self.process)
        return int((self.folder / "here").read_text())

    def go_on(self):
        (self.folder / "wait").unlink()

    def ended(self, seconds=120):
        """The exit code and what was said on standard error."""
        _, said = self.process.communicate(timeout=seconds)
        return self.process.returncode, said

    def left(self, without=()):
        """The command lines of its processes that have not ended."""
        return [line for line in session_processes(self.pid).values() if not line.startswith(without)]


def set_signals(ignored):
    for number in (signal.SIGINT, signal.SIGHUP):  # a suite in the background, or below nohup, ignores it
        signal.signal(number, signal.SIG_DFL)
    if ignored is not None:
        signal.signal(ignored, signal.SIG_IGN)


def run(arguments, env=None, seconds=200):
    """The exit code and what was said on standard error, of a command that nobody disturbs."""
    command = [sys.executable, "-m", "small_shards", PAIRS_PER_SHARD, *map(str, arguments)]
    said = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=seconds, env={**os.environ, **(env or {})}
    )
    return said.returncode, said.stderr


def wait_until(happened, process=None, seconds=90):
    deadline = time.monotonic() + seconds
    while not happened():
        assert process is None or process.poll() is None, (
            f"it ended too soon: {process.stderr and process.stderr.read()}"
        )
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def has_ended(pid):
    """Whether a process has ended, though perhaps nobody has asked how."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def session_processes(leader):
    """The processes in a session that have not ended: the command line of each, by its id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader and not has_ended(entry.name):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # ended meanwhile
                continue
    return found


@dataclass(frozen=True)
class Listener:
    """A process that listens for connections; the address is as the kernel writes it."""

    command: str
    address: str
    port: int

    @property
    def is_loopback(self):
        """127.x.y.z, ::1, or 127.x.y.z written as an IPv6 address; the kernel's order of bytes is the machine's."""
        words = [self.address[at : at + 8] for at in range(0, len(self.address), 8)]
        value = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
        return value == b"\0" * 15 + b"\1" or value.removeprefix(b"\0" * 10 + b"\xff\xff")[0] == 127


def listeners(leader):
    """Where the processes of a session listen."""
    places = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":  # listening
                places[f"socket:[{fields[9]}]"] = fields[1].split(":")
    found = []
    for pid, command in session_processes(leader).items():
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                address, port = places.get(str(link.readlink()), (None, None))
                if address is not None:
                    found.append(Listener(command, address, int(port, 16)))
    return found


def results(out):
    """Everything that a run leaves but what tells of time and place: by name, its bytes."""
    found = (path for path in Path(out).rglob("*") if path.is_file())
    named = {path.relative_to(out).as_posix(): path for path in found}
    apart = ("manifest.json", "report.html", "result.json", "receipts/")
    return {name: path.read_bytes() for name, path in named.items() if not name.startswith(apart)}
