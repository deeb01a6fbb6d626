"""Dense SIFT matching: a plain baseline for semantic flow, in the spirit of SIFT flow (Liu, Yuen, Torralba, 2011).

Upright SIFT on a grid over both images, the nearest descriptor within a window, smoothed by how sure each match is;
then again in smaller windows around what the smoothing left. No global optimisation.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.flow_opencv import Image, grey, stretched
from raybench.formats.flo import FlowField

LONG_SIDE_PX = 192  # at which both images are described
STEP_PX = 4
CELL_PX = 6  # a descriptor covers 4 x 4 cells
ORIENTATIONS = 8
CLIP = 0.2
# Window and smoothing (standard deviation) of each pass, in shares of the longer side of the grid.
PASSES = ((0.30, 0.10), (0.10, 0.05), (0.05, 0.03))
FAR_COST = 0.15  # of a match at the edge of the window, beside a cosine distance of at most 1


class DenseSift:
    """Nearest dense SIFT within a window, smoothed, from coarse windows to fine ones."""

    name = "dense-sift"
    version = 1
    uses_gpu = False

    def flow(self, image1: Image, image2: Image) -> FlowField:
        """Flow of the first image's size."""
        cv2.setNumThreads(1)  # the engine runs one process per core
        size = image1.shape[:2]
        scale = min(1.0, LONG_SIDE_PX / max(size))
        small = (max(round(size[0] * scale), 4 * CELL_PX), max(round(size[1] * scale), 4 * CELL_PX))
        rows1, rows2 = sift_grid(grey(image1, small)), sift_grid(grey(image2, small))
        moved = np.zeros((*rows1.shape[:2], 2), np.float32)  # in steps of the grid
        for window, smoothing in PASSES:
            moved = _smoothed(*_matched(rows1, rows2, moved, window), smoothing)
        whole = cv2.resize(moved * np.float32(STEP_PX), small[::-1], interpolation=cv2.INTER_LINEAR)
        return stretched(np.asarray(whole, np.float32), size, image2.shape[:2])


def sift_grid(image: Image) -> NDArray[np.float32]:
    """SIFT rows of norm 1 on a grid, (rows, columns, 128)."""
    plain = cv2.GaussianBlur(image.astype(np.float32), (0, 0), 0.8)
    dx, dy = (cv2.Sobel(plain, cv2.CV_32F, *order, ksize=1) for order in ((1, 0), (0, 1)))
    size, angle = cv2.cartToPolar(dx, dy)
    turn = np.asarray(angle) * (ORIENTATIONS / (2 * np.pi))
    cells = []
    for bin_ in range(ORIENTATIONS):
        apart = np.abs((turn - bin_ + ORIENTATIONS / 2) % ORIENTATIONS - ORIENTATIONS / 2)
        cells.append(cv2.GaussianBlur(np.asarray(size) * np.clip(1 - apart, 0, None), (0, 0), CELL_PX / 2))
    pooled = np.stack(cells, -1)
    offsets = ((np.arange(4) - 1.5) * CELL_PX).astype(np.intp)
    y, x = (np.arange(STEP_PX // 2, side, STEP_PX)[:, np.newaxis] + offsets for side in image.shape)
    y, x = np.clip(y, 0, image.shape[0] - 1), np.clip(x, 0, image.shape[1] - 1)
    rows = pooled[y[:, np.newaxis, :, np.newaxis], x[np.newaxis, :, np.newaxis, :]]
    flat = rows.reshape(len(y), len(x), -1)
    flat = np.minimum(_normalised(flat), CLIP)
    return _normalised(flat)


def _normalised(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + 1e-6), np.float32)


def _matched(
    rows1: NDArray[np.float32], rows2: NDArray[np.float32], around: NDArray[np.float32], window: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """For each point of the first grid the best shift near `around`, and how much better than usual it is."""
    height, width = rows1.shape[:2]
    reach = max(1, round(window * max(height, width)))
    y, x = np.mgrid[:height, :width]
    centre_y, centre_x = (np.rint(around[:, :, part]).astype(np.intp) + place for part, place in ((1, y), (0, x)))
    best = np.full((height, width), np.inf, np.float32)
    total = np.zeros((height, width), np.float32)
    shift = np.zeros((height, width, 2), np.float32)
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            at_y, at_x = np.clip(centre_y + dy, 0, height - 1), np.clip(centre_x + dx, 0, width - 1)
            likeness = np.einsum("ijk,ijk->ij", rows1, rows2[at_y, at_x])
            cost = 1 - likeness + np.float32(FAR_COST * np.hypot(dx, dy) / reach)
            total += cost
            closer = cost < best
            best[closer] = cost[closer]
            shift[closer] = np.stack([at_x - x, at_y - y], -1)[closer]
    usual = total / np.float32((2 * reach + 1) ** 2)
    return shift, np.maximum(usual - best, 0)


def _smoothed(shift: NDArray[np.float32], sureness: NDArray[np.float32], smoothing: float) -> NDArray[np.float32]:
    sigma = smoothing * max(shift.shape[:2])
    weight = (sureness**2 + np.float32(1e-6))[:, :, np.newaxis]
    median = np.stack([cv2.medianBlur(np.ascontiguousarray(shift[:, :, part]), 5) for part in (0, 1)], -1)
    summed = cv2.GaussianBlur(np.concatenate([median * weight, weight], -1), (0, 0), sigma)
    return np.asarray(summed[:, :, :2] / summed[:, :, 2:], np.float32)
