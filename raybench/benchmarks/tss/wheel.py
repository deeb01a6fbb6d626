"""Flow as colour by the Middlebury wheel (Baker et al., IJCV 2011): hue is direction, saturation is length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.rules_vc import known

Pixels = NDArray[np.uint8]

# From each corner of the wheel to the next: in how many steps, which channel changes, and to what.
ARCS = ((15, "g", 1.0), (6, "r", 0.0), (4, "b", 1.0), (11, "g", 0.0), (13, "r", 1.0), (6, "b", 0.0))
UNKNOWN = (128, 128, 128)
BEYOND = 0.75  # brightness of flow longer than the largest


def colour_wheel() -> NDArray[np.float64]:
    """The 55 colours in order of direction, starting at red, as fractions (55, 3)."""
    colour, rows = {"r": 1.0, "g": 0.0, "b": 0.0}, []
    for steps, channel, end in ARCS:
        for step in range(steps):
            rows.append([*{**colour, channel: abs(1 - end - step / steps)}.values()])
        colour[channel] = end
    return np.array(rows)


def largest_motion(*flows: NDArray[np.float32]) -> float:
    """The length of the longest known vector, at least a thousandth of a pixel."""
    lengths = [float(np.hypot(*flow[known(flow)].T).max(initial=0.0)) for flow in flows]
    return max(*lengths, 1e-3)


def flow_colours(flow: NDArray[np.float32], largest_px: float) -> Pixels:
    """RGB of a flow (height, width, 2): white does not move, full colour is `largest_px`; unknown is grey."""
    there = known(flow)
    u, v = np.where(there, flow[..., 0], 0) / largest_px, np.where(there, flow[..., 1], 0) / largest_px
    length = np.hypot(u, v)[..., np.newaxis]
    wheel = colour_wheel()
    place = (np.arctan2(-v, -u) / np.pi + 1) / 2 * (len(wheel) - 1)
    first = np.floor(place).astype(np.intp)
    part = (place - first)[..., np.newaxis]
    hue = (1 - part) * wheel[first] + part * wheel[(first + 1) % len(wheel)]
    shade = np.where(length <= 1, 1 - length * (1 - hue), hue * BEYOND)
    return np.where(there[..., np.newaxis], np.floor(255 * shade), UNKNOWN).astype(np.uint8)


def wheel_key(side_px: int) -> Pixels:
    """A small disc that shows which colour is which direction."""
    place = (np.arange(side_px) + 0.5) / side_px * 2 - 1
    flow = np.stack(np.meshgrid(place, place), -1).astype(np.float32)
    flow[np.hypot(flow[..., 0], flow[..., 1]) > 1] = 1e10
    disc = flow_colours(flow, 1.0)
    disc[~known(flow)] = 255
    return disc
