import hashlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from raybench.errors import ConfigError, DataError
from raybench.formats import images
from raybench.formats.hbench import read_strip
from raybench.formats.images import Preprocess, decode_image, image_size
from raybench.formats.limits import Limits
from raybench.formats.tss import read_image

GOLDEN = Path(__file__).parent.parent / "golden" / "preprocess"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
CASES = [(file, mode) for file, case in EXPECTED["expected"].items() for mode in case["tensors"]]
TOLERANCE = 2e-6


def scene(width=90, height=60):
    y, x = np.mgrid[:height, :width]
    return np.stack([(3 * x + y) % 256, (x + 2 * y) % 256, (x * y) % 256], axis=2).astype(np.uint8)


def encoded(kind, picture=None, **options):
    stream = io.BytesIO()
    Image.fromarray(scene() if picture is None else picture).save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize(("file", "mode"), CASES)
def test_preprocessing_gives_the_published_tensors(file, mode):
    case = EXPECTED["expected"][file]
    made = Preprocess(EXPECTED["size"], mode).apply(decode_image((GOLDEN / "data" / file).read_bytes(), file))
    assert made.dtype == np.float32
    assert Preprocess(EXPECTED["size"], mode).shape(case["width"], case["height"]) == made.shape[1:]
    np.testing.assert_allclose(made, np.load(GOLDEN / "expected.npz")[f"{file}|{mode}"], rtol=0, atol=TOLERANCE)
    if file.endswith(".png"):  # JPEG depends on the library that decodes it
        assert hashlib.sha256(made.tobytes()).hexdigest() == case["tensors"][mode]["sha256_float32_le"]


@pytest.mark.parametrize("file", EXPECTED["expected"])
def test_the_size_is_read_from_the_header(file):
    data = (GOLDEN / "data" / file).read_bytes()
    case = EXPECTED["expected"][file]
    assert image_size(data[: max(len(data) // 2, 700)], file) == (case["width"], case["height"])


def test_the_exif_turn_is_applied_if_asked_for():
    data = (GOLDEN / "data" / "exif_turned.jpg").read_bytes()
    lying = decode_image(data, "x.jpg")
    assert (image_size(data, "x.jpg"), lying.shape) == ((60, 44), (44, 60, 3))
    standing = decode_image(data, "x.jpg", exif_rotate=True)
    assert image_size(data, "x.jpg", exif_rotate=True) == (44, 60)
    np.testing.assert_array_equal(standing, np.rot90(lying, -1))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.97])
def test_a_file_that_is_cut_short_is_an_error_that_names_it(kind, share):
    data = encoded(kind)
    with pytest.raises(DataError, match=r"^dir/cut\.img: "):
        decode_image(data[: int(len(data) * share)], "dir/cut.img")


def test_a_progressive_jpeg_without_its_last_scan_is_an_error():
    data = encoded("JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    with pytest.raises(DataError, match="cut short or damaged"):
        decode_image(data[:last], "x.jpg")


@pytest.mark.parametrize("data", [b"", b"# a note\n", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_image_is_an_error_that_names_it(data):
    for look in (decode_image, image_size):
        with pytest.raises(DataError, match=r"^note\.jpg: "):
            look(data, "note.jpg")


def test_a_large_but_legal_image_is_decoded_without_a_warning(recwarn):
    large = encoded("PNG", np.zeros((9_500, 9_500), np.uint8))  # beyond where Pillow warns
    assert image_size(large[:1000], "map.png") == (9_500, 9_500)
    before = Image.MAX_IMAGE_PIXELS
    assert decode_image(large, "map.png").shape == (9_500, 9_500, 3)
    assert not recwarn.list
    assert Image.MAX_IMAGE_PIXELS == before is not None


def test_pillows_limit_holds_for_no_reader_of_ours_and_stays_for_others(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    strip = encoded("PNG", np.zeros((90, 30), np.uint8))
    assert read_strip(strip, "ref.png").shape == (3, 30, 30)
    assert read_image(strip, "image1.png").shape == (90, 30, 3)
    with ThreadPoolExecutor(8) as pool:
        assert {image.shape for image in pool.map(lambda _: decode_image(strip, "x.png"), range(200))} == {(90, 30, 3)}
    assert Image.MAX_IMAGE_PIXELS == 100


def test_more_pixels_than_the_limit_are_refused_by_the_header_with_the_option_that_raises_it():
    with pytest.raises(DataError, match=r"bomb\.png: 90 x 60 px, more than 5,000 .*--max-image-pixels"):
        decode_image(encoded("PNG"), "bomb.png", limits=Limits(pixels=5_000))
    assert decode_image(encoded("PNG"), "bomb.png", limits=Limits(pixels=5_400)).shape == (60, 90, 3)


def test_a_palette_with_transparent_entries_is_looked_up_without_a_warning(recwarn):
    stream = io.BytesIO()
    Image.fromarray(scene()).quantize(16).save(stream, "PNG", transparency=bytes([0, 128, 255]))
    assert decode_image(stream.getvalue(), "p.png").shape == (60, 90, 3)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("mode", "width", "height", "shape"),
    [
        ("short_edge", 70, 53, (40, 52)),  # 40 * 70 / 53 = 52.8, cut
        ("short_edge", 53, 70, (52, 40)),
        ("square", 70, 53, (40, 40)),
        ("long_edge", 70, 53, (30, 40)),  # 40 / 70 * 53 = 30.3
        ("long_edge", 53, 71, (40, 30)),  # 29.9, rounded
        ("long_edge", 1000, 2, (1, 40)),
        ("short_edge", 8, 8, (40, 40)),
    ],
)
def test_shapes_by_hand(mode, width, height, shape):
    assert Preprocess(40, mode).shape(width, height) == shape


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(images.MODES), st.integers(1, 50))
def test_the_shape_is_that_of_what_comes_out(width, height, mode, size):
    preprocess = Preprocess(size, mode)
    assert preprocess.apply(scene(width, height)).shape == (3, *preprocess.shape(width, height))


def test_a_stack_is_normalised_as_each_of_its_pictures():
    stack = np.stack([scene(), scene()[::-1]])
    np.testing.assert_array_equal(Preprocess().normalised(stack)[1], Preprocess().normalised(stack[1]))


def test_an_unknown_mode_and_size_zero_are_said():
    with pytest.raises(ConfigError, match="expected one of short_edge, square, long_edge"):
        Preprocess(40, "shortest")
    with pytest.raises(ConfigError, match="--size 0"):
        Preprocess(0)
