"""Descriptors in no more room than their numbers need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError


def compact(_: str, vectors: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in less room: SIFT's, whole and up to 255, in a quarter of what float32 takes."""
    is_byte = vectors.min(initial=0) >= 0 and vectors.max(initial=0) <= 255
    narrow = vectors.astype(np.uint8 if is_byte else np.float32, copy=False)
    if is_byte and not np.array_equal(narrow, vectors):
        narrow = vectors.astype(np.float32, copy=False)
    return narrow if np.array_equal(narrow, vectors) else vectors


def as_bytes(uri: str, vectors: NDArray[Any]) -> NDArray[np.uint8]:
    """Rows of bits or bytes as such; other numbers are a DataError."""
    narrow = vectors.astype(np.uint8)
    bad = np.flatnonzero((narrow != vectors).any(axis=1))
    if len(bad):
        raise DataError(f"{uri}: line {bad[0] + 1}: --distance hamming needs bits (0, 1) or bytes (0..255)")
    return narrow
