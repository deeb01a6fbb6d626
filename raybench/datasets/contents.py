"""Whether a file of a published set holds what it should, as far as that is asked for: its first bytes, or all of it.

What names and counts say is known to `tallies`; here files are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from raybench.datasets.parts import KnownFile
from raybench.datasets.told_names import listed_names, revisited_names
from raybench.errors import DataError
from raybench.formats.disc import read_ground_truth
from raybench.formats.flo import flow_size
from raybench.formats.hbench import strip_shape
from raybench.formats.hpatches import read_splits
from raybench.formats.images import decode_image
from raybench.formats.png import HEADER_BYTES, read_header

JPEG_SUFFIXES = (".jpg", ".jpeg")
JPEG_START, JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
PNG_END = b"IEND\xaeB`\x82"
BITMAP_START = b"BM"
READERS: dict[str, Callable[[bytes, str], object]] = {
    "splits": read_splits,
    "true pairs": read_ground_truth,
    "revisited truth": revisited_names,
    "names": listed_names,
}


def check_start(name: str, start: bytes, size_bytes: int, is_strip: bool) -> None:
    """Raise DataError if a file's first `HEADER_BYTES` are not those of its kind."""
    lower = name.lower()
    if lower.endswith(".flo"):
        flow_size(start[:12], size_bytes, name, ".flo")
    elif lower.endswith(".png"):
        if is_strip:
            strip_shape(start, name)
        else:
            read_header(start, name)
    elif lower.endswith(JPEG_SUFFIXES) and not start.startswith(JPEG_START):
        raise DataError(f"{name}: no JPEG image (it starts with {start[:8]!r})")
    elif lower.endswith(".bmp"):
        said = int.from_bytes(start[2:6], "little")
        if not start.startswith(BITMAP_START):
            raise DataError(f"{name}: no BMP image (it starts with {start[:8]!r})")
        if said != size_bytes:
            raise DataError(f"{name}: says that it has {said:,} bytes and has {size_bytes:,}; it may be cut short")


def check_whole(name: str, data: bytes, size_bytes: int, is_strip: bool) -> None:
    """Raise DataError if a file is not whole: a picture without its end mark counts if it can't be decoded either."""
    check_start(name, data[:HEADER_BYTES], size_bytes, is_strip)
    lower = name.lower()
    ends = {".png": PNG_END, **dict.fromkeys(JPEG_SUFFIXES, JPEG_END)}
    end = next((mark for suffix, mark in ends.items() if lower.endswith(suffix)), b"")
    if not data.rstrip(b"\0").endswith(end):
        decode_image(data, name)


def check_known(one: KnownFile, name: str, data: bytes) -> None:
    """Raise if a text file has another content than the published one, or none that its reader takes."""
    if one.sha256 and hashlib.sha256(data).hexdigest() != one.sha256:
        raise DataError(
            f"{name}: has another content than the published file (sha256 {hashlib.sha256(data).hexdigest()[:12]}…, "
            f"expected {one.sha256[:12]}…); fetch it again"
        )
    if one.reader:
        READERS[one.reader](data, name)
