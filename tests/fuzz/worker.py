"""Reads damaged inputs in a process of its own, bounded in memory and in CPU time per input.

`python -m fuzz.worker SEED FOLDER READER:START:STOP …` leaves a letter per input in FOLDER/READER (o: an error of ours,
v: values, f: anything else) and lines of JSON in FOLDER/words. A hang ends the process by SIGPROF, a crash by its own
signal: the letter that is missing says which input it was.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
from fuzz.mutations import damaged
from fuzz.readers import FAULTY, OWN_ERRORS
from fuzz.readers import READERS as REAL

STORED = -1  # in place of a seed
CPU_SECONDS = 4  # that one input of some kB may take
READERS = REAL | {"faulty": FAULTY}
MOST_BYTES = 2**30  # that one input of some kB may take, above what the process had


@cache
def stored_inputs() -> dict[str, list[bytes]]:
    """Inputs at which a reader once failed, by reader."""
    found: dict[str, list[bytes]] = defaultdict(list)
    with zipfile.ZipFile(Path(__file__).parent / "corpus.zip") as corpus:
        for member in corpus.namelist():
            found[member.rpartition("/")[0]].append(corpus.read(member))
    return found


def damaged_input(name: str, seeds: list[bytes], seed: int, number: int) -> bytes:
    """Input `number` of a reader: made with a seed, or among those that are stored."""
    if seed == STORED:
        return stored_inputs()[name][number]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    return damaged(rng, seeds, READERS[name].repack)


def outcome(name: str, data: bytes, folder: Path) -> tuple[str, str]:
    """The letter of one input, and what was raised, in words."""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        READERS[name].read(data, folder)
    except OWN_ERRORS as error:
        lines = error.lines() if hasattr(error, "lines") else [str(error)]
        odd = [line for line in lines if "\n" in line or not line.strip()]
        return ("f", f"not one line: {odd[0][:200]!r}") if odd else ("o", "")
    except BaseException as error:  # noqa: BLE001 (whatever else a reader raises is what is looked for)
        return "f", f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "v", ""


def warm_up(name: str, seeds: list[bytes], folder: Path) -> None:
    """Read the seeds, which brings in libraries: these are not the damaged inputs' memory."""
    for data in seeds:
        letter, words = outcome(name, data, folder)
        if letter == "f":
            raise AssertionError(f"{name}: a seed raises {words}")


def bound_memory(most_bytes: int | None) -> None:
    """From here on this process may take so much more memory (None: any)."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = resource.RLIM_INFINITY if most_bytes is None else pages * resource.getpagesize() + most_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def peak_bytes(begin: bool = False) -> int:
    """The most memory that this process has held since it was asked to begin counting."""
    if begin:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return 1024 * int(status.split()[0])


def main(seed: int, left: Path, *jobs: str) -> None:
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    said = (left / "words").open("a", buffering=1)
    for name, start, stop in (job.rsplit(":", 2) for job in jobs):
        seeds = READERS[name].seeds()
        with tempfile.TemporaryDirectory() as scratch, (left / name).open("ab", buffering=0) as letters:
            warm_up(name, seeds, Path(scratch))
            bound_memory(MOST_BYTES)
            before = peak_bytes(begin=True)
            for number in range(int(start), int(stop)):
                letter, words = outcome(name, damaged_input(name, seeds, seed, number), Path(scratch))
                letters.write(letter.encode())
                if letter == "f":
                    said.write(json.dumps({"reader": name, "number": number, "words": words}) + "\n")
        said.write(json.dumps({"reader": name, "peak_bytes": peak_bytes() - before}) + "\n")
        bound_memory(None)
    os._exit(0)  # libraries that have read damaged bytes need not clean up behind them


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
