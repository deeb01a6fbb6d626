"""Reads damaged inputs in a process of its own, bounded in memory and in CPU time per input.

`python -m fuzz.worker READER SEED START STOP FOLDER` leaves a letter per input in FOLDER/outcomes (o: an error of ours,
v: values, f: anything else) and a line of JSON per `f` in FOLDER/words. A hang ends the process by SIGPROF, a crash by
its own signal: the letter that is missing says which input it was.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
from fuzz.mutations import damaged
from fuzz.readers import OWN_ERRORS, READERS

CPU_SECONDS = 5  # that one input of some kB may take
MOST_BYTES = 2**30  # that one input of some kB may take, above what the process had


def damaged_input(name: str, seed: int, number: int) -> bytes:
    """Input `number` of a reader."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    return damaged(rng, READERS[name].seeds(), READERS[name].repack)


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


def bounded() -> None:
    """From here on this process may take so much more memory, and a hang ends it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def main(name: str, seed: int, start: int, stop: int, left: Path) -> None:
    warnings.simplefilter("ignore")
    made = READERS[name].seeds()
    letters, said = (left / "outcomes").open("ab", buffering=0), (left / "words").open("a", buffering=1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for data in made:  # brings in the libraries, which are not the input's memory
            letter, words = outcome(name, data, folder)
            if letter == "f":
                raise AssertionError(f"{name}: a seed raises {words}")
        bounded()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(start, stop):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
            letter, words = outcome(name, damaged(rng, made, READERS[name].repack), folder)
            if letter == "f":
                said.write(json.dumps({"number": number, "words": words}) + "\n")
            letters.write(letter.encode())
    peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    said.write(json.dumps({"peak_bytes": peak}) + "\n")
    os._exit(0)  # libraries that read damaged bytes need not also clean up behind them


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:5]), Path(sys.argv[5]))
