"""The panels of one direction of a pair: flow as colour, the warped image, the foreground, and where the flow is wrong.

Flow is coloured by the Middlebury wheel (Baker et al., IJCV 2011): hue is direction, saturation is length. Errors are
shown as multiples of the T5 threshold: blue is within it, red is not, and a black line runs between them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.rules_vc import PixelFlags, known, warped
from raybench.formats.flo import UNKNOWN_PX, FlowField

Pixels = NDArray[np.uint8]

# From each corner of the wheel to the next: in how many steps, which channel changes, and to what.
ARCS = ((15, "g", 1.0), (6, "r", 0.0), (4, "b", 1.0), (11, "g", 0.0), (13, "r", 1.0), (6, "b", 0.0))
UNKNOWN_COLOUR = (128, 128, 128)
BEYOND = 0.75  # brightness of flow longer than the largest
GROUND = (0, 255, 255)  # the kit's, behind foreground and beside a warped image
OUTLINE = (255, 0, 255)  # of the true mask
LOST = (40, 0, 40)  # true flow is known, found flow is not
# Error over threshold, and its colour; between them straight lines. The jump at 1 is the border of right and wrong.
ERROR_SCALE = (
    (0.0, (5, 48, 97)),
    (0.5, (67, 147, 195)),
    (1.0, (209, 229, 240)),
    (1.0, (253, 219, 199)),
    (2.0, (214, 96, 77)),
    (4.0, (103, 0, 31)),
)
MOST_RATIO = ERROR_SCALE[-1][0]


def colour_wheel() -> NDArray[np.float64]:
    """The 55 colours in order of direction, starting at red, as fractions (55, 3)."""
    colour, rows = {"r": 1.0, "g": 0.0, "b": 0.0}, []
    for steps, channel, end in ARCS:
        for step in range(steps):
            rows.append([*{**colour, channel: abs(1 - end - step / steps)}.values()])
        colour[channel] = end
    return np.array(rows)


def largest_motion(*flows: FlowField) -> float:
    """The length of the longest known vector, at least a thousandth of a pixel."""
    lengths = [float(np.hypot(*flow[known(flow)].T).max(initial=0.0)) for flow in flows]
    return max(*lengths, 1e-3)


def flow_colours(flow: FlowField, largest_px: float) -> Pixels:
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
    return np.where(there[..., np.newaxis], np.floor(255 * shade), UNKNOWN_COLOUR).astype(np.uint8)


def wheel_key(side_px: int) -> Pixels:
    """A small disc that shows which colour is which direction."""
    place = (np.arange(side_px) + 0.5) / side_px * 2 - 1
    flow = np.stack(np.meshgrid(place, place), -1).astype(np.float32)
    flow[np.hypot(flow[..., 0], flow[..., 1]) > 1] = UNKNOWN_PX
    disc = flow_colours(flow, 1.0)
    disc[~known(flow)] = 255
    return disc


def error_colours(ratio: NDArray[np.float64]) -> Pixels:
    """RGB of errors over the threshold."""
    colours = np.array([colour for _, colour in ERROR_SCALE], np.float64)
    at = np.array([value for value, _ in ERROR_SCALE])
    at[3] = np.nextafter(1.0, 2.0)
    mixed = [np.interp(ratio, at, colours[:, channel]) for channel in range(3)]
    return np.stack(mixed, -1).astype(np.uint8)


def error_map(
    image: Pixels, errors: NDArray[np.float32], asked: PixelFlags, found: PixelFlags, limit_px: float
) -> Pixels:
    """The error of each pixel with true flow, with the T5 contour; elsewhere the image, pale and grey."""
    grey = image.mean(axis=2, keepdims=True)
    pale = np.broadcast_to(175 + grey * 0.3, image.shape)
    colours = error_colours(errors.astype(np.float64) / limit_px)
    made = np.where(asked[..., np.newaxis], np.where(found[..., np.newaxis], colours, LOST), pale).astype(np.uint8)
    wrong = asked & ~(found & (errors <= limit_px))
    made[asked & ~wrong & grown(wrong, _thickness(image))] = 0
    return made


def foreground(image: Pixels, mask: Pixels, truth: Pixels) -> Pixels:
    """The masked part of an image on a plain ground, and the outline of the true mask."""
    made = np.where((mask > 0)[..., np.newaxis], image, np.array(GROUND, np.uint8))
    return outlined(made, truth)


def warped_image(image: Pixels, flow: FlowField) -> Pixels:
    """The other image as the flow brings it here, on a plain ground where it points outside or nowhere."""
    marked = np.concatenate([image, np.full((*image.shape[:2], 1), 255, np.uint8)], -1).astype(np.float32)
    made = warped(marked, np.where(np.isfinite(flow), flow, UNKNOWN_PX), 0.0)
    seen = made[..., 3:] / 255
    brought: Pixels = np.clip(made[..., :3] + (1 - seen) * np.array(GROUND), 0, 255).astype(np.uint8)
    return brought


def outlined(image: Pixels, truth: Pixels) -> Pixels:
    """The image with the outline of the true mask."""
    made = image.copy()
    made[(truth > 0) & grown(truth == 0, _thickness(image))] = OUTLINE
    return made


def faded(image: Pixels, asked: PixelFlags) -> Pixels:
    """The image, paler where no true flow is asked for."""
    return np.where(asked[..., np.newaxis], image, 190 + image // 4).astype(np.uint8)


def grown(inside: PixelFlags, width: int) -> PixelFlags:
    """Pixels inside, and those within `width` steps of them."""
    made = inside.copy()
    for _ in range(width):
        made[1:] |= inside[:-1]
        made[:-1] |= inside[1:]
        made[:, 1:] |= inside[:, :-1]
        made[:, :-1] |= inside[:, 1:]
        inside = made.copy()
    return made


def _thickness(image: Pixels) -> int:
    """Of a line that is still seen when the panel is shown small."""
    return max(1, round(float(max(image.shape[:2])) / 150))
