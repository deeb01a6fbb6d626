"""OpenCV's dense flow between two photos, DIS (Kroeger et al., 2016) and Farnebäck (2003), and no flow at all.

Both want two grey images of one size, so the second is brought to the size of the first and what is found is
stretched back to its own pixels.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.formats.flo import FlowField

Image = NDArray[np.uint8]


def grey(image: Image, size: tuple[int, int]) -> Image:
    """The image as grey at (height, width)."""
    made = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    if made.shape == size:
        return made
    smaller = size[0] * size[1] < made.size
    method = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(made, size[::-1], interpolation=method), np.uint8)


def stretched(flow: FlowField, size1: tuple[int, int], size2: tuple[int, int]) -> FlowField:
    """A flow between two images of one size, for images of (height, width) size1 and size2; pixel centres match."""
    height, width = flow.shape[:2]
    if (height, width) != size1:
        flow = np.asarray(cv2.resize(flow, size1[::-1], interpolation=cv2.INTER_LINEAR), np.float32)
    made = np.empty((*size1, 2), np.float32)
    for part, side, old in ((0, 1, width), (1, 0, height)):
        place = np.arange(size1[side]).reshape((1, -1) if side else (-1, 1)) + 0.5
        target = place / size1[side] + flow[:, :, part] / old  # 0..1 in either image
        made[:, :, part] = target * size2[side] - place
    return made


class Zero:
    """Every pixel stays where it is: the figure that a method must beat."""

    name = "zero"
    version = 1
    uses_gpu = False

    def flow(self, image1: Image, image2: Image) -> FlowField:
        """Zeros."""
        return np.zeros((*image1.shape[:2], 2), np.float32)


class Dis:
    """OpenCV's DIS with its medium preset."""

    name = "dis"
    version = 1
    uses_gpu = False

    def flow(self, image1: Image, image2: Image) -> FlowField:
        """Flow of the first image's size."""
        cv2.setNumThreads(1)  # the engine runs one process per core
        size = image1.shape[:2]
        method = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        # None starts from nothing; zeros would be taken for a first guess, and its types do not know that.
        found = method.calc(grey(image1, size), grey(image2, size), None)  # type: ignore[call-overload]
        return stretched(np.asarray(found, np.float32), size, image2.shape[:2])


class Farneback:
    """OpenCV's Farnebäck with a pyramid of five levels and windows of 21 px."""

    name = "farneback"
    version = 1
    uses_gpu = False

    def flow(self, image1: Image, image2: Image) -> FlowField:
        """Flow of the first image's size."""
        cv2.setNumThreads(1)  # the engine runs one process per core
        size = image1.shape[:2]
        start = np.zeros((*size, 2), np.float32)
        found = cv2.calcOpticalFlowFarneback(grey(image1, size), grey(image2, size), start, 0.5, 5, 21, 5, 7, 1.5, 0)
        return stretched(np.asarray(found, np.float32), size, image2.shape[:2])
