"""What a PNG header says (PNG, 2nd edition), and 16-bit colour, which Pillow would cut to 8 bits.

OpenCV decodes the latter, which is all that this folder needs it for; it is imported on first use.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER_BYTES = 33  # signature and the whole IHDR chunk
KINDS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGBA"}


@dataclass(frozen=True)
class PngHeader:
    """Size, bits per channel, and kind of colour."""

    width: int
    height: int
    bits: int
    kind: str


def read_header(start: bytes, name: str) -> PngHeader:
    """The header in a file's first bytes."""
    if len(start) < HEADER_BYTES or not start.startswith(SIGNATURE) or start[12:16] != b"IHDR":
        raise DataError(f"{name}: no PNG image (it starts with {start[:8]!r}); expected a PNG file")
    width, height, bits, kind = struct.unpack(">IIBB", start[16:26])
    if not width or not height:
        raise DataError(f"{name}: size {width}x{height}; expected an image with pixels")
    return PngHeader(width, height, bits, KINDS.get(kind, f"colour type {kind}"))


def read_rgb16(data: bytes, name: str) -> NDArray[np.uint16]:
    """The pixels (height, width, 3) of a 16-bit RGB image."""
    import cv2

    header = read_header(data[:HEADER_BYTES], name)
    if (header.bits, header.kind) != (16, "RGB"):
        raise DataError(f"{name}: {header.bits}-bit {header.kind}; expected plain 16-bit RGB")
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise DataError(f"{name}: can't be decoded ({error})") from None
    if pixels is None:
        raise DataError(f"{name}: damaged image; the download may be truncated")
    return np.asarray(pixels[:, :, 2::-1], np.uint16)  # OpenCV has blue first, and alpha behind red
