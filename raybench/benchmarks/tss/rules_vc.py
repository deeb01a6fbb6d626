"""The rules of the TSS kit's C++ tool ("VC"; Taniai, Sinha, Sato, CVPR 2016), from which its published scores come.

A flow is float32 (height, width, 2) in pixels; a pixel with a part beyond 1e9 is unknown. The kit's text has the
inequality of its thresholds turned round; its code, and this, count errors up to and including the threshold as right.
Resampling is that of the tool's OpenCV 4, written out in numpy, every product and sum rounded by itself, so that no
build of OpenCV (fused multiply-add, another remap) can move a figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.formats.flo import UNKNOWN_PX, FlowField

PixelFlags = NDArray[np.bool_]
Mask = NDArray[np.uint8]
Size = tuple[int, int]  # height, width

CHOOSES_SIDE_OF_ESTIMATES = False  # `autoFlip` is for masks that were given
PERCENTS = np.arange(1, 51)
UNKNOWN_BEYOND_PX = np.float32(1e9)
BOTH_KNOWN = 0x0101  # two true flags side by side
UNKNOWN_ERROR_PX = np.float32(1000.0)  # of a pixel known in one flow only
CONSISTENT_PX = 20.0
FOREGROUND_ABOVE = 128  # after a resize; masks of the right size are used as they are
REMAP_STEPS = 32  # OpenCV 4 interpolates at 1/32 px
FAR_PX = np.float32(1e6)  # beyond every image, and still a whole number when counted in steps


def fitted_flows(flows: tuple[FlowField, FlowField], sizes: tuple[Size, Size]) -> tuple[FlowField, FlowField]:
    """Both flows at the sizes of their images; if either has another size, both are resampled, as the tool does."""
    old = (flows[0].shape[:2], flows[1].shape[:2])
    if old == sizes:
        return flows
    return _fitted_flow(flows[0], old[1], *sizes), _fitted_flow(flows[1], old[0], *sizes[::-1])


def _fitted_flow(flow: FlowField, old_other: Size, new: Size, new_other: Size) -> FlowField:
    """The flow at a new size of its own image and of the one it points into; mixtures with unknown are unknown."""
    old = flow.shape[:2]
    there = known(flow)
    flow = np.where(np.isfinite(flow), flow, UNKNOWN_PX)  # infinity times a weight of 0 would be NaN
    values = resized_floats(flow, new)
    for part, side in ((0, 1), (1, 0)):  # x goes with width, which is the second of a size
        shape = (1, -1) if side else (-1, 1)
        grid = np.arange(new[side], dtype=np.float32).reshape(shape)
        into = values[:, :, part]
        into += grid * np.float32(old[side] / new[side])
        into *= np.float32(new_other[side] / old_other[side])
        into -= grid
    if not there.all():
        values[resized_floats(there.astype(np.float32), new) != 1] = UNKNOWN_PX
    return values


def fitted_mask(mask: Mask, size: Size) -> Mask:
    """The mask at the truth's size; resampled ones become 0 or 255."""
    if mask.shape == size:
        return mask
    return (resized_bytes(mask, size) > FOREGROUND_ABOVE).astype(np.uint8) * np.uint8(255)


def consistent_mask(flow: FlowField, back: FlowField) -> Mask:
    """A mask, 255 where going along a flow and back along the other ends within 20 px of the start, else 0."""
    back = np.where(np.isfinite(back), back, UNKNOWN_PX)
    returned = warped(back, flow, float(UNKNOWN_PX))
    near = endpoint_errors(flow, -returned) < np.float32(CONSISTENT_PX)
    return near.astype(np.uint8) * np.uint8(255)


def flow_accuracies(flow: FlowField, truth: FlowField, other: Size) -> NDArray[np.float64]:
    """T1..T50 of a flow into an image of this size; NaN where no true flow is known."""
    return shares_within(true_pixel_errors(flow, truth), thresholds_px(other))


def true_pixel_errors(flow: FlowField, truth: FlowField) -> NDArray[np.float32]:
    """Errors of the pixels whose true flow is known, as a list."""
    asked = known(truth).reshape(-1)
    if asked.all():
        return endpoint_errors(flow, truth).reshape(-1)
    return endpoint_errors(_chosen(flow, asked), _chosen(truth, asked))


def _chosen(flow: FlowField, asked: PixelFlags) -> FlowField:
    """The asked pixels, (n, 2); both parts are moved as one number, which is twice as fast."""
    return np.ascontiguousarray(flow).view(np.uint64).reshape(-1)[asked].view(np.float32).reshape(-1, 2)


def endpoint_errors(flow: FlowField, truth: FlowField) -> NDArray[np.float32]:
    """Endpoint errors in pixels, of any shape (…, 2); 1000 where just one of the two is known."""
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite and unknown values, which are overwritten
        squares = flow - truth
        squares *= squares
        errors: NDArray[np.float32] = squares[..., 0] + squares[..., 1]
        np.sqrt(errors, out=errors)
    one_sided = known(flow) != known(truth)
    if one_sided.any():
        errors[one_sided] = UNKNOWN_ERROR_PX
    return errors


def known(flow: FlowField) -> PixelFlags:
    """Where a flow (…, 2) is known."""
    within = np.ascontiguousarray(np.abs(flow) <= UNKNOWN_BEYOND_PX)
    both: PixelFlags = within.view(np.uint16)[..., 0] == BOTH_KNOWN
    return both


def thresholds_px(other: Size) -> NDArray[np.float32]:
    """T1 to T50 in pixels, for flow into an image of this size."""
    return (PERCENTS * (0.01 * max(other))).astype(np.float32)


def shares_within(errors: NDArray[Any], thresholds: NDArray[Any]) -> NDArray[np.float64]:
    """The share of errors within each threshold, compared in their own precision; NaN without errors.

    >>> shares_within(np.array([1, 2, 3, 1000], np.float32), np.array([2, 2.5, 3], np.float32)).tolist()
    [0.5, 0.5, 0.75]
    """
    if not len(errors):
        return np.full(len(thresholds), np.nan)
    within = np.searchsorted(np.sort(errors), thresholds, side="right")
    return 1.0 - (len(errors) - within) / len(errors)


def resized_floats(values: NDArray[np.float32], size: Size) -> NDArray[np.float32]:
    """Values (height, width, …) at another size, without smoothing."""
    if values.shape[:2] == (2 * size[0], 2 * size[1]):  # OpenCV takes another path here, which rounds otherwise
        total = values[::2, ::2] + values[::2, 1::2]
        total += values[1::2, ::2]
        total += values[1::2, 1::2]
        return total * np.float32(0.25)
    tail = (1,) * (values.ndim - 2)
    left, right, across = column_taps(values.shape[1], size[1])
    rows = _mixed(values.take(left, 1), values.take(right, 1), across.reshape(1, -1, *tail))
    top, bottom, down = row_taps(values.shape[0], size[0])
    return _mixed(rows.take(top, 0), rows.take(bottom, 0), down.reshape(-1, 1, *tail))


def _mixed(first: NDArray[np.float32], second: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """first * (1 - weight) + second * weight; the arguments are fresh and may be used up."""
    first *= np.float32(1) - weight
    second *= weight
    first += second
    return first


def resized_bytes(values: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """Bytes (height, width) at another size, by OpenCV's fixed point of 11 bits."""
    left, right, across = column_taps(values.shape[1], size[1])
    first, second = _fixed(across)
    wide = values.astype(np.int32)
    rows = (wide[:, left] * first + wide[:, right] * second) >> 4
    top, bottom, down = row_taps(values.shape[0], size[0])
    first, second = _fixed(down[:, np.newaxis])
    mixed = ((first * rows[top]) >> 16) + ((second * rows[bottom]) >> 16) + 2 >> 2
    narrow: NDArray[np.uint8] = np.clip(mixed, 0, 255).astype(np.uint8)
    return narrow


def _fixed(weight: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    scale = np.float32(2048)
    return np.rint((np.float32(1) - weight) * scale).astype(np.int32), np.rint(weight * scale).astype(np.int32)


def row_taps(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """For each new row the two old ones and the weight of the second; pixel centres, edges repeated.

    >>> [taps.tolist() for taps in row_taps(2, 4)]
    [[0, 0, 0, 1], [0, 1, 1, 1], [0.75, 0.25, 0.75, 0.25]]
    """
    place = ((np.arange(new) + 0.5) * (old / new) - 0.5).astype(np.float32)
    first = np.floor(place)
    whole = first.astype(np.intp)
    return np.clip(whole, 0, old - 1), np.clip(whole + 1, 0, old - 1), place - first


def column_taps(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """The same for columns, but an edge counts whole: OpenCV mixes it with itself, which rounds, only in rows.

    >>> [taps.tolist() for taps in column_taps(2, 4)]
    [[0, 0, 0, 1], [0, 1, 1, 1], [0.0, 0.25, 0.75, 0.0]]
    """
    left, right, weight = row_taps(old, new)
    return left, right, np.where(left == right, np.float32(0), weight)


def warped(values: NDArray[np.float32], flow: FlowField, outside: float) -> NDArray[np.float32]:
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


def _steps(place: NDArray[np.float32], side: int) -> tuple[NDArray[np.intp], NDArray[np.float32], PixelFlags]:
    """The first of two neighbours, counted in a frame of one pixel, the weight of the second, and what is outside."""
    steps = np.rint(np.clip(place, -FAR_PX, FAR_PX) * np.float32(REMAP_STEPS)).astype(np.int32)
    whole = steps >> 5
    weight = (steps & (REMAP_STEPS - 1)) * np.float32(1 / REMAP_STEPS)
    return np.clip(whole, -1, side - 1).astype(np.intp) + 1, weight.astype(np.float32), (whole < -1) | (whole >= side)
