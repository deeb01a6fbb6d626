"""Dense flow as bytes: Middlebury `.flo`, and on reading also KITTI's 16-bit PNG and numpy's `.npy`, `.npz`.

A flow is float32 (height, width, 2): how far each pixel moves to the right and down, in pixels. A pixel with a part
beyond 1e9 is unknown (Middlebury's rule); here it is UNKNOWN_PX in both parts wherever a format marks it otherwise.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError
from raybench.formats import png
from raybench.formats.limits import USUAL, Limits
from raybench.formats.npy import NpyHeader, check_body, member_header, open_npz, read_member, read_npy, read_npy_header

FlowField = NDArray[np.float32]  # (height, width, 2)

FLO_MAGIC = b"PIEH"  # the float32 202021.25
FLO_HEADER_BYTES = 12
MOST_SIDE_PX = 99_999  # more is a broken header, as in the published reader
UNKNOWN_PX = np.float32(1e10)
NPY_HEADER_BYTES = 256  # numpy pads its header to a multiple of 64; ours fits easily
KITTI_ZERO, KITTI_SCALE = 2**15, 64.0


def read_flow(data: bytes, name: str, suffix: str, limits: Limits = USUAL) -> FlowField:
    """The flow in a file of this kind; NaN is an error, infinity is unknown."""
    flow = FLOW_FORMATS[suffix].read(data, name, limits)
    if np.isnan(flow.min(initial=0)):  # NaN wins in min; a whole mask is made only if there is one
        bad = np.argwhere(np.isnan(flow).any(axis=2))
        raise DataError(
            f"{name}: NaN at x={bad[0][1]}, y={bad[0][0]} ({len(bad):,} such pixels); "
            "mark unknown flow by values beyond 1e9"
        )
    return flow


def flow_size(start: bytes, size_bytes: int, name: str, suffix: str, limits: Limits = USUAL) -> tuple[int, int]:
    """Width and height, from a file's first `header_bytes` and its size; a wrong size is an error."""
    return FLOW_FORMATS[suffix].size(start, size_bytes, name, limits)


def write_flo(flow: FlowField) -> bytes:
    """The bytes of a `.flo` file."""
    height, width = flow.shape[:2]
    return FLO_MAGIC + struct.pack("<ii", width, height) + np.ascontiguousarray(flow, "<f4").tobytes()


def _read_flo(data: bytes, name: str, limits: Limits) -> FlowField:
    width, height = _flo_size(data[:FLO_HEADER_BYTES], len(data), name, limits)
    return np.frombuffer(data, "<f4", offset=FLO_HEADER_BYTES).reshape(height, width, 2)


def _flo_size(start: bytes, size_bytes: int, name: str, limits: Limits) -> tuple[int, int]:
    if start[:4] != FLO_MAGIC:
        raise DataError(f"{name}: starts with {start[:4]!r}; expected {FLO_MAGIC!r}, is this a .flo file?")
    if len(start) < FLO_HEADER_BYTES:
        raise DataError(f"{name}: {size_bytes} bytes; expected at least {FLO_HEADER_BYTES}, the header")
    width, height = struct.unpack("<ii", start[4:FLO_HEADER_BYTES])
    if not (0 < width <= MOST_SIDE_PX and 0 < height <= MOST_SIDE_PX):
        raise DataError(f"{name}: header says {width}x{height}; expected 1 to {MOST_SIDE_PX:,} pixels a side")
    body, expected = size_bytes - FLO_HEADER_BYTES, 8 * width * height
    if body != expected:
        likely = "the download may be truncated" if body < expected else "something was appended"
        raise DataError(
            f"{name}: header says {width}x{height}, body has {body:,} bytes (expected {expected:,}); {likely}"
        )
    limits.check_pixels(width, height, name)
    return width, height


def _read_kitti(data: bytes, name: str, limits: Limits) -> FlowField:
    _kitti_size(data[: png.HEADER_BYTES], len(data), name, limits)
    pixels = png.read_rgb16(data, name).astype(np.float32)
    flow = (pixels[:, :, :2] - np.float32(KITTI_ZERO)) / np.float32(KITTI_SCALE)
    flow[pixels[:, :, 2] == 0] = UNKNOWN_PX
    return flow


def _kitti_size(start: bytes, _: int, name: str, limits: Limits) -> tuple[int, int]:
    header = png.read_header(start, name)
    if (header.bits, header.kind) != (16, "RGB"):
        raise DataError(f"{name}: {header.bits}-bit {header.kind}; flow as PNG is 16-bit RGB (u, v, valid), as KITTI's")
    limits.check_pixels(header.width, header.height, name)
    return header.width, header.height


def _read_npy(data: bytes, name: str, limits: Limits) -> FlowField:
    _npy_size(data[:NPY_HEADER_BYTES], len(data), name, limits)
    return _as_flow(read_npy(data, name))


def _npy_size(start: bytes, size_bytes: int, name: str, limits: Limits) -> tuple[int, int]:
    header = read_npy_header(io.BytesIO(start), name)
    check_body(header, size_bytes, name)
    return _checked_shape(header, name, limits)


def _read_npz(data: bytes, name: str, limits: Limits) -> FlowField:
    archive, member, header = _only_member(data, name)
    _checked_shape(header, name, limits)
    return _as_flow(read_member(archive, member, name))


def _npz_size(start: bytes, _: int, name: str, limits: Limits) -> tuple[int, int]:
    return _checked_shape(_only_member(start, name)[2], name, limits)  # sizes are anywhere: the start is the whole file


def _only_member(data: bytes, name: str) -> tuple[zipfile.ZipFile, str, NpyHeader]:
    archive, members = open_npz(io.BytesIO(data), name)
    key = "flow" if "flow" in members else next(iter(members)) if len(members) == 1 else None
    if key is None:
        raise DataError(f"{name}: holds arrays {', '.join(members) or 'none'}; expected one, or one called flow")
    return archive, members[key], member_header(archive, members[key], name)


def _as_flow(array: NDArray[np.generic]) -> FlowField:
    flow: FlowField = np.clip(array, -UNKNOWN_PX, UNKNOWN_PX).astype(np.float32)  # beyond float32 is unknown, too
    return flow


def _checked_shape(header: NpyHeader, name: str, limits: Limits) -> tuple[int, int]:
    """Width and height of a flow in an array."""
    shape, dtype = header.shape, header.dtype
    if len(shape) != 3 or shape[2] != 2 or dtype.kind not in "fiu":
        raise DataError(f"{name}: array of shape {shape}, {dtype}; expected numbers (height, width, 2)")
    if not all(0 < side <= MOST_SIDE_PX for side in shape[:2]):
        raise DataError(f"{name}: size {shape[1]}x{shape[0]}; expected 1 to {MOST_SIDE_PX:,} pixels a side")
    limits.check_pixels(shape[1], shape[0], name)
    return int(shape[1]), int(shape[0])


@dataclass(frozen=True)
class FlowFormat:
    """How files with one suffix are read, how their size is seen, and how many first bytes that takes (None: all)."""

    read: Callable[[bytes, str, Limits], FlowField]
    size: Callable[[bytes, int, str, Limits], tuple[int, int]]
    header_bytes: int | None


FLOW_FORMATS = {
    ".flo": FlowFormat(_read_flo, _flo_size, FLO_HEADER_BYTES),
    ".png": FlowFormat(_read_kitti, _kitti_size, png.HEADER_BYTES),
    ".npy": FlowFormat(_read_npy, _npy_size, NPY_HEADER_BYTES),
    ".npz": FlowFormat(_read_npz, _npz_size, None),
}
