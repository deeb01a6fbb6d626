"""A small set in the TSS layout made from real photos: the same thing before two grounds, with its true flow and masks.

A blob of a photo is carried into the second image by a homography or a smooth warp, in other light, before another
photo. Both directions are known where the blob is, and only there, as in TSS; each group has one mirrored pair.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from raybench.demo.photos import load_photos
from raybench.formats.flo import UNKNOWN_PX, write_flo
from raybench.formats.tss import write_png

Places = NDArray[np.float64]  # (…, 2): x, y
Move = Callable[[Places], Places]

WIDTH_PX, HEIGHT_PX = 320, 240
SECOND_SIZES = ((320, 240), (288, 240), (320, 272))  # of second images, in turn
BLOB = 0.36  # mean radius, of the shorter side
INVERSE_STEPS = 25
# Subject and the photo behind its second view; the last pair of each group is mirrored.
TSS_SUBJECTS = (
    ("chelsea", "grass"),
    ("astronaut", "brick"),
    ("coffee", "gravel"),
    ("motorcycle", "moon"),
    ("rocket", "hubble"),
    ("coins", "camera"),
)


@dataclass(frozen=True)
class Transform:
    """Where a place of the first image is in the second, and back."""

    forth: Move
    back: Move


def make_tss(folder: pathlib.Path, seed: int = 0) -> None:
    """Write `folder/Dataset/GROUP/PAIR/…` with groups `homography` and `warp`."""
    photos = load_photos()
    for number, (group, make) in enumerate((("homography", _homography), ("warp", _warp))):
        for index, (subject, behind) in enumerate(TSS_SUBJECTS):
            rng = np.random.default_rng([seed, number, index])
            size = SECOND_SIZES[index % len(SECOND_SIZES)]
            mirrored = index == len(TSS_SUBJECTS) - 1
            transform = make(rng, size, mirrored)
            place = folder / "Dataset" / group / f"{subject}_{behind}"
            _write_pair(place, photos[subject], photos[behind], transform, size, rng)
            (place / "pair.txt").write_text(f"Image1,Image2\n{subject}.png,{subject}_on_{behind}.png\n")
            (place / "flip_gt.txt").write_text(f"{int(mirrored)}")


def _write_pair(
    folder: pathlib.Path,
    subject: NDArray[np.uint8],
    behind: NDArray[np.uint8],
    transform: Transform,
    size: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    first = _cropped(subject, (WIDTH_PX, HEIGHT_PX))
    here, there = _grid(WIDTH_PX, HEIGHT_PX), _grid(*size)
    origin = transform.back(there)
    blob = _blob(rng)
    seen = _sampled(first, origin)
    masks = (blob(here), blob(origin) & _inside(origin, (WIDTH_PX, HEIGHT_PX)))
    second = np.where(masks[1][..., np.newaxis], seen, _cropped(behind, size))
    targets = (transform.forth(here), origin)
    masks = (masks[0] & _inside(targets[0], size), masks[1])
    images = (first, _relit(second, rng))
    for side, (image, mask, target, places) in enumerate(zip(images, masks, targets, (here, there), strict=True), 1):
        flow = np.where(mask[..., np.newaxis], target - places, UNKNOWN_PX).astype(np.float32)
        (folder / f"image{side}.png").write_bytes(write_png(image))
        (folder / f"mask{side}.png").write_bytes(write_png(mask.astype(np.uint8) * np.uint8(255)))
        (folder / f"flow{side}.flo").write_bytes(write_flo(flow))


def _homography(rng: np.random.Generator, size: tuple[int, int], mirrored: bool) -> Transform:
    """A view from elsewhere: corners move by up to a tenth of the image."""
    corners = np.array([[0, 0], [WIDTH_PX, 0], [WIDTH_PX, HEIGHT_PX], [0, HEIGHT_PX]], np.float32)
    moved = corners / (WIDTH_PX, HEIGHT_PX) * size + rng.uniform(-0.1, 0.1, (4, 2)) * size
    moved = moved[[1, 0, 3, 2]] if mirrored else moved
    matrix = np.asarray(cv2.getPerspectiveTransform(corners, moved.astype(np.float32)), np.float64)
    inverse = np.asarray(np.linalg.inv(matrix), np.float64)
    return Transform(lambda places: _projected(matrix, places), lambda places: _projected(inverse, places))


def _warp(rng: np.random.Generator, size: tuple[int, int], mirrored: bool) -> Transform:
    """A smooth bend: two waves each way, of at most a twentieth of the image, low enough to be undone in steps."""
    scale = np.array(size) / (WIDTH_PX, HEIGHT_PX)
    waves = rng.uniform(0.6, 1.4, (2, 2)) * 2 * np.pi / (WIDTH_PX, HEIGHT_PX)
    phases, heights = rng.uniform(0, 2 * np.pi, (2, 2)), rng.uniform(0.02, 0.05, (2, 2)) * (WIDTH_PX, HEIGHT_PX)

    def bent(places: Places) -> Places:
        """How far a place is bent: x by a wave along y and the other way round."""
        across = places[..., ::-1, np.newaxis] * waves.T + phases
        return np.asarray(np.sin(across).sum(axis=-1) * heights.mean(axis=0) / 2, np.float64)

    def forth(places: Places) -> Places:
        moved = (places + bent(places)) * scale
        return np.stack([size[0] - 1 - moved[..., 0], moved[..., 1]], -1) if mirrored else moved

    def back(places: Places) -> Places:
        if mirrored:
            places = np.stack([size[0] - 1 - places[..., 0], places[..., 1]], -1)
        target = places / scale
        found = target
        for _ in range(INVERSE_STEPS):  # the bend is a contraction, so this converges
            found = target - bent(found)
        return found

    return Transform(forth, back)


def _projected(matrix: NDArray[np.float64], places: Places) -> Places:
    whole = np.concatenate([places, np.ones((*places.shape[:-1], 1))], -1) @ matrix.T
    projected: Places = whole[..., :2] / whole[..., 2:]
    return projected


def _blob(rng: np.random.Generator) -> Callable[[Places], NDArray[np.bool_]]:
    """A round shape with a wavy edge around the middle of the first image."""
    sizes, phases = rng.uniform(-0.08, 0.08, 4), rng.uniform(0, 2 * np.pi, 4)
    middle, radius = np.array([WIDTH_PX / 2, HEIGHT_PX / 2]), BLOB * HEIGHT_PX

    def inside(places: Places) -> NDArray[np.bool_]:
        away = places - middle
        angle = np.arctan2(away[..., 1], away[..., 0])
        edge = 1 + sum(
            size * np.sin((n + 2) * angle + phase) for n, (size, phase) in enumerate(zip(sizes, phases, strict=True))
        )
        near: NDArray[np.bool_] = np.hypot(away[..., 0] / 1.2, away[..., 1]) < radius * edge
        return near

    return inside


def _grid(width: int, height: int) -> Places:
    return np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).astype(np.float64)


def _inside(places: Places, size: tuple[int, int]) -> NDArray[np.bool_]:
    x, y = places[..., 0], places[..., 1]
    within: NDArray[np.bool_] = (x >= 0) & (x <= size[0] - 1) & (y >= 0) & (y <= size[1] - 1)
    return within


def _cropped(photo: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The middle of a photo, in the shape of the size, at that size."""
    height, width = photo.shape[:2]
    scale = min(width / size[0], height / size[1])
    w, h = round(size[0] * scale), round(size[1] * scale)
    left, top = (width - w) // 2, (height - h) // 2
    part = np.ascontiguousarray(photo[top : top + h, left : left + w, :3])
    return np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), np.uint8)


def _sampled(photo: NDArray[np.uint8], places: Places) -> NDArray[np.uint8]:
    x, y = places[..., 0].astype(np.float32), places[..., 1].astype(np.float32)
    return np.asarray(cv2.remap(photo, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT), np.uint8)


def _relit(image: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """The image in another light, with the noise of a sensor."""
    gain, offset = rng.uniform(0.85, 1.15), rng.uniform(-12, 12)
    lit: NDArray[np.uint8] = np.clip(image * gain + offset + rng.normal(0, 2, image.shape), 0, 255).astype(np.uint8)
    return lit
