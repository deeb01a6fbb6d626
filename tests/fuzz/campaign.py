"""A campaign: damaged inputs for readers, in worker processes, and what became of them.

`python -m fuzz.campaign [--inputs N] [--seed N] [READER …]` from `tests/` prints a line per reader.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.readers import READERS

TESTS = Path(__file__).parent.parent
ALL_INPUTS = 50_000
WALL_SECONDS = 240  # for one worker, which the CPU clock of each input ends long before


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    inputs: int = 0
    own_errors: int = 0
    values: int = 0
    peak_bytes: int = 0
    seconds: float = 0
    failures: list[str] = field(default_factory=list)


def tally(name: str, seed: int, start: int, stop: int) -> Tally:
    """Read these inputs; a worker that dies is a failure, and the next one goes on behind it."""
    found, began = Tally(inputs=stop - start), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcomes, words = (Path(folder) / name for name in ("outcomes", "words"))
        outcomes.touch()
        while (done := outcomes.stat().st_size) < stop - start:
            worker = _worker(name, seed, start + done, stop, folder)
            if worker.returncode > 0:
                raise AssertionError(f"the worker of {name} failed: {worker.stderr[-2000:]}")
            if worker.returncode < 0:
                which = signal.Signals(-worker.returncode).name
                what = {"SIGPROF": "hangs", "SIGKILL": "hangs without using the CPU"}.get(which, f"crashes by {which}")
                at = outcomes.stat().st_size
                found.failures.append(f"{name} seed {seed} input {start + at}: {what}")
                with outcomes.open("ab") as letters:
                    letters.write(b"d")
        letters = outcomes.read_bytes()
        for said in map(json.loads, words.read_text().splitlines()):
            found.peak_bytes = max(found.peak_bytes, said.get("peak_bytes", 0))
            if "number" in said:
                found.failures.append(f"{name} seed {seed} input {said['number']}: {said['words']}")
    found.own_errors, found.values = letters.count(b"o"), letters.count(b"v")
    found.seconds = time.monotonic() - began
    return found


def _worker(name: str, seed: int, start: int, stop: int, folder: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fuzz.worker", name, *map(str, (seed, start, stop, folder))]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    worker = subprocess.Popen(
        command, cwd=TESTS, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = worker.communicate(timeout=WALL_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        out, err = worker.communicate()
    return subprocess.CompletedProcess(command, worker.returncode, out, err)


def campaign(names: list[str], inputs: int, seed: int) -> dict[str, Tally]:
    """Each reader's share of so many inputs, in proportion to `Reader.inputs`."""
    every = sum(reader.inputs for reader in READERS.values())
    return {name: tally(name, seed, 0, -(-READERS[name].inputs * inputs // every)) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*", default=list(READERS))
    parser.add_argument("--inputs", type=int, default=ALL_INPUTS, help="of all readers together")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.readers:
        found = campaign([name], given.inputs, given.seed)[name]
        figures = f"{found.inputs:6,} inputs {found.own_errors:6,} own errors {found.values:6,} values"
        print(f"{name:24} {figures} {len(found.failures):4} failures {found.peak_bytes / 2**20:6.0f} MB", end="")
        print(f" {found.seconds:5.1f} s", flush=True)
        for line in found.failures[:12]:
            print("   ", line[:300], flush=True)


if __name__ == "__main__":
    main()
