"""OpenCV's SIFT and ORB as patch descriptors, and RootSIFT (Arandjelovic and Zisserman, CVPR 2012).

Each patch is one upright keypoint at its centre (`patch_canvas`), with sizes such that the descriptor covers the patch.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.patch_canvas import described_patches
from raybench.descriptors.pixels import resized_patches

SIFT_SIDE_PX = 65
# OpenCV's bins are 3 * size / 2 wide, so this size makes the 4x4 grid cover the patch.
SIFT_SIZE_PX = SIFT_SIDE_PX / 6
# The window reaches 2.5 bins = 41 px from the centre, its gradients 1 more, the blur 6 more: 48 px of 32 + 18.
SIFT_MARGIN_PX = 18

# ORB's tests lie within 13 px of the centre and its blur reaches 3 further: all but 1 px is inside 31 px.
ORB_SIDE_PX = 31
ORB_MARGIN_PX = 8


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
        return described_patches(cv2.SIFT.create(), prepared, SIFT_MARGIN_PX, SIFT_SIZE_PX, rows)


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
        return described_patches(feature, prepared, ORB_MARGIN_PX, float(ORB_SIDE_PX), rows)
