"""A picture's thumbnail as its descriptor: colours and gradients. No weights; what a trained network must beat.

Each row depends on its own picture alone, to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE_PX = 16  # of the thumbnail whose gradients count; colours are means of 2 x 2 of its pixels
GREY = np.array([0.299, 0.587, 0.114], np.float32)
FLAT = 1e-3  # length below which a part of the row says nothing, for pixels of 0 to 255


class Thumbnail:
    """8 x 8 colours less their mean, and the gradients of 16 x 16 grey levels; each half of length 1."""

    name = "thumbnail"
    distance = "L2"
    version = 1
    uses_gpu = False

    def shape(self, width: int, height: int) -> tuple[int, int]:
        """All pictures become one shape."""
        return SIDE_PX, SIDE_PX

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture (h, w, 3) as (16, 16, 3): means over boxes."""
        return np.asarray(Image.fromarray(image).resize((SIDE_PX, SIDE_PX), Image.Resampling.BOX))

    def describe(self, batch: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (n, 704) of length 1, or shorter where a picture has no colours or no gradients."""
        pixels = batch.astype(np.float32)
        count = len(pixels)
        colours = pixels.reshape(count, SIDE_PX // 2, 2, SIDE_PX // 2, 2, 3).mean(axis=(2, 4)).reshape(count, -1)
        colours = colours - colours.mean(axis=1, keepdims=True)
        grey = (pixels * GREY).sum(axis=3)
        down = np.diff(grey, axis=1, append=grey[:, -1:, :])
        right = np.diff(grey, axis=2, append=grey[:, :, -1:])
        gradients = np.concatenate([down.reshape(count, -1), right.reshape(count, -1)], axis=1)
        return np.concatenate([_unit(colours), _unit(gradients)], axis=1) * np.float32(np.sqrt(0.5))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return (rows / np.where(lengths > FLAT, lengths, np.inf)).astype(np.float32)
