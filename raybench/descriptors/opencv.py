"""OpenCV's SIFT and ORB as patch descriptors, and RootSIFT (Arandjelovic and Zisserman, CVPR 2012).

OpenCV describes keypoints of one image, so a batch of patches becomes one tall canvas: each patch stands in
a margin of its own replicated border, with one upright keypoint at its centre. The margin is wide enough that
neither blur nor descriptor window reaches the next patch, so a row is the same bytes in every batch.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.pixels import Pixel, resized_patches

# Larger chunks are slower: the blurred canvases of 64 SIFT patches are given back to the system and faulted in
# again at each call (measured 2,500 patches per second and core with 16, 1,700 with 64).
CHUNK = 16

SIFT_SIDE_PX = 65
# OpenCV's bins are 3 * size / 2 wide, so this size makes the 4x4 grid cover the patch.
SIFT_SIZE_PX = SIFT_SIDE_PX / 6
# The window reaches 2.5 bins = 41 px from the centre, its gradients 1 more, the blur 6 more: 48 px of 32 + 18.
SIFT_MARGIN_PX = 18

# ORB's tests lie within 13 px of the centre and its blur reaches 3 further: all but 1 px is inside 31 px.
ORB_SIDE_PX = 31
ORB_MARGIN_PX = 8


def _canvas(patches: NDArray[np.uint8], margin_px: int) -> NDArray[np.uint8]:
    """The patches in their replicated borders, stacked top to bottom."""
    count, side, _ = patches.shape
    outer = side + 2 * margin_px
    padded = np.pad(patches, ((0, 0), (margin_px, margin_px), (margin_px, margin_px)), mode="edge")
    return padded.reshape(count * outer, outer)


def _centres(count: int, outer_px: int, size_px: float) -> list[cv2.KeyPoint]:
    """One upright keypoint per patch; its `class_id` is the patch's index."""
    half = (outer_px - 1) / 2
    return [cv2.KeyPoint(half, index * outer_px + half, size_px, angle=0.0, class_id=index) for index in range(count)]


def _described(
    feature: cv2.Feature2D, patches: NDArray[np.uint8], margin_px: int, size_px: float, rows: NDArray[Pixel]
) -> NDArray[Pixel]:
    """One row per patch, written into `rows`; an error if OpenCV drops or reorders keypoints, as it is free to."""
    cv2.setNumThreads(1)  # the engine runs one process per core
    for start in range(0, len(patches), CHUNK):
        canvas = _canvas(patches[start : start + CHUNK], margin_px)
        keypoints = _centres(len(canvas) // canvas.shape[1], canvas.shape[1], size_px)
        kept, found = feature.compute(canvas, keypoints)
        if [keypoint.class_id for keypoint in kept] != list(range(len(keypoints))):
            raise RuntimeError(
                f"OpenCV {cv2.__version__} {feature.getDefaultName()}: expected the descriptors of {len(keypoints)} "
                f"patches in order, got {len(kept)}, dropped or reordered; try another version of OpenCV"
            )
        rows[start : start + CHUNK] = found
    return rows


class Sift:
    """SIFT whose 4x4 grid covers the patch: 128 values of 0 to 255."""

    name = "sift"
    distance = "L2"
    version = 1
    uses_gpu = False

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The patches at 65 px."""
        return resized_patches(patches, SIFT_SIDE_PX)

    def describe(self, prepared: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (n, 128)."""
        rows = np.empty((len(prepared), 128), np.float32)
        return _described(cv2.SIFT.create(), prepared, SIFT_MARGIN_PX, SIFT_SIZE_PX, rows)


class RootSift(Sift):
    """The square root of each SIFT value's share of the row's sum, so that L2 compares as Hellinger does."""

    name = "rootsift"

    def describe(self, prepared: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (n, 128) of L2 norm 1, or of zeros where the patch has no gradient."""
        rows = super().describe(prepared).astype(np.float64)
        sums = rows.sum(axis=1, keepdims=True)
        return np.sqrt(rows / np.where(sums > 0, sums, 1.0)).astype(np.float32)


class Orb:
    """ORB's 256 brightness tests over the whole patch, upright."""

    name = "orb"
    distance = "hamming"
    version = 1
    uses_gpu = False

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The patches at 31 px, the width of ORB's pattern."""
        return resized_patches(patches, ORB_SIDE_PX)

    def describe(self, prepared: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Rows (n, 32) of packed bits."""
        # One level, so that no keypoint is sorted by level; no edge, so that none is dropped at a border.
        feature = cv2.ORB.create(nlevels=1, edgeThreshold=0, patchSize=ORB_SIDE_PX)
        rows = np.empty((len(prepared), 32), np.uint8)
        return _described(feature, prepared, ORB_MARGIN_PX, float(ORB_SIDE_PX), rows)
