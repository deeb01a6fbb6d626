"""`make bench`: this machine's ceilings, and raybench beside them and beside plain versions of the published tools.

Prints a line per figure, then the path of a JSON file with all of them, and ends with 0 whenever it ran; a missed
target says MISSED. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time
from pathlib import Path

from tests.perf.records import Record

# Name -> module, or module:function where it is not `figures`.
BENCHES = {
    "ceilings": "tests.perf.ceilings",
    "shares": "tests.perf.shares",
    "growth": "tests.perf.growth",
    "names": "tests.perf.million_names",
    "classification": "tests.perf.classification",
    "matching": "tests.perf.matching",
    "ray-overhead": "tests.perf.ray_overhead",
    "loading": "tests.perf.loading",
    "overlap": "tests.perf.overlap",
    "many-devices": "tests.perf.many_devices",
    "bookkeeping": "tests.perf.bookkeeping",
    "reading": "tests.perf.reading",
    "archives": "tests.perf.archives",
    "verification": "tests.perf.verification",
    "hpatches-matching": "tests.perf.hpatches_matching",
    "hpatches-retrieval": "tests.perf.hpatches_retrieval",
    "image-extraction": "tests.perf.image_extraction",
    "search": "tests.perf.search",
    "search-memory": "tests.perf.search_memory",
    "disc": "tests.perf.disc_command",
    "pooled": "tests.perf.pooled",
    "drawn": "tests.perf.drawn",
    "flow": "tests.perf.flow",
}
# Minutes and gigabytes.
ONLY_WHEN_ASKED = {
    "million-names": "tests.perf.million_names:million",
    "disc-full": "tests.perf.disc_command:full",
    "full-size": "tests.perf.full_size",
    "hpatches-start": "tests.perf.hpatches_start",
    "vector-files": "tests.perf.vector_files",
}
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
    record = Record()
    for name in names:
        started, shown = time.monotonic(), []
        module_name, _, function = known[name].partition(":")
        module = importlib.import_module(module_name)
        print(f"# {name}: {str(module.__doc__).splitlines()[0]}", flush=True)
        with tempfile.TemporaryDirectory(prefix="raybench-perf-") as folder:
            for figure in getattr(module, function or "figures")(Path(folder)):
                print(figure.line(), flush=True)
                shown.append(figure)
        record.add(name, shown, time.monotonic() - started)
    print(f"# all figures with their repeats: {record.path}")


if __name__ == "__main__":
    main()
