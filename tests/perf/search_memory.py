"""Private memory of every process while 1,000 queries are searched in 2 M references of 256 values on disk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from raybench.engine.progress import Observer
from raybench.engine.ray_core import connect
from raybench.engine.run import Run
from raybench.search.candidates import global_pairs, nearest_pairs
from raybench.search.set_search import search_sets
from tests.perf.figures import Memory
from tests.perf.full_size import tree
from tests.perf.search import made_up

QUERIES, REFERENCES, DIMENSION, K = 1_000, 2_000_000, 256, 10
MOST_BYTES = 1.5e9
LOOK_EVERY_SECONDS = 0.1


def figures(folder: Path) -> Iterator[Memory]:
    """The process that holds most, over search, both kinds of candidates and the driver."""
    executor = connect("local", cpus=2, gpus=0, device="cpu", observer=Observer())
    try:
        run = Run(f"{folder}/out", f"{folder}/store", executor, Observer())
        queries = made_up(run, "queries", QUERIES, DIMENSION)
        references = made_up(run, "references", REFERENCES, DIMENSION, 65_536)
        with Watched() as watched:
            started = time.perf_counter()
            found = search_sets(run, queries, references, K, "squared_L2", device="cpu", global_candidates=True)
            nearest_pairs(run, found)
            global_pairs(run, found)
            seconds = time.perf_counter() - started
        held = watched.peak_bytes
        note = f"{seconds:.0f} s, the most of {len(held)} processes"
        yield Memory(f"{QUERIES:,} x {REFERENCES:,}, {DIMENSION}-d", max(held.values()), MOST_BYTES, note)
    finally:
        executor.close()


class Watched:
    """Looks at this process and every one below it (Ray's are, too) until it is left; peaks by process."""

    def __init__(self) -> None:
        self.peak_bytes: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_SECONDS):
            for process in tree(os.getpid()):
                self.peak_bytes[process] = max(self.peak_bytes.get(process, 0), private_bytes(process))


def private_bytes(process: int) -> int:
    """Resident bytes that are the process's own: neither mapped files nor Ray's shared object store."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1_024 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
