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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.readers import READERS

TESTS = Path(__file__).parent.parent
ALL_INPUTS = 50_000
WALL_SECONDS = 1_800  # for one worker; the CPU clock of each input ends it long before


@dataclass
class Tally:
    """What became of the inputs of one reader; `failures` are foreign exceptions, hangs and crashes, in words."""

    inputs: int
    own_errors: int = 0
    values: int = 0
    peak_bytes: int = 0
    failures: list[str] = field(default_factory=list)


def shares(inputs: int, names: list[str] | None = None) -> dict[str, int]:
    """Each reader's share of so many inputs, in proportion to `Reader.inputs`."""
    every = sum(reader.inputs for reader in READERS.values())
    return {name: -(-READERS[name].inputs * inputs // every) for name in names or READERS}


def campaign(inputs: Mapping[str, int], seed: int, first: int = 0) -> dict[str, Tally]:
    """Read so many inputs by each reader; a worker that dies is a failure, and the next one goes on behind it."""
    found = {name: Tally(count) for name, count in inputs.items()}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        while left := {name: _done(folder, name) for name in inputs if _done(folder, name) < inputs[name]}:
            jobs = [f"{name}:{first + done}:{first + inputs[name]}" for name, done in left.items()]
            code = _work(seed, folder, jobs)
            name = next((name for name in left if _done(folder, name) < inputs[name]), "")
            if code < 0 and name:
                number = first + _done(folder, name)
                found[name].failures.append(f"{name}, seed {seed}, input {number}: {_words_of(signal.Signals(-code))}")
                with (folder / name).open("ab") as letters:
                    letters.write(b"d")
        for name, tally in found.items():
            letters = (folder / name).read_bytes()
            tally.own_errors, tally.values = letters.count(b"o"), letters.count(b"v")
        for said in map(json.loads, (folder / "words").read_text().splitlines()):
            tally = found[said["reader"]]
            tally.peak_bytes = max(tally.peak_bytes, said.get("peak_bytes", 0))
            if "words" in said:
                tally.failures.append(f"{said['reader']}, seed {seed}, input {said['number']}: {said['words']}")
    return found


def _done(folder: Path, name: str) -> int:
    return (folder / name).stat().st_size if (folder / name).exists() else 0


def _words_of(ended: signal.Signals) -> str:
    return {"SIGPROF": "hangs", "SIGKILL": "hangs without using the CPU"}.get(ended.name, f"crashes by {ended.name}")


def _work(seed: int, folder: Path, jobs: list[str]) -> int:
    """Run a worker; returns its exit code, which is below zero where a signal ended it."""
    command = [sys.executable, "-m", "fuzz.worker", str(seed), str(folder), *jobs]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    with (folder / "said").open("w") as said:
        worker = subprocess.Popen(command, cwd=TESTS, env=environment, stdout=said, stderr=subprocess.STDOUT)
        try:
            worker.wait(WALL_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
    if worker.returncode > 0:
        raise AssertionError(f"the worker failed: {(folder / 'said').read_text(errors='replace')[-2000:]}")
    return worker.returncode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--inputs", type=int, default=ALL_INPUTS, help="of all readers together")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name, tally in campaign(shares(given.inputs, given.readers), given.seed).items():
        figures = f"{tally.inputs:6,} inputs {tally.own_errors:6,} own errors {tally.values:6,} values"
        print(f"{name:24} {figures} {len(tally.failures):4} failures {tally.peak_bytes / 2**20:6.0f} MB")
        for line in tally.failures[:12]:
            print("   ", line[:300])


if __name__ == "__main__":
    main()
