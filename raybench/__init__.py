"""raybench: distributed batch evaluation, on Ray, of image and patch descriptors, copy detection and dense flow.

Folders in the order in which data meets them; a module imports its own folder and those above it:

    errors.py digests.py table.py   the error tree; what identifies a thing; rows at full precision
    formats/                        bytes <-> values
    metrics/                        figures and mergeable results
    storage.py                      URIs <-> bytes
    sources/                        patches, images and vectors, ordered, digested, readable by range
    descriptors/                    what describes them
    engine/                         shards, stages, runs, executors (in this process, Ray)
    extract/                        source x descriptor -> vector sets
    search/                         exact search, codecs, score normalisation
    benchmarks/                     one folder per family
    runs/                           one evaluation from job to folder; finished runs, the page
    demo/                           small data sets made from real photos
    cli/                            the command line
"""

import os

__version__ = "0.1.0"

# Shards are the parallelism: a process computes one at a time, with one BLAS thread, as Ray's workers do by default.
# Small products whose threads wait for each other took twenty times as long on a busy machine. OpenBLAS reads this
# once, when numpy is first imported, hence here; what the user set stands.
if "OMP_NUM_THREADS" not in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
