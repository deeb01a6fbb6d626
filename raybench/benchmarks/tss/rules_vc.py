"""Flow accuracy of the TSS evaluation kit (Taniai, Sinha, Sato, CVPR 2016), by the rules of its C++ tool.

A flow is float32 (height, width, 2) in pixels; a pixel with a part beyond 1e9 is unknown. T is a percentage of the
longer side of the image that the flow points into; T5 is the same figure as PCK with alpha 0.05. The kit's text has the
inequality turned round; its code, and this, count errors up to and including the threshold as right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.resampling import resized, warped

Flow = NDArray[np.float32]
Size = tuple[int, int]  # height, width

PERCENTS = np.arange(1, 51)
UNKNOWN_BEYOND_PX = np.float32(1e9)
UNKNOWN_PX = np.float32(1e10)
BOTH = 0x0101  # two true flags side by side
UNKNOWN_ERROR_PX = np.float32(1000.0)  # of a pixel known in one flow only
CONSISTENT_PX = np.float32(20.0)


def known(flow: Flow) -> NDArray[np.bool_]:
    """Where a flow (…, 2) is known."""
    within = np.ascontiguousarray(np.abs(flow) <= UNKNOWN_BEYOND_PX)
    both: NDArray[np.bool_] = within.view(np.uint16)[..., 0] == BOTH
    return both


def endpoint_errors(flow: Flow, truth: Flow) -> NDArray[np.float32]:
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


def true_pixel_errors(flow: Flow, truth: Flow) -> NDArray[np.float32]:
    """Errors of the pixels whose true flow is known, as a list."""
    asked = known(truth).reshape(-1)
    if asked.all():
        return endpoint_errors(flow, truth).reshape(-1)
    return endpoint_errors(_chosen(flow, asked), _chosen(truth, asked))


def _chosen(flow: Flow, asked: NDArray[np.bool_]) -> Flow:
    """The asked pixels, (n, 2); both parts are moved as one number, which is twice as fast."""
    return np.ascontiguousarray(flow).view(np.uint64).reshape(-1)[asked].view(np.float32).reshape(-1, 2)


def thresholds_px(other: Size) -> NDArray[np.float32]:
    """T1 to T50 in pixels, for flow into an image of this size."""
    return (PERCENTS * (0.01 * max(other))).astype(np.float32)


def accuracies(errors: NDArray[Any], thresholds: NDArray[Any]) -> NDArray[np.float64]:
    """The share of errors within each threshold, compared in their own precision; NaN without errors.

    >>> accuracies(np.array([1, 2, 3, 1000], np.float32), np.array([2, 2.5, 3], np.float32)).tolist()
    [0.5, 0.5, 0.75]
    """
    if not len(errors):
        return np.full(len(thresholds), np.nan)
    within = np.searchsorted(np.sort(errors), thresholds, side="right")
    return 1.0 - (len(errors) - within) / len(errors)


def resized_pair(flow1: Flow, flow2: Flow, size1: Size, size2: Size) -> tuple[Flow, Flow]:
    """Both flows at the sizes of their images; if either has another size, both are resampled, as the tool does."""
    old1, old2 = flow1.shape[:2], flow2.shape[:2]
    if (old1, old2) == (size1, size2):
        return flow1, flow2
    return _resized(flow1, old2, size1, size2), _resized(flow2, old1, size2, size1)


def _resized(flow: Flow, old_other: Size, new: Size, new_other: Size) -> Flow:
    """The flow at a new size of its own image and of the one it points into; mixtures with unknown are unknown."""
    old = flow.shape[:2]
    there = known(flow)
    flow = np.where(np.isfinite(flow), flow, UNKNOWN_PX)  # infinity times a weight of 0 would be NaN
    values = resized(flow, new)
    for part, side in ((0, 1), (1, 0)):  # x goes with width, which is the second of a size
        shape = (1, -1) if side else (-1, 1)
        grid = np.arange(new[side], dtype=np.float32).reshape(shape)
        into = values[:, :, part]
        into += grid * np.float32(old[side] / new[side])
        into *= np.float32(new_other[side] / old_other[side])
        into -= grid
    if not there.all():
        values[resized(there.astype(np.float32), new) != 1] = UNKNOWN_PX
    return values


def consistent(flow: Flow, back: Flow) -> NDArray[np.uint8]:
    """A mask, 255 where going along a flow and back along the other ends within 20 px of the start, else 0."""
    back = np.where(np.isfinite(back), back, UNKNOWN_PX)
    returned = warped(back, flow, float(UNKNOWN_PX))
    near = endpoint_errors(flow, -returned) < CONSISTENT_PX
    return near.astype(np.uint8) * np.uint8(255)
