"""Masks, pair.txt, flip_gt.txt and scores.csv of the TSS kit."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from raybench.errors import DataError
from raybench.formats import tss


def encoded(image, kind="PNG"):
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def grey(values):
    return Image.fromarray(np.array(values, np.uint8))


def test_a_grey_mask_is_read_as_it_is():
    assert tss.read_mask(encoded(grey([[0, 1, 128, 255]])), "x").tolist() == [[0, 1, 128, 255]]


def test_a_palette_is_looked_up():
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8), mode="P")
    image.putpalette([0, 0, 0, 255, 255, 255, 128, 0, 0])
    assert tss.read_mask(encoded(image), "x").tolist() == [[0, 255, 38]]


@pytest.mark.parametrize("colours", [3, 16, 256])
def test_palettes_become_the_grey_of_opencv(colours):
    rng = np.random.default_rng(colours)
    image = Image.fromarray(rng.integers(0, colours, (40, 50)).astype(np.uint8), mode="P")
    image.putpalette(rng.integers(0, 256, 3 * colours).tolist())
    data = encoded(image)
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert np.array_equal(tss.read_mask(data, "x"), expected)


def test_a_mask_of_one_bit_is_black_and_white():
    assert tss.read_mask(encoded(grey([[0, 255, 0]]).convert("1")), "x").tolist() == [[0, 255, 0]]


@pytest.mark.parametrize(
    ("mode", "words"),
    [("RGB", "8-bit RGB"), ("RGBA", "8-bit RGBA"), ("LA", "grey with alpha"), ("I;16", "16-bit grey")],
)
def test_a_mask_of_another_kind_is_refused(mode, words):
    with pytest.raises(DataError, match=f"m.png: .*{words}.*one channel"):
        tss.read_mask(encoded(grey([[0, 255]]).convert("I" if mode == "I;16" else mode).convert(mode)), "m.png")


def test_a_mask_that_is_cut_short_or_no_image_is_refused():
    data = encoded(Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 50)).astype(np.uint8)))
    with pytest.raises(DataError, match=r"m\.png: damaged image"):
        tss.read_mask(data[:-200], "m.png")
    with pytest.raises(DataError, match=r"m\.png: no PNG"):
        tss.read_mask(encoded(grey([[0]]), "BMP"), "m.png")


def test_the_names_in_pair_txt():
    assert tss.read_pair(b"Image1,Image2\r\na.jpg,b.jpg\r\n", "x") == ("a.jpg", "b.jpg")
    assert tss.read_pair(b'Image1,Image2\n"a,1.jpg",b.jpg', "x") == ("a,1.jpg", "b.jpg")
    for text in (b"", b"Image1,Image2\n", b"Image1,Image2\na.jpg\n"):
        with pytest.raises(DataError, match=r"pair\.txt: expected"):
            tss.read_pair(text, "pair.txt")


def test_the_flag_in_flip_gt_txt():
    assert [tss.read_flip(text, "x") for text in (b"0", b"1\n", b" 1 ")] == [0, 1, 1]
    for text in (b"", b"2", b"yes"):
        with pytest.raises(DataError, match=r"flip_gt\.txt: expected 0 or 1"):
            tss.read_flip(text, "flip_gt.txt")


def test_scores_are_exact_or_with_the_decimals_of_the_tool():
    row = ("p_1to2", "a", "b", 1 / 3, 0, *[0.5] * 49, None)
    exact, rounded = (tss.write_scores([row], decimals).decode().splitlines() for decimals in (None, 6))
    assert exact[0] == rounded[0] == "Row,Src,Ref,SegIUR,Flip," + ",".join(f"T{t}" for t in range(1, 51))
    assert exact[1].startswith("p_1to2,a,b,0.3333333333333333,0,0.5,") and exact[1].endswith(",0.5,")
    assert rounded[1].startswith("p_1to2,a,b,0.333333,0,0.500000,")
