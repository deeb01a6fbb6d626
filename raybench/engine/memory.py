"""Memory that a stage no longer needs, given back to the system before the next one.

glibc keeps what was freed, by thread. The threads that load and publish 16 MB at a time left 300 MB in every worker, on
top of which the next stage began.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Any


def give_back() -> None:
    """Return what is free to the system, where the C library can; takes milliseconds."""
    gc.collect()
    library = _library()
    if library is not None:
        library.malloc_trim(0)


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(None)
        library.malloc_trim  # noqa: B018 (is it there?)
    except (OSError, AttributeError):  # another system's C library
        return None
    return library
