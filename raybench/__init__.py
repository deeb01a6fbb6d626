"""raybench: distributed batch evaluation, on Ray, of image and patch descriptors, copy detection and dense flow."""

import os

__version__ = "0.1.0"

# Shards are the parallelism: a process computes one at a time, with one BLAS thread, as Ray's workers do by default.
# Small products whose threads wait for each other took twenty times as long on a busy machine. OpenBLAS reads this
# once, when numpy is first imported, hence here; what the user set stands.
if "OMP_NUM_THREADS" not in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
