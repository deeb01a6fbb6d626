"""Queries are cropped as Pillow crops, and files that are cut short are read as far as Pillow reads them."""

import io
import json
from contextlib import suppress

import numpy as np
import pytest
from conftest import GOLDEN
from PIL import Image, ImageFile

from raybench.errors import DataError
from raybench.formats.limits import Limits
from raybench.sources.cropped_images import CroppedImages, cropped
from raybench.sources.image_files import ImageFiles

CROPS = json.loads((GOLDEN / "revisited/expected.json").read_text())["crops"]


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def jpeg(image):
    written = io.BytesIO()
    Image.fromarray(image).resize((200, 160)).save(written, "JPEG", quality=90)
    return written.getvalue()


@pytest.mark.parametrize("case", CROPS, ids=lambda case: str(case["bbx"]))
def test_crops_are_the_published_ones(case):
    y, x = np.indices((30, 40))
    image = np.repeat(((7 * x + 13 * y) % 256).astype(np.uint8)[:, :, None], 3, axis=2)
    found = cropped(image, np.array(case["bbx"], np.float64))
    assert (found.shape[1], found.shape[0]) == (case["width"], case["height"])
    assert int(found[:, :, 0].sum(dtype=np.int64)) == case["sum"]


def test_crops_are_pillows_inside_outside_and_across_every_edge():
    random = np.random.default_rng(1)
    image = noise(30, 40)
    for _ in range(300):
        x1, y1 = random.integers(-240, 240, 2) / 4
        box = np.array([x1, y1, x1 + random.integers(6, 400) / 4, y1 + random.integers(6, 400) / 4])
        assert np.array_equal(cropped(image, box), np.asarray(Image.fromarray(image).crop(tuple(box.tolist()))))


@pytest.fixture
def images(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(jpeg(noise(20, 20, number)))
    return ImageFiles.scan(str(tmp_path))


BOXES = np.array([[1, 2, 11, 22], [0, 0, 30, 40], [190, 150, 230, 170]], np.float64)


def test_sizes_in_headers_are_those_of_crops(images):
    found = CroppedImages.of_files(images, BOXES)
    for item in range(3):
        height, width, _ = found.decoded(item, found.read(item)).shape
        assert found.size(item, found.read(item)[:2_000]) == (width, height)
    assert CroppedImages.of_files(images).size(0, images.read(0)) == (200, 160)


def test_boxes_go_with_their_pictures_and_are_part_of_the_digest(images):
    found = CroppedImages.of_files(images, BOXES)
    some = found.taken(np.array([2, 0]))
    assert np.array_equal(some.decoded(1, some.read(1)), found.decoded(0, found.read(0)))
    digests = {CroppedImages.of_files(images, boxes).digest for boxes in (None, BOXES, BOXES + 1)}
    assert len(digests | {images.digest, some.digest, found.taken(np.array([0, 2])).digest}) == 6


def test_a_picture_with_too_many_pixels_is_said_though_its_crop_is_small(images):
    found = CroppedImages.of_files(ImageFiles(images.files, "d", Limits(pixels=1_000)), BOXES)
    assert found.size(0, images.read(0)) == (200, 160)
    with pytest.raises(DataError, match="more than 1,000"):
        found.decoded(0, images.read(0))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.999])
def test_a_jpeg_that_is_cut_short_is_read_as_pillow_reads_it_with_its_switch(images, share, monkeypatch):
    data = images.read(1)
    data = data[: int(len(data) * share)]
    pixels, is_cut = CroppedImages.of_files(images).readable(1, data)
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    assert is_cut
    assert np.array_equal(pixels, np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_progressive_jpeg_is_so_wherever_it_is_cut(mode, images, tmp_path, monkeypatch):
    file = io.BytesIO()
    Image.fromarray(noise(20, 30)).convert(mode).save(file, "JPEG", progressive=True)
    whole = file.getvalue()
    found = CroppedImages.of_files(images)
    read = {}
    for stop in range(20, len(whole) - 2):
        with suppress(DataError):
            read[stop] = found.readable(0, whole[:stop])
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    pillows = {}
    for stop in range(20, len(whole) - 2):
        with suppress(OSError, SyntaxError, IndexError):
            pillows[stop] = np.asarray(Image.open(io.BytesIO(whole[:stop])).convert("RGB"))
    assert read.keys() == pillows.keys() and len(read) > len(whole) / 2
    for stop, (pixels, is_cut) in read.items():
        assert is_cut and np.array_equal(pixels, pillows[stop]), stop


def test_whole_files_are_not_called_short_and_what_is_no_picture_stays_an_error(images):
    found = CroppedImages.of_files(images)
    assert not found.readable(0, images.read(0))[1]
    for data in (b"", b"\xff\xd8", b"\xff\xd8nothing", b"text", images.read(0)[:100]):
        with pytest.raises(DataError):
            found.readable(0, data)


def test_exif_turns_nothing(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(noise(20, 30)).save(tmp_path / "a.jpg", exif=exif)
    found = CroppedImages.of_files(ImageFiles.scan(str(tmp_path)))
    assert found.decoded(0, found.read(0), exif_rotate=True).shape == (20, 30, 3)
    assert found.size(0, found.read(0), exif_rotate=True) == (30, 20)
