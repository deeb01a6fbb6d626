"""The panels of one direction of a pair: warped image, foreground, and where the flow is wrong and by how much.

Errors are shown as multiples of the T5 threshold: blue is within it, red is not, and a black line runs between them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.resampling import warped

Pixels = NDArray[np.uint8]
Flag = NDArray[np.bool_]

GROUND = (0, 255, 255)  # the kit's, behind foreground and beside a warped image
OUTLINE = (255, 0, 255)  # of the true mask
LOST = (40, 0, 40)  # true flow is known, found flow is not
# Error over threshold, and its colour; between them straight lines. The jump at 1 is the border of right and wrong.
SCALE = (
    (0.0, (5, 48, 97)),
    (0.5, (67, 147, 195)),
    (1.0, (209, 229, 240)),
    (1.0, (253, 219, 199)),
    (2.0, (214, 96, 77)),
    (4.0, (103, 0, 31)),
)
MOST = SCALE[-1][0]


def error_colours(ratio: NDArray[np.float64]) -> Pixels:
    """RGB of errors over the threshold."""
    colours = np.array([colour for _, colour in SCALE], np.float64)
    at = np.array([value for value, _ in SCALE])
    at[3] = np.nextafter(1.0, 2.0)
    mixed = [np.interp(ratio, at, colours[:, channel]) for channel in range(3)]
    return np.stack(mixed, -1).astype(np.uint8)


def error_map(image: Pixels, errors: NDArray[np.float32], asked: Flag, found: Flag, limit_px: float) -> Pixels:
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


def warped_image(image: Pixels, flow: NDArray[np.float32], size: tuple[int, int]) -> Pixels:
    """The other image as the flow brings it here, on a plain ground where it points outside or nowhere."""
    assert flow.shape[:2] == size
    marked = np.concatenate([image, np.full((*image.shape[:2], 1), 255, np.uint8)], -1).astype(np.float32)
    made = warped(marked, np.where(np.isfinite(flow), flow, np.float32(1e10)), 0.0)
    seen = made[..., 3:] / 255
    brought: Pixels = np.clip(made[..., :3] + (1 - seen) * np.array(GROUND), 0, 255).astype(np.uint8)
    return brought


def outlined(image: Pixels, truth: Pixels) -> Pixels:
    """The image with the outline of the true mask."""
    made = image.copy()
    made[(truth > 0) & grown(truth == 0, _thickness(image))] = OUTLINE
    return made


def faded(image: Pixels, asked: Flag) -> Pixels:
    """The image, pale where nobody asks."""
    return np.where(asked[..., np.newaxis], image, 190 + image // 4).astype(np.uint8)


def grown(inside: Flag, width: int) -> Flag:
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
