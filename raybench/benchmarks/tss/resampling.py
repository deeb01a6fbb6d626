"""Bilinear resampling exactly as the TSS tool's OpenCV does it: float32, 8-bit fixed point, and remap in 1/32 px.

Written out in numpy, every product and sum rounded by itself, so that no build of OpenCV (fused multiply-add, another
remap) can move a figure. Sizes are (height, width).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

REMAP_STEPS = 32  # OpenCV 4 interpolates at 1/32 px
FAR_PX = np.float32(1e6)  # beyond every image, and still a whole number when counted in steps


def column_taps(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """For each new column the two old ones and the weight of the second; pixel centres, edges repeated.

    >>> [taps.tolist() for taps in column_taps(2, 4)]
    [[0, 0, 0, 1], [1, 1, 1, 1], [0.0, 0.25, 0.75, 0.0]]
    """
    first, weight = _places(old, new)
    outside = (first < 0) | (first >= old - 1)
    left = np.clip(first, 0, old - 1)
    return left, np.minimum(left + 1, old - 1), np.where(outside, np.float32(0), weight)


def row_taps(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """The same for rows; at an edge OpenCV mixes a row with itself, which may differ in the last bit.

    >>> [taps.tolist() for taps in row_taps(2, 4)]
    [[0, 0, 0, 1], [0, 1, 1, 1], [0.75, 0.25, 0.75, 0.25]]
    """
    first, weight = _places(old, new)
    return np.clip(first, 0, old - 1), np.clip(first + 1, 0, old - 1), weight


def resized(values: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Values (height, width, …) at another size, without smoothing."""
    if values.shape[:2] == (2 * size[0], 2 * size[1]):  # OpenCV takes another path here, which rounds otherwise
        total = values[::2, ::2] + values[::2, 1::2]
        total += values[1::2, ::2]
        total += values[1::2, 1::2]
        return total * np.float32(0.25)
    top, bottom, down = row_taps(values.shape[0], size[0])
    left, right, across = column_taps(values.shape[1], size[1])
    tail = (1,) * (values.ndim - 2)
    rows = _mixed(values.take(left, 1), values.take(right, 1), across.reshape(1, -1, *tail))
    return _mixed(rows.take(top, 0), rows.take(bottom, 0), down.reshape(-1, 1, *tail))


def resized_bytes(values: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Bytes (height, width) at another size, by OpenCV's fixed point of 11 bits."""
    top, bottom, down = row_taps(values.shape[0], size[0])
    left, right, across = column_taps(values.shape[1], size[1])
    first, second = _fixed(across)
    wide = values.astype(np.int32)
    rows = (wide[:, left] * first + wide[:, right] * second) >> 4
    first, second = (weights[:, np.newaxis] for weights in _fixed(down))
    mixed = ((first * rows[top]) >> 16) + ((second * rows[bottom]) >> 16) + 2 >> 2
    narrow: NDArray[np.uint8] = np.clip(mixed, 0, 255).astype(np.uint8)
    return narrow


def warped(values: NDArray[np.float32], flow: NDArray[np.float32], outside: float) -> NDArray[np.float32]:
    """Values (height, width, channels) where the flow's pixels point; `outside` stands all around."""
    height, width = flow.shape[:2]
    x: NDArray[np.float32] = flow[:, :, 0] + np.arange(width, dtype=np.float32).reshape(1, -1)
    y: NDArray[np.float32] = flow[:, :, 1] + np.arange(height, dtype=np.float32).reshape(-1, 1)
    left, across, beside = _steps(x, values.shape[1])
    top, down, above = _steps(y, values.shape[0])
    framed = np.pad(values, ((1, 1), (1, 1), (0, 0)), constant_values=np.float32(outside))
    flat, line = framed.reshape(-1, values.shape[2]), framed.shape[1]
    corner = top * line + left
    total = np.zeros((height, width, values.shape[2]), np.float32)
    for dy, from_top in ((0, 1 - down), (1, down)):
        for dx, from_left in ((0, 1 - across), (1, across)):
            weight = (from_top * from_left)[:, :, np.newaxis]  # multiples of 1/1024: exact
            part = flat.take(corner + (dy * line + dx), 0)
            part *= weight
            total += part
    total[beside | above] = np.float32(outside)
    return total


def _places(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    place = ((np.arange(new) + 0.5) * (old / new) - 0.5).astype(np.float32)
    first = np.floor(place)
    return first.astype(np.intp), place - first


def _mixed(first: NDArray[np.float32], second: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """first * (1 - weight) + second * weight; the arguments are fresh and may be used up."""
    first *= np.float32(1) - weight
    second *= weight
    first += second
    return first


def _fixed(weight: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    scale = np.float32(2048)
    return np.rint((np.float32(1) - weight) * scale).astype(np.int32), np.rint(weight * scale).astype(np.int32)


def _steps(place: NDArray[np.float32], side: int) -> tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.bool_]]:
    """The first of two neighbours, counted in a frame of one pixel, the weight of the second, and who is outside."""
    steps = np.rint(np.clip(place, -FAR_PX, FAR_PX) * np.float32(REMAP_STEPS)).astype(np.int32)
    whole = steps >> 5
    weight = (steps & (REMAP_STEPS - 1)) * np.float32(1 / REMAP_STEPS)
    return np.clip(whole, -1, side - 1).astype(np.intp) + 1, weight.astype(np.float32), (whole < -1) | (whole >= side)
