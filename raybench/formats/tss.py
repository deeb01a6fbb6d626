"""Files of the TSS kit beside flow: masks and images (PNG), `pair.txt`, `flip_gt.txt`, and the `scores.csv` of a group.

Masks are read as 8-bit grey, palettes looked up, as the kit's C++ tool does; nothing is thresholded here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raybench.errors import DataError, blamed_on_file
from raybench.formats import png
from raybench.formats.images import open_image
from raybench.formats.limits import USUAL, Limits
from raybench.table import csv_text
from raybench.visible import AS_ESCAPES

GREY_PARTS = np.array([9797, 19234, 3737])  # of red, green and blue in 32,768, cut off, as OpenCV's PNG reader has it
THRESHOLDS = tuple(range(1, 51))  # percent of the longer side
SCORE_COLUMNS = ("Row", "Src", "Ref", "SegIUR", "Flip", *(f"T{percent}" for percent in THRESHOLDS))


def mask_size(start: bytes, name: str, limits: Limits = USUAL) -> tuple[int, int]:
    """Width and height of a mask, from its header; one with colour or 16 bits is an error."""
    header = png.read_header(start, name)
    if header.kind not in ("grey", "palette") or header.bits > 8:
        raise DataError(
            f"{name}: {header.bits}-bit {header.kind}; expected a mask of one channel, 8-bit grey or palette"
        )
    limits.check_pixels(header.width, header.height, name)
    return header.width, header.height


def read_mask(data: bytes, name: str, limits: Limits = USUAL) -> NDArray[np.uint8]:
    """A mask (height, width) as grey bytes."""
    mask_size(data[: png.HEADER_BYTES], name, limits)
    image = _opened(data, name, limits)
    if image.mode != "P":
        return np.asarray(image.convert("L"))
    colours = np.zeros((256, 3), np.int64)
    palette = np.array(image.getpalette("RGB"), np.int64).reshape(-1, 3)
    colours[: len(palette)] = palette
    grey = ((colours @ GREY_PARTS) >> 15).astype(np.uint8)
    return np.asarray(grey[np.asarray(image)])


def read_image(data: bytes, name: str, limits: Limits = USUAL) -> NDArray[np.uint8]:
    """An image (height, width, 3), RGB."""
    with blamed_on_file(f"{name}: damaged image"):
        return np.asarray(_opened(data, name, limits).convert("RGB"))


def write_png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file with these pixels, grey or RGB."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=3)
    return file.getvalue()


def read_pair(data: bytes, name: str) -> tuple[str, str]:
    """The two source names in `pair.txt`: a header line `Image1,Image2`, then one line."""
    with blamed_on_file(f"{name}: no line with two names"):
        lines = [row for row in csv.reader(data.decode("utf-8-sig", "replace").splitlines()) if row]
    if len(lines) < 2 or len(lines[1]) != 2:
        raise DataError(f"{name}: expected a line Image1,Image2 and one with two names, found {str(lines[:2])[:80]}")
    return lines[1][0].strip(), lines[1][1].strip()


def read_flip(data: bytes, name: str) -> int:
    """1 if the pair is mirrored, else 0."""
    text = data.decode("utf-8-sig", "replace").strip()
    if text not in ("0", "1"):
        raise DataError(f"{name}: expected 0 or 1, found {text[:40]!r}")
    return int(text)


def write_scores(rows: Sequence[Sequence[str | int | float | None]], decimals: int | None = None) -> bytes:
    """`scores.csv` with these rows, figures at full precision or with so many decimals; None is an empty cell."""
    text = csv_text([SCORE_COLUMNS, *([_cell(value, decimals) for value in row] for row in rows)])
    return text.encode(errors=AS_ESCAPES)


def _cell(value: str | int | float | None, decimals: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(float(value)) if decimals is None else f"{value:.{decimals}f}"
    return str(value)


def _opened(data: bytes, name: str, limits: Limits) -> Image.Image:
    with blamed_on_file(f"{name}: damaged image", "the download may be truncated"):
        image = open_image(data)
        limits.check_pixels(*image.size, name)
        image.load()
        return image
