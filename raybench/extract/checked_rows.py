"""The check of what a descriptor returned, the same for patches and for images."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError


class Named(Protocol):
    """What a message says of a descriptor."""

    @property
    def name(self) -> str: ...

    @property
    def distance(self) -> str: ...


def checked_rows(found: Any, count: int, descriptor: Named, where: str, what: str) -> NDArray[Any]:
    """The rows of `count` things (`what`: patches, images) if they are one each and fit the descriptor's distance."""
    try:
        vectors = np.asarray(found)
    except ValueError as error:
        raise DataError(
            f"{where}: descriptor {descriptor.name} gave a {type(found).__name__} that is no array ({error}); "
            f"expected rows of one length, ({count}, dimension)"
        ) from error
    if vectors.dtype.kind not in "fiub":
        raise DataError(
            f"{where}: descriptor {descriptor.name} gave {'nothing' if found is None else vectors.dtype}; expected "
            f"numbers, an array ({count}, dimension)"
        )
    if (descriptor.distance == "hamming") != (vectors.dtype == np.uint8):
        raise DataError(
            f"descriptor {descriptor.name}: gave {vectors.dtype}, is compared by {descriptor.distance}; "
            "binary descriptors are uint8 and hamming, others neither"
        )
    if vectors.ndim != 2 or len(vectors) != count:
        raise DataError(
            f"{where}: descriptor {descriptor.name} gave an array of shape {vectors.shape} for {count} "
            f"{what}; expected ({count}, dimension)"
        )
    return vectors


def broken_rows(vectors: NDArray[Any]) -> NDArray[np.int64]:
    """The rows that hold NaN or infinite values."""
    if vectors.dtype.kind != "f":
        return np.zeros(0, np.int64)
    return np.flatnonzero(~np.isfinite(vectors).all(axis=1))
