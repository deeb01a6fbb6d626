"""`make bench`: raybench beside plain versions of what the published tools do, timed in one run.

Prints a line a figure and ends with 0 whenever it ran; a missed target says MISSED. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
from pathlib import Path

BENCHES = {
    "classification": "tests.perf.classification",
    "matching": "tests.perf.matching",
    "ray-overhead": "tests.perf.ray_overhead",
    "loading": "tests.perf.loading",
    "overlap": "tests.perf.overlap",
    "many-devices": "tests.perf.many_devices",
    "bookkeeping": "tests.perf.bookkeeping",
    "reading": "tests.perf.reading",
    "verification": "tests.perf.verification",
    "hpatches-matching": "tests.perf.hpatches_matching",
    "hpatches-retrieval": "tests.perf.hpatches_retrieval",
    "image-extraction": "tests.perf.image_extraction",
    "search": "tests.perf.search",
    "search-memory": "tests.perf.search_memory",
    "pooled": "tests.perf.pooled",
    "flow": "tests.perf.flow",
}
# Minutes and gigabytes.
ONLY_WHEN_ASKED = {"full-size": "tests.perf.full_size", "vector-files": "tests.perf.vector_files"}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    """Run the named benches; by default all but those that run only when asked for."""
    known = BENCHES | ONLY_WHEN_ASKED
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = parser.parse_args().names or list(BENCHES)
    for name in names:
        if name not in known:
            parser.error(f"no bench {name!r}; there are {', '.join(known)}")
    os.environ.update(ONE_THREAD)  # read once, when numpy is first imported: hence modules by name
    for name in names:
        module = importlib.import_module(known[name])
        print(f"# {name}: {str(module.__doc__).splitlines()[0]}", flush=True)
        with tempfile.TemporaryDirectory(prefix="raybench-perf-") as folder:
            for figure in module.figures(Path(folder)):
                print(figure.line(), flush=True)


if __name__ == "__main__":
    main()
