"""The rules of the TSS kit's MATLAB tool, where it differs from the C++ one in kind; the functions have the same names.

Resizing is MATLAB's `imresize(…, 'bilinear')`: double, pixel centres, smoothed where it makes smaller. Masks, also the
true ones, are cut at 0.5; the warp is bicubic. Published MATLAB figures differ from the C++ tool's by up to 3e-3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.rules_vc import CONSISTENT_PX, PERCENTS, Mask, PixelFlags, Size, shares_within
from raybench.formats.flo import UNKNOWN_PX, FlowField

Field = NDArray[np.float64]

CHOOSES_SIDE_OF_ESTIMATES = True  # `autoFlip` comes after absent masks are estimated
UNKNOWN_FROM_PX = 1e9


def fitted_flows(flows: tuple[FlowField, FlowField], sizes: tuple[Size, Size]) -> tuple[Field, Field]:
    """Both flows at the sizes of their images; if either has another size, both are resampled."""
    first, second = flows[0].astype(np.float64), flows[1].astype(np.float64)
    old = (first.shape[:2], second.shape[:2])
    if old == sizes:
        return first, second
    return _fitted_flow(first, old[1], *sizes), _fitted_flow(second, old[0], *sizes[::-1])


def _fitted_flow(flow: Field, old_other: Size, new: Size, new_other: Size) -> Field:
    unknown = ~_known(flow)
    values = antialiased(np.where(np.isfinite(flow), flow, UNKNOWN_PX), new)
    for part, side in ((0, 1), (1, 0)):
        grid = np.arange(1, new[side] + 1).reshape((1, -1) if side else (-1, 1))  # MATLAB counts from 1
        start = grid / new[side] * flow.shape[side]
        values[:, :, part] = (values[:, :, part] + start) / old_other[side] * new_other[side] - grid
    if unknown.any():
        values[antialiased(unknown.astype(np.float64), new) != 0] = UNKNOWN_PX
    return values


def fitted_mask(mask: Mask, size: Size) -> Mask:
    """The mask at the truth's size: 255 where grey / 255 is above 0.5, else 0."""
    grey = mask / 255.0
    above = (grey if mask.shape == size else antialiased(grey, size)) > 0.5
    return above.astype(np.uint8) * np.uint8(255)


def consistent_mask(flow: Field, back: Field) -> Mask:
    """A mask, 255 where going along a flow and back ends within 20 px of the start.

    A target outside the image, or with an unknown pixel among the sixteen that its bicubic value rests on, is 0;
    a pixel of weight 0, as there are on a whole row or column, does not count.
    """
    height, width = flow.shape[:2]
    x = flow[:, :, 0] + np.arange(width)
    y = flow[:, :, 1] + np.arange(height)[:, np.newaxis]
    rows, columns = back.shape[:2]
    inside = (x >= 0) & (x <= columns - 1) & (y >= 0) & (y <= rows - 1)
    near = np.zeros((height, width), np.bool_)
    returned, usable = _bicubic(back, x[inside], y[inside])
    missed = np.sqrt(((flow[inside] + returned) ** 2).sum(axis=1))
    near[inside] = usable & (missed < CONSISTENT_PX)
    return near.astype(np.uint8) * np.uint8(255)


def flow_accuracies(flow: Field, truth: FlowField, other: Size) -> NDArray[np.float64]:
    """T1..T50 of a flow into an image of this size, where the first part of the true flow is below 1e9.

    Unknown flow is just far off.
    """
    asked = truth[..., 0] < UNKNOWN_FROM_PX
    difference = flow[asked] - truth[asked].astype(np.float64)
    return shares_within(np.sqrt((difference**2).sum(axis=1)), PERCENTS / 100 * max(other))


def _known(flow: Field) -> PixelFlags:
    return (np.abs(flow[..., 0]) < UNKNOWN_FROM_PX) & (np.abs(flow[..., 1]) < UNKNOWN_FROM_PX)


def antialiased(values: Field, size: Size) -> Field:
    """Values (height, width, …) at another size; the axis that shrinks most goes first, as in MATLAB.

    Tap by tap, from the first to the last, each product and sum rounded by itself: half-covered mask pixels sum to
    about 0.5, where they are cut, and a matrix product rounds them differently on every kind of CPU.
    """
    axes = sorted((0, 1), key=lambda axis: size[axis] / values.shape[axis])
    for axis in axes:
        shape = [1] * values.ndim
        shape[axis] = size[axis]
        parts = (values.take(tap, axis) * share.reshape(shape) for tap, share in _taps(values.shape[axis], size[axis]))
        values = sum(parts, np.zeros(()))
    return values


def _taps(old: int, new: int) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Tap after tap, the old place in each new one and its share: a triangle as wide as the larger of the two pixels.

    >>> [(tap.tolist(), share.tolist()) for tap, share in _taps(2, 4)][1:3]
    [([0, 0, 0, 1], [0.25, 0.75, 0.25, 0.75]), ([0, 1, 1, 1], [0.75, 0.25, 0.75, 0.25])]
    """
    scale = new / old
    reach = max(1.0, 1.0 / scale)
    centre = (np.arange(new) + 0.5) / scale - 0.5
    places = np.floor(centre - reach).astype(np.intp) + np.arange(int(np.ceil(2 * reach)) + 2)[:, np.newaxis]
    share = np.clip(1.0 - np.abs(centre - places) / reach, 0.0, None)
    share /= sum(share)  # from the first tap to the last
    mirrored = places % (2 * old)  # beyond an edge the image is mirrored
    return list(zip(np.minimum(mirrored, 2 * old - 1 - mirrored), share, strict=True))


def _bicubic(values: Field, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Field, PixelFlags]:
    """Values at places inside, (n, channels), by cubic convolution (Keys, a = -1/2), and where all taps are known."""
    framed = _framed(np.where(_known(values)[:, :, np.newaxis], values, np.nan))
    rows, columns = values.shape[:2]
    left = np.minimum(np.floor(x), max(columns - 2, 0)).astype(np.intp)
    top = np.minimum(np.floor(y), max(rows - 2, 0)).astype(np.intp)
    across, down = _keys(x - left), _keys(y - top)
    total = np.zeros((len(x), values.shape[2]))
    for j in range(4):
        for i in range(4):
            weight = (down[j] * across[i])[:, np.newaxis]
            total += np.where(weight == 0, 0.0, framed[top + j, left + i] * weight)
    usable: PixelFlags = np.isfinite(total.sum(axis=1))
    return np.nan_to_num(total), usable


def _framed(values: Field) -> Field:
    """One more pixel on each side, continuing by 3a - 3b + c, so that parabolas stay parabolas."""
    for axis in (0, 1):
        count = values.shape[axis]
        ends = [[min(k, count - 1) for k in range(3)], [max(count - 1 - k, 0) for k in range(3)]]
        before, after = (
            sum(factor * values.take([k], axis) for factor, k in zip((3, -3, 1), end, strict=True)) for end in ends
        )
        values = np.concatenate([before, values, after], axis)
    return values


def _keys(t: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Weights of the four neighbours at a fraction t behind the second."""
    return (
        ((2 - t) * t - 1) * t / 2,
        ((3 * t - 5) * t * t + 2) / 2,
        ((4 - 3 * t) * t + 1) * t / 2,
        (t - 1) * t * t / 2,
    )
