"""Descriptors made of the patch's own grey levels, and the resizing that the other descriptors share.

`MeanStd` and `Resize` are the baselines MStd and Resz of Balntas et al., "HPatches", CVPR 2017. Each row
depends on its own patch alone, to the last bit, whatever strip the patch stands in.
"""

from __future__ import annotations

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

RESIZE_SIDE_PX = 6

# The area average of a constant patch is constant up to float32 rounding (about 5e-5 grey levels at 255),
# while one pixel that differs by one grey level in a 65 px patch still gives a deviation of 1e-3.
FLAT_GREY_LEVELS = 1e-4

Pixel = TypeVar("Pixel", np.uint8, np.float32)


def resized_patches(patches: NDArray[Pixel], side_px: int) -> NDArray[Pixel]:
    """Patches (n, side, side) at another side: area average when shrinking, bilinear when enlarging.

    One call per patch: in one call for a whole strip, a patch's weights would be rounded by its position in the strip.
    """
    if patches.shape[1:] == (side_px, side_px):
        return patches
    method = cv2.INTER_AREA if patches.shape[1] > side_px else cv2.INTER_LINEAR
    result = np.empty((len(patches), side_px, side_px), patches.dtype)
    for index, patch in enumerate(patches):
        result[index] = cv2.resize(patch, (side_px, side_px), interpolation=method)
    return result


def standardised(patches: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each patch (n, side, side) minus its mean, over its standard deviation; a flat patch becomes zeros."""
    count, height, width = patches.shape
    values = patches.reshape(count, height * width).astype(np.float64)
    values -= values.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.square(values).mean(axis=1, keepdims=True))  # (n, 1)
    flat = deviation < FLAT_GREY_LEVELS
    values = np.where(flat, 0.0, values / np.where(flat, 1.0, deviation))
    return values.astype(np.float32).reshape(patches.shape)


class MeanStd:
    """Mean and standard deviation of the patch: the least that a descriptor must beat."""

    name = "meanstd"
    distance = "L2"
    version = 1
    uses_gpu = False

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The patches as they are."""
        return patches

    def describe(self, prepared: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (mean, standard deviation), (n, 2), from exact integer sums."""
        count, height, width = prepared.shape
        pixels = height * width
        values = prepared.reshape(count, pixels).astype(np.int64)
        sums = values.sum(axis=1)
        squares = np.square(values).sum(axis=1)
        deviation = np.sqrt(pixels * squares - sums * sums) / pixels
        return np.stack([sums / pixels, deviation], axis=1).astype(np.float32)


class Resize:
    """The patch reduced to 6x6, minus its mean, over its standard deviation."""

    name = "resize"
    distance = "L2"
    version = 1
    uses_gpu = False

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The patches at 6x6, (n, 6, 6), not rounded to grey levels."""
        return resized_patches(patches.astype(np.float32), RESIZE_SIDE_PX)

    def describe(self, prepared: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows (n, 36) of mean 0 and deviation 1, or of zeros where the patch is constant."""
        return standardised(prepared).reshape(len(prepared), RESIZE_SIDE_PX**2)
