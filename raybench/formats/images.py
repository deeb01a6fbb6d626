"""Images: bytes to RGB as Pillow's `convert("RGB")` gives it, sizes from headers, and the published preprocessing.

The preprocessing is that of SSCD (Pizzi et al., CVPR 2022): Pillow's bilinear filter, then /255, minus ImageNet's mean,
over its deviation, each step in float32; filter, mean and deviation may be others. Alpha is dropped, not blended; the
EXIF turn is applied only if asked for.
"""

from __future__ import annotations

import io
import math
import struct
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from raybench.errors import ConfigError, DataError, reason_of
from raybench.formats.limits import USUAL, Limits

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".jp2")
MODES = ("short_edge", "square", "long_edge")
MEAN = (0.485, 0.456, 0.406)  # of ImageNet's photos, by channel
STD = (0.229, 0.224, 0.225)
FILTER = "bilinear"
INTERPOLATIONS = (FILTER, "bicubic", "lanczos", "box", "hamming", "nearest")  # of Pillow
EXIF_ORIENTATION = 0x0112
SIDEWAYS = (5, 6, 7, 8)  # values of the EXIF orientation that swap width and height

GIF = b"GIF8"
JPEG, JPEG_END = b"\xff\xd8", b"\xff\xd9"
_PILLOW_LIMIT = threading.Lock()


def open_image(data: bytes, limits: Limits = USUAL) -> Image.Image:
    """The file, opened but not yet decoded, however many pixels it has: the caller holds them to its `Limits`.

    Pillow has a limit of its own, at which it warns, and refuses at twice that. It looks at it while it opens a file,
    so it is lifted just then, by one thread at a time. Of a GIF it fills the first frame already then: there it holds.
    """
    with _PILLOW_LIMIT:
        limit = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = limits.pixels // 2 if data.startswith(GIF) else None
        try:
            return Image.open(io.BytesIO(data))
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def decode_image(data: bytes, name: str, exif_rotate: bool = False, limits: Limits = USUAL) -> NDArray[np.uint8]:
    """The first picture in a file as RGB, (height, width, 3); a DataError names a file that is broken or cut short.

    Of a file with several, such as an animation, no other is decoded.
    """
    limits.check_pixels(*_gif_size(data), name)
    with _opened(data, name, limits) as image:
        limits.check_pixels(*image.size, name)
        turned = ImageOps.exif_transpose(image) if exif_rotate else image
        turned.info.pop("transparency", None)  # dropped by the conversion, which would warn of it
        return np.asarray(turned.convert("RGB"))


def decode_cut_image(data: bytes, name: str, limits: Limits = USUAL) -> tuple[NDArray[np.uint8], bool]:
    """The picture as far as the file goes, and whether it is cut short: the rest of such a JPEG is grey.

    It is what Pillow gives with LOAD_TRUNCATED_IMAGES, which is one switch for all threads of a process and is left
    alone here: an end marker behind the data does the same. Where a progressive JPEG ends in the header of a scan, the
    marker counts as a part of that, and Pillow gives a picture of zeros.
    """
    try:
        return decode_image(data, name, limits=limits), False
    except DataError:
        if not data.startswith(JPEG):
            raise
        with suppress(DataError):
            return decode_image(data + JPEG_END, name, limits=limits), True
        with suppress(DataError), _opened(data, name, limits) as image:
            has_pixels = bool(getattr(image, "tile", ()))  # its headers are whole
            if has_pixels and image.info.get("progressive") and not data.endswith(JPEG_END):
                limits.check_pixels(*image.size, name)
                return np.asarray(Image.new(image.mode, image.size).convert("RGB")), True
        raise


def grey_levels(data: bytes, name: str, limits: Limits = USUAL) -> NDArray[np.uint8]:
    """A picture of patches as 8-bit grey, (height, width), of colours their luma; 16 bits a pixel are refused."""
    limits.check_pixels(*_gif_size(data), name)
    with _opened(data, name, limits) as image:
        limits.check_pixels(*image.size, name)
        if image.mode.startswith("I"):
            raise DataError(f"{name}: 16 bits a pixel; expected 8-bit grey")
        return np.asarray(image.convert("L"))


def image_size(data: bytes, name: str, exif_rotate: bool = False, limits: Limits = USUAL) -> tuple[int, int]:
    """Width and height by the header, however large; `data` may end behind it.

    The turn of a picture beyond the limits, which nobody will decode, is not looked for: of a PNG it may stand behind
    the pixels, and Pillow decodes these to get there.
    """
    width, height = _gif_size(data)
    if width * height > limits.pixels:
        return width, height
    with _opened(data, name, limits) as image:
        width, height = image.size
        is_small = width * height <= limits.pixels
        if exif_rotate and is_small and image.getexif().get(EXIF_ORIENTATION) in SIDEWAYS:
            return height, width
        return width, height


def _gif_size(data: bytes) -> tuple[int, int]:
    """Width and height that a GIF says, of anything else nothing."""
    return struct.unpack("<HH", data[6:10]) if data.startswith(GIF) and len(data) >= 10 else (0, 0)


@contextmanager
def _opened(data: bytes, name: str, limits: Limits) -> Iterator[Image.Image]:
    """The file, opened; whatever goes wrong within the block is the file's fault."""
    if not data:
        raise DataError(f"{name}: is empty; expected an image")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged EXIF and the like; damaged pixels are errors
            with open_image(data, limits) as image:
                yield image
    except (DataError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise DataError(f"{name}: no image that Pillow knows ({len(data):,} bytes); mend or remove it") from None
    except Exception as cause:  # its decoders raise whatever the damage made them trip over
        raise DataError(
            f"{name}: can't be decoded ({reason_of(cause)}); the file may be cut short or damaged"
        ) from cause


@dataclass(frozen=True)
class Preprocess:
    """The size to which a picture is brought: its short edge, both edges (`square`), or its long edge; by which filter;
    and the mean and standard deviation by which levels from 0 to 1 are normalised."""

    size: int = 288
    mode: str = "short_edge"
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD
    interpolation: str = FILTER

    divisor: ClassVar[float] = 255.0  # of grey levels

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"preprocessing {self.mode!r}: unknown; expected one of {', '.join(MODES)}")
        if self.size < 1:
            raise ConfigError(f"--size {self.size}: must be at least 1")
        if not all(value > 0 for value in self.std):
            raise ConfigError(f"--std {_listed(self.std)}: must be above 0")

    @property
    def options(self) -> str:
        """What differs from the published steps beyond size and mode, as options; empty if nothing does."""
        asked = {"--mean": self.mean != MEAN, "--std": self.std != STD, "--interpolation": self.interpolation != FILTER}
        return ", ".join(name for name, differs in asked.items() if differs)

    @property
    def facts(self) -> tuple[Any, ...]:
        """What a digest covers: size and mode alone for the published steps."""
        more = (self.mean, self.std, self.interpolation) if self.options else ()
        return (self.size, self.mode, *more)

    @property
    def words(self) -> str:
        """The steps in one line.

        >>> Preprocess(224, "square").words
        '224 px by square, bilinear, minus mean 0.485,0.456,0.406, over deviation 0.229,0.224,0.225 of levels 0 to 1'
        """
        by = f"{self.size} px by {self.mode.replace('_', ' ')}, {self.interpolation}"
        return f"{by}, minus mean {_listed(self.mean)}, over deviation {_listed(self.std)} of levels 0 to 1"

    def shape(self, width: int, height: int) -> tuple[int, int]:
        """Height and width after resizing.

        >>> Preprocess(40).shape(70, 53), Preprocess(40, "long_edge").shape(70, 53)
        ((40, 52), (30, 40))
        """
        short, long = min(width, height), max(width, height)
        if self.mode == "square":
            short = long = self.size
        elif self.mode == "short_edge":
            short, long = self.size, int(self.size * long / short)
        else:  # where the published code rounds a thin picture to nothing and stops, one pixel is left
            short, long = max(1, int(self.size / long * short + 0.5)), self.size
        return (short, long) if height <= width else (long, short)

    def resized(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture (h, w, 3) at its new size, still in whole grey levels."""
        height, width = self.shape(image.shape[1], image.shape[0])
        return np.asarray(Image.fromarray(image).resize((width, height), self._filter))

    @property
    def _filter(self) -> Image.Resampling:
        return Image.Resampling[self.interpolation.upper()]

    def apply(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The network's input, (3, height, width)."""
        return self.normalised(self.resized(image))

    def normalised(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """RGB (…, h, w, 3) as float32 (…, 3, h, w): of about mean 0 and deviation 1, over photos."""
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        values = (image.astype(np.float32) / np.float32(255) - mean) / std
        return np.ascontiguousarray(np.moveaxis(values, -1, -3))


def channel_values(option: str, text: str) -> tuple[float, ...]:
    """Three numbers, of red, green and blue, from `0.5,0.4,0.3`, or one for all from `0.5`.

    >>> channel_values("--mean", "0.5")
    (0.5, 0.5, 0.5)
    """
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (1, 3) or not all(math.isfinite(value) for value in values):
        raise ConfigError(f"{option} {text}: expected one number, or three with commas, such as 0.485,0.456,0.406")
    if max(map(abs, values)) > 1:
        by = _listed(tuple(round(value / 255, 4) for value in values))
        raise ConfigError(f"{option} {text}: is of levels from 0 to 1, not to 255; divided by 255 it is {by}")
    return values * (3 // len(values))


def _listed(values: Sequence[float]) -> str:
    return ",".join(map(str, values))
