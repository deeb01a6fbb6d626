"""What a PNG header says, and 16-bit colour as PNG holds it, which Pillow would cut to 8 bits (PNG, 2nd edition)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER_BYTES = 33  # signature and the whole IHDR chunk
KINDS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGBA"}
BYTES_A_PIXEL = 6  # of 16-bit RGB


@dataclass(frozen=True)
class PngHeader:
    """Size, bits a channel, and kind of colour."""

    width: int
    height: int
    bits: int
    kind: str
    interlaced: bool


def read_header(start: bytes, name: str) -> PngHeader:
    """The header in a file's first bytes."""
    if len(start) < HEADER_BYTES or not start.startswith(SIGNATURE) or start[12:16] != b"IHDR":
        raise DataError(f"{name}: no PNG image (it starts with {start[:8]!r}); expected a PNG file")
    width, height, bits, kind, _, _, interlaced = struct.unpack(">IIBBBBB", start[16:29])
    if not width or not height:
        raise DataError(f"{name}: size {width}x{height}; expected an image with pixels")
    return PngHeader(width, height, bits, KINDS.get(kind, f"colour type {kind}"), bool(interlaced))


def read_rgb16(data: bytes, name: str) -> NDArray[np.uint16]:
    """The pixels (height, width, 3) of a 16-bit RGB image."""
    header = read_header(data[:HEADER_BYTES], name)
    if (header.bits, header.kind, header.interlaced) != (16, "RGB", False):
        raise DataError(
            f"{name}: {header.bits}-bit {header.kind}{', interlaced' if header.interlaced else ''}; "
            "expected plain 16-bit RGB"
        )
    stride = BYTES_A_PIXEL * header.width
    try:
        body = zlib.decompress(b"".join(_image_chunks(data, name)))
    except zlib.error as error:
        raise DataError(f"{name}: damaged image ({error}); the download may be truncated") from None
    if len(body) != header.height * (stride + 1):
        raise DataError(
            f"{name}: header says {header.width}x{header.height}, body has {len(body):,} bytes "
            f"(expected {header.height * (stride + 1):,})"
        )
    lines = np.frombuffer(body, np.uint8).reshape(header.height, stride + 1)
    if lines[:, 0].max() > 4:
        raise DataError(f"{name}: damaged image (filter {lines[:, 0].max()}); expected filters 0 to 4")
    pixels = _unfiltered(lines[:, 0], lines[:, 1:].reshape(header.height, header.width, BYTES_A_PIXEL))
    return np.ascontiguousarray(pixels).view(">u2").astype(np.uint16)


def _image_chunks(data: bytes, name: str) -> list[bytes]:
    chunks, at = [], len(SIGNATURE)
    while at + 8 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if kind == b"IDAT":
            chunks.append(data[at + 8 : at + 8 + length])
        if kind == b"IEND":
            return chunks
        at += length + 12
    raise DataError(f"{name}: ends before its last chunk; the download may be truncated")


def _unfiltered(filters: NDArray[np.uint8], coded: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bytes behind the five line filters.

    A byte needs its left, upper and upper left neighbours, so all pixels of one diagonal, x + y constant, are undone
    at once: width + height steps instead of width x height.
    """
    height, width, _ = coded.shape
    plain = np.zeros((height + 1, width + 1, BYTES_A_PIXEL), np.int16)  # a row and a column of zeros before the first
    for diagonal in range(height + width - 1):
        y = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        x = diagonal - y
        left, up, corner = plain[y + 1, x], plain[y, x + 1], plain[y, x]
        nearest = _paeth(left, up, corner)
        choices = np.stack([np.zeros_like(left), left, up, (left + up) >> 1, nearest])
        predicted = choices[filters[y], np.arange(len(y))]
        plain[y + 1, x + 1] = (coded[y, x] + predicted) & 255
    return plain[1:, 1:].astype(np.uint8)


def _paeth(left: NDArray[np.int16], up: NDArray[np.int16], corner: NDArray[np.int16]) -> NDArray[np.int16]:
    """The neighbour that is closest to left + up - corner; left before up before corner among equals."""
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    beside = np.where(to_up <= to_corner, up, corner)
    closest: NDArray[np.int16] = np.where((to_left <= to_up) & (to_left <= to_corner), left, beside)
    return closest
