"""Patches as keypoints of one image, for the descriptors of OpenCV, which know no patches.

A batch becomes one tall canvas: each patch stands in a margin of its own replicated border, with one upright keypoint
in it. The margin must be wide enough that neither blur nor descriptor window reaches the next patch, so that a row is
the same bytes in every batch. Which sizes do that is each descriptor's own matter.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.pixels import Pixel

# Larger chunks are slower: the blurred canvases of 64 SIFT patches are given back to the system and faulted in
# again at each call (measured 2,500 patches per second and core with 16, 1,700 with 64).
CHUNK = 16


def described_patches(
    feature: cv2.Feature2D,
    patches: NDArray[np.uint8],
    margin_px: int,
    size_px: float,
    rows: NDArray[Pixel],
    centre_px: float | None = None,
) -> NDArray[Pixel]:
    """One row per patch, written into `rows`; an error if OpenCV drops or reorders keypoints, as it is free to.

    `centre_px` is where a patch's keypoint stands, from its first pixel; without it, in the middle of the pixels.
    """
    cv2.setNumThreads(1)  # the engine runs one process per core
    side_px = patches.shape[1]
    inside_px = (side_px - 1) / 2 if centre_px is None else centre_px
    for start in range(0, len(patches), CHUNK):
        canvas = _canvas(patches[start : start + CHUNK], margin_px)
        keypoints = _keypoints(len(canvas) // canvas.shape[1], canvas.shape[1], margin_px + inside_px, size_px)
        kept, found = feature.compute(canvas, keypoints)
        if [keypoint.class_id for keypoint in kept] != list(range(len(keypoints))):
            raise RuntimeError(
                f"OpenCV {cv2.__version__} {feature.getDefaultName()}: expected the descriptors of {len(keypoints)} "
                f"patches in order, got {len(kept)}, dropped or reordered; try another version of OpenCV"
            )
        rows[start : start + CHUNK] = found
    return rows


def _canvas(patches: NDArray[np.uint8], margin_px: int) -> NDArray[np.uint8]:
    """The patches in their replicated borders, stacked top to bottom."""
    count, side, _ = patches.shape
    outer = side + 2 * margin_px
    padded = np.pad(patches, ((0, 0), (margin_px, margin_px), (margin_px, margin_px)), mode="edge")
    return padded.reshape(count * outer, outer)


def _keypoints(count: int, outer_px: int, centre_px: float, size_px: float) -> list[cv2.KeyPoint]:
    """One upright keypoint per patch; its `class_id` is the patch's index."""
    return [
        cv2.KeyPoint(centre_px, index * outer_px + centre_px, size_px, angle=0.0, class_id=index)
        for index in range(count)
    ]
