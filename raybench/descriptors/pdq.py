"""PDQ, the perceptual hash of Meta's ThreatExchange, as an image descriptor: 256 bits, by the package pdqhash.

It needs no weights. All is done in `prepare`, on CPUs, picture by picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 256


class Pdq:
    """The hash as packed bits, compared by Hamming distance."""

    name = "pdq"
    distance = "hamming"
    version = 1
    uses_gpu = False

    def shape(self, width: int, height: int) -> tuple[int, int]:
        """All pictures become one shape."""
        return 1, BITS // 8

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The hash of a picture (h, w, 3), (32,)."""
        import pdqhash

        bits, _ = pdqhash.compute(np.ascontiguousarray(image))
        return np.packbits(bits)

    def describe(self, batch: NDArray[np.uint8]) -> NDArray[Any]:
        """The hashes, (n, 32)."""
        return batch


class PdqFloat(Pdq):
    """The same bits as -1 and 1, for searches and codecs over floats."""

    name = "pdq-float"
    distance = "L2"

    def describe(self, batch: NDArray[np.uint8]) -> NDArray[Any]:
        """Rows (n, 256)."""
        return np.unpackbits(batch, axis=1).astype(np.float32) * 2 - 1
