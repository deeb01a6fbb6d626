"""raybench: distributed batch evaluation, on Ray, of image and patch descriptors, copy detection and dense flow.

A module imports its own package and the rows above it:

    pure        metrics/ formats/ drawing/ table.py errors.py digests.py    numbers, bytes, pictures
    bytes       storage.py                                                  URIs
    inputs      sources.py image_folders.py vector_sources/ flow_sets.py    patches, images, vectors, flows,
                descriptors/                                                and what describes them
    engine      engine/                                                     shards, stages, retries; Ray
    steps       steps/                                                      extraction, codecs, search, distances, flow
    benchmarks  benchmarks/                                                 layout, truth, wiring and table of each
    edges       evaluate.py arguments.py cli.py tasks.py sscd_flags.py      the output folder, the command line,
                report/ demo/                                               pages, demo data
"""

import os

__version__ = "0.1.0"

# Shards are the parallelism: a process computes one at a time, with one BLAS thread, as Ray's workers do by default.
# Small products whose threads wait for each other took twenty times as long on a busy machine. OpenBLAS reads this
# once, when numpy is first imported, hence here; what the user set stands.
if "OMP_NUM_THREADS" not in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
