"""A small set in the HPatches layout, made from real photos; `patch_tasks` makes the tasks over it.

It follows the published recipe (hpatches-dataset, "Patch Extraction Method"): DoG detections in the reference
photo, regions of 5 times the detected scale turned to their main gradient, no two overlapping by more than
half; then the same regions, jittered and carried by the true homography, cropped from five changed photos. What is
made up is the change itself: light for `i_` sequences, a homography for `v_`.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.task_files import IMAGES_PER_LEVEL
from raybench.demo.patch_tasks import write_tasks
from raybench.demo.photos import load_photos
from raybench.errors import ConfigError

SEQUENCES = (
    "i_astronaut",
    "i_chelsea",
    "i_coffee",
    "i_motorcycle",
    "v_brick",
    "v_camera",
    "v_grass",
    "v_gravel",
)
V_LIGHT = 0.35  # who walks around a scene meets some change of light too
PATCH_SIDE_PX = 65
# 33 MB in all instead of 40 with OpenCV's default, for half a second more.
PNG = (cv2.IMWRITE_PNG_COMPRESSION, 3, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_HUFFMAN_ONLY)
REGION_SIDES_PX = (22.0, 150.0)  # smaller ones are mush at 65 px, larger ones show half the photo

Frames = NDArray[np.float64]  # (n, 2, 3): patch coordinates in -0.5 .. 0.5 -> pixels of the photo


@dataclass(frozen=True)
class Jitter:
    """Standard deviations of a detector's error."""

    shift: float  # of the region's side
    turn_degrees: float
    scale_octaves: float
    stretch_octaves: float


# Sized so that the median overlap of a region's circle with the jittered one is as in HPatches: 0.85 for easy, 0.72 for
# hard (its README). It names none for tough: 0.6 goes on at the same step.
JITTERS = {
    "e": Jitter(0.038, 3.0, 0.11, 0.11),
    "h": Jitter(0.076, 6.0, 0.22, 0.22),
    "t": Jitter(0.114, 9.0, 0.33, 0.33),
}


def make_hpatches(folder: pathlib.Path, seed: int = 0, patches: int = 120) -> None:
    """Write `folder/hpatches/SEQ/IM.png`, at most `patches` per strip, `folder/benchmarks/` and `folder/tasks/`."""
    if patches < 2:
        raise ConfigError(f"patches={patches}: expected at least 2, since a task pairs different patches of a sequence")
    photos = load_photos()
    counts = {}
    for index, sequence in enumerate(SEQUENCES):
        rng = np.random.default_rng([seed, index])
        photo = cv2.cvtColor(photos[sequence[2:]], cv2.COLOR_RGB2GRAY).astype(np.uint8)
        frames = _detections(photo, patches, rng)
        counts[sequence] = len(frames)
        _write_sequence(folder / "hpatches" / sequence, photo, frames, rng)
    write_tasks(folder, counts, np.random.default_rng([seed, len(SEQUENCES)]))


def _write_sequence(folder: pathlib.Path, photo: NDArray[np.uint8], frames: Frames, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write_strip(folder / "ref.png", photo, frames)
    view = rng.uniform(-1, 1, 8)  # one direction per sequence: its five views grow along it
    for change in range(1, IMAGES_PER_LEVEL + 1):
        strength, light = change / IMAGES_PER_LEVEL, rng.uniform(-1, 1, 7)
        if folder.name.startswith("i_"):
            homography, seen = np.eye(3), _relit(photo, light, strength)
        else:
            homography, seen = _reviewed(_relit(photo, light, V_LIGHT * strength), view, strength)
        changed = _developed(seen, strength, rng)
        for level, jitter in JITTERS.items():
            jittered = _jittered(frames, jitter, rng)
            _write_strip(folder / f"{level}{change}.png", changed, _carried(jittered, homography))


def _detections(photo: NDArray[np.uint8], limit: int, rng: np.random.Generator) -> Frames:
    """Up to `limit` regions inside the photo, at random among the DoG detections."""
    keypoints = cv2.SIFT.create(contrastThreshold=0.02).detect(photo, None)
    found = sorted((*keypoint.pt, 5 * keypoint.size, np.deg2rad(keypoint.angle)) for keypoint in keypoints)
    kept: list[tuple[float, ...]] = []
    for x, y, side, angle in rng.permutation(np.array(found)):
        reach = side * 0.71  # half the diagonal
        inside = reach <= x < photo.shape[1] - reach and reach <= y < photo.shape[0] - reach
        sized = REGION_SIDES_PX[0] <= side <= REGION_SIDES_PX[1]
        if inside and sized and not any(_overlap(x, y, side, other) for other in kept):
            kept.append((x, y, side, angle))
        if len(kept) == limit:
            break
    return np.array([_frame(*region) for region in kept])


def _overlap(x: float, y: float, side: float, other: tuple[float, ...]) -> bool:
    """Whether two regions share more than about half of their union (as circles)."""
    small, large = sorted((side, other[2]))
    return bool(small / large > 0.7 and np.hypot(x - other[0], y - other[1]) < 0.27 * large)


def _frame(x: float, y: float, side: float, angle: float) -> NDArray[np.float64]:
    cosine, sine = side * np.cos(angle), side * np.sin(angle)
    return np.array([[cosine, -sine, x], [sine, cosine, y]])


def _jittered(frames: Frames, jitter: Jitter, rng: np.random.Generator) -> Frames:
    """The regions as a detector would find them again."""
    noise = rng.normal(size=(len(frames), 5))
    turns = np.deg2rad(jitter.turn_degrees * noise[:, 0])
    scale = np.exp2(jitter.scale_octaves * noise[:, 1])
    stretch = np.exp2(jitter.stretch_octaves / 2 * noise[:, 2])
    errors = np.empty((len(frames), 3, 3))
    for index in range(len(frames)):
        turn = _frame(0.0, 0.0, scale[index], turns[index])[:, :2]
        errors[index, :2, :2] = turn @ np.diag([stretch[index], 1 / stretch[index]])
    errors[:, :2, 2] = jitter.shift * noise[:, 3:]
    errors[:, 2] = (0, 0, 1)
    return frames @ errors


def _carried(frames: Frames, homography: NDArray[np.float64]) -> Frames:
    """The regions in the other photo, by the homography's affine part at each centre."""
    centres = np.concatenate([frames[:, :, 2], np.ones((len(frames), 1))], axis=1) @ homography.T  # (n, 3)
    points = centres[:, :2] / centres[:, 2:]
    jacobians = homography[:2, :2] - points[:, :, np.newaxis] * homography[2, :2]
    jacobians /= centres[:, 2, np.newaxis, np.newaxis]
    return np.concatenate([jacobians @ frames[:, :, :2], points[:, :, np.newaxis]], axis=2)


def _write_strip(path: pathlib.Path, photo: NDArray[np.uint8], frames: Frames) -> None:
    """Crop each region at twice the side, halve it by area average (against aliasing), and stack the patches."""
    double = 2 * PATCH_SIDE_PX
    unit = np.array([[1 / double, 0, 0.5 / double - 0.5], [0, 1 / double, 0.5 / double - 0.5], [0, 0, 1]])
    strip = np.empty((len(frames), PATCH_SIDE_PX, PATCH_SIDE_PX), np.uint8)
    for index, frame in enumerate(frames):
        crop = cv2.warpAffine(
            photo,
            frame @ unit,
            (double, double),
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REFLECT_101,
        )
        strip[index] = cv2.resize(crop, (PATCH_SIDE_PX, PATCH_SIDE_PX), interpolation=cv2.INTER_AREA)
    _, encoded = cv2.imencode(".png", strip.reshape(-1, PATCH_SIDE_PX), PNG)
    path.write_bytes(encoded.tobytes())


def _relit(photo: NDArray[np.uint8], light: NDArray[np.float64], strength: float) -> NDArray[np.uint8]:
    """The photo with a lamp from one side, a soft shadow, another exposure and another gamma."""
    height, width = photo.shape
    down, right = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    lamp = 1 + 0.5 * strength * (light[0] * right + light[1] * down)
    edge = light[2] * right + light[3] * down + 0.3 * light[4]
    shadow = 1 - 0.7 * strength / (1 + np.exp(-20 * edge))
    gamma = np.exp2(strength * np.copysign(0.3 + 0.7 * abs(light[5]), light[5]))
    exposure = np.exp2(strength * np.copysign(0.3 + 0.5 * abs(light[6]), light[6]))
    return _grey_levels(255 * exposure * lamp * shadow * (photo / 255.0) ** gamma)


def _reviewed(
    photo: NDArray[np.uint8], view: NDArray[np.float64], strength: float
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """A homography that moves the corners by up to a fifth of the photo, and the whole photo seen through it."""
    height, width = photo.shape
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    moved = corners + 0.2 * strength * view.reshape(4, 2) * (width, height)
    moved -= moved.min(axis=0)
    homography = cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))
    size = np.ceil(moved.max(axis=0)).astype(int).tolist()
    border = cv2.BORDER_REFLECT_101
    seen = cv2.warpPerspective(photo, homography, size, flags=cv2.INTER_CUBIC, borderMode=border)
    return np.asarray(homography, np.float64), np.asarray(seen, np.uint8)


def _developed(photo: NDArray[np.uint8], strength: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """What a camera would store: sensor noise, then JPEG."""
    noisy = _grey_levels(photo + rng.normal(scale=2 + 6 * strength, size=photo.shape))
    _, encoded = cv2.imencode(".jpg", noisy, [cv2.IMWRITE_JPEG_QUALITY, round(95 - 25 * strength)])
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE), np.uint8)


def _grey_levels(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
