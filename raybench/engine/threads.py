"""Shards are the parallelism: while one is computed, BLAS has a single thread.

Small products whose threads wait for each other took twenty times as long on a busy machine. OpenMP is left alone:
FAISS and PyTorch have their number of threads set where they are used, a descriptor of the user's keeps its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit every BLAS library that is loaded, and give back the threads it had; costs 0.02 ms."""
    with _blas_libraries(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _blas_libraries(modules: int) -> Any:
    """What is loaded, looked for again (0.2-2 ms) once modules were imported, which may have brought a library."""
    from threadpoolctl import ThreadpoolController  # here, since it sets an environment variable when it is imported

    return ThreadpoolController().select(user_api="blas")
