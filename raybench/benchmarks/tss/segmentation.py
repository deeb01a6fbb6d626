"""Overlap of foreground masks by the rules of the TSS kit's C++ tool: bitwise on bytes, whatever their grey values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.resampling import resized_bytes

Mask = NDArray[np.uint8]
Measure = Callable[[Mask, Mask], float]

FOREGROUND_ABOVE = 128  # after a resize; masks of the right size are used as they are


def intersection_over_union(truth: Mask, mask: Mask) -> float:
    """SegIUR: pixels with a common bit over pixels with any bit; NaN where neither mask has one.

    >>> intersection_over_union(np.array([[255, 255, 0, 1]], np.uint8), np.array([[255, 0, 0, 2]], np.uint8))
    0.3333333333333333
    """
    union = np.count_nonzero(truth | mask)
    return int(np.count_nonzero(truth & mask)) / int(union) if union else float("nan")


def precision(truth: Mask, mask: Mask) -> float:
    """The share of pixels whose bytes are equal (`usePrec`)."""
    return 1.0 - int(np.count_nonzero(truth != mask)) / truth.size


def fitted(mask: Mask, size: tuple[int, int]) -> Mask:
    """The mask at the truth's (height, width); resampled ones become 0 or 255."""
    if mask.shape == size:
        return mask
    return (resized_bytes(mask, size) > FOREGROUND_ABOVE).astype(np.uint8) * np.uint8(255)


def better_side(truths: tuple[Mask, Mask], masks: tuple[Mask, Mask], measure: Measure) -> tuple[Mask, Mask]:
    """Both masks or both complements, whichever have the higher sum (`autoFlip`); as they are if equal."""
    flipped = (~masks[0], ~masks[1])
    as_given, complement = (sum(map(measure, truths, pair)) for pair in (masks, flipped))
    return flipped if as_given < complement else masks
