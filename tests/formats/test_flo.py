"""Flow files: what is written reads back, every kind gives the same field, and a wrong file says what is wrong."""

import io
import struct

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from raybench.errors import DataError
from raybench.formats import flo
from raybench.formats.png import read_rgb16


def field(height=7, width=5, seed=0):
    return np.random.default_rng(seed).normal(0, 30, (height, width, 2)).astype(np.float32)


def read(data, suffix=".flo"):
    return flo.read_flow(data, f"x/flow1{suffix}", suffix)


def said(data, suffix=".flo"):
    """What reading it says, and that a look at header and size says the same if it is about these."""
    with pytest.raises(DataError) as error:
        read(data, suffix)
    assert str(error.value).startswith(f"x/flow1{suffix}: ")
    return str(error.value)


def numpy_file(save, *args, **more):
    file = io.BytesIO()
    save(file, *args, **more)
    return file.getvalue()


def kitti(flow, valid=None):
    coded = np.zeros((*flow.shape[:2], 3), np.uint16)
    coded[:, :, 2] = flow[:, :, 0] * 64 + 2**15  # OpenCV writes the channels in reverse
    coded[:, :, 1] = flow[:, :, 1] * 64 + 2**15
    coded[:, :, 0] = 1 if valid is None else valid
    return cv2.imencode(".png", coded)[1].tobytes()


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(2)),
        elements=st.floats(width=32, allow_nan=False),
    )
)
def test_a_flow_that_is_written_reads_back(flow):
    assert np.array_equal(read(flo.write_flo(flow)), flow)


def test_the_bytes_are_the_published_layout():
    flow = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    assert flo.write_flo(flow) == struct.pack("<fii12f", 202021.25, 3, 2, *range(12))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".png"])
def test_other_kinds_give_the_same_field(suffix):
    flow = np.round(field() * 64) / 64
    data = {
        ".npy": numpy_file(np.save, flow.astype(np.float64)),
        ".npz": numpy_file(np.savez_compressed, flow=flow, other=flow * 0),
        ".png": kitti(flow),
    }[suffix]
    assert np.array_equal(read(data, suffix), flow)
    start = data[: flo.FLOW_FORMATS[suffix].header_bytes]
    assert flo.flow_size(start, len(data), "x", suffix) == (5, 7)


def test_an_invalid_pixel_of_kitti_is_unknown():
    valid = np.ones((7, 5), np.uint16)
    valid[2, 3] = 0
    flow = read(kitti(np.zeros((7, 5, 2)), valid), ".png")
    assert np.argwhere(flow > 1e9).tolist() == [[2, 3, 0], [2, 3, 1]]


@pytest.mark.parametrize("filters", range(5))
def test_16_bit_pixels_are_read_behind_every_filter_of_png(filters):
    pixels = np.random.default_rng(filters).integers(0, 2**16, (23, 31, 3)).astype(np.uint16)
    flags = [cv2.IMWRITE_PNG_FILTER, (8, 16, 32, 64, 128)[filters]] if hasattr(cv2, "IMWRITE_PNG_FILTER") else []
    written = np.cumsum(pixels, axis=filters % 2, dtype=np.uint16)
    data = cv2.imencode(".png", written, flags)[1].tobytes()
    assert np.array_equal(read_rgb16(data, "x"), written[:, :, ::-1])


def test_damage_within_a_16_bit_image_is_said():
    data = bytearray(kitti(field()))
    data[len(data) // 2] ^= 1
    assert "damaged image" in said(bytes(data), ".png")


def test_infinity_is_unknown_and_nan_is_an_error():
    flow = field()
    flow[1, 2, 0] = np.inf
    assert read(flo.write_flo(flow))[1, 2, 0] == np.inf
    flow[3, 4, 1] = flow[5, 0, 0] = np.nan
    assert "NaN at x=4, y=3 (2 such pixels)" in said(flo.write_flo(flow))
    assert "NaN at x=4, y=3 (2 such pixels)" in said(numpy_file(np.save, flow), ".npy")


def test_a_wrong_flo_file_says_expected_and_found():
    data = flo.write_flo(field())
    assert "expected b'PIEH'" in said(b"HIEP" + data[4:])
    assert "body has 270 bytes (expected 280); the download may be truncated" in said(data[:-10])
    assert "body has 283 bytes (expected 280); something was appended" in said(data + b"123")
    assert "header says 0x7" in said(data[:4] + struct.pack("<ii", 0, 7))
    assert "header says 5x-7" in said(data[:4] + struct.pack("<ii", 5, -7) + data[12:])
    assert "header says 100000x1" in said(data[:4] + struct.pack("<ii", 100_000, 1) + data[12:])
    assert "8 bytes; expected at least 12" in said(data[:8])
    assert "starts with b''" in said(b"")


def test_a_wrong_file_of_another_kind_says_so():
    assert "shape (7, 5)" in said(numpy_file(np.save, field()[:, :, 0]), ".npy")
    assert "size 0x7" in said(numpy_file(np.save, field(7, 0)), ".npy")
    assert "no .npy array" in said(b"nonsense", ".npy")
    assert "array of shape (1,), object" in said(numpy_file(np.save, np.array([{}]), allow_pickle=True), ".npy")
    assert "holds arrays a, b" in said(numpy_file(np.savez, a=field(), b=field()), ".npz")
    whole = numpy_file(np.save, field())
    with pytest.raises(DataError, match="truncated"):
        flo.flow_size(whole[:256], len(whole) - 4, "x", ".npy")
    assert "8-bit RGB" in said(cv2.imencode(".png", np.zeros((3, 3, 3), np.uint8))[1].tobytes(), ".png")
    good = kitti(np.zeros((40, 40, 2)))
    assert "truncated" in said(good[: len(good) // 2], ".png")
    assert "no PNG" in said(b"GIF89a", ".png")
