"""Images to vectors: in batches of one shape, in every executor the same bytes, with every broken file named."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from image_models import weight_file
from PIL import Image
from vector_stages import stored

from raybench.descriptors.image_descriptors import resolve_images
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.errors import DataError, Problems
from raybench.extract.image_headers import Headers
from raybench.extract.images import DescribeImages, Extraction, default_shard_size, describe_images, shape_order
from raybench.formats.images import Preprocess, decode_image
from raybench.sources.image_files import ImageFiles

SIZES = [(90, 60), (60, 90), (70, 70), (91, 60), (30, 20)]  # the last becomes the shape of the first
SMALL = Preprocess(32)


def picture(number, size):
    width, height = size
    y, x = np.mgrid[:height, :width]
    return np.stack([(x * (number + 1)) % 256, (y * 3 + number * 40) % 256, (x + y) % 256], axis=2).astype(np.uint8)


def write_pictures(folder, count=23):
    folder.mkdir(exist_ok=True)
    for number in range(count):
        Image.fromarray(picture(number, SIZES[number % len(SIZES)])).save(folder / f"{number:02d}.png")
    return folder


@pytest.fixture
def pictures(tmp_path):
    """23 pictures of five sizes; `pictures(n)` for fewer."""
    return lambda count=23: write_pictures(tmp_path / "pictures", count)


@pytest.fixture
def inline(tmp_path):
    def make(name="inline"):
        return Run(str(tmp_path / name), str(tmp_path / name / "stages"), InlineExecutor(Observer()), Observer())

    return make


class Means(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.adaptive_avg_pool2d(x, 2).flatten(1)


def write_script(path):
    torch.jit.script(Means()).save(str(path))
    return f"torchscript:{path}"


@pytest.fixture
def script(tmp_path):
    return write_script(tmp_path / "means.pt")


@pytest.fixture(scope="module")
def on_devices(tmp_path_factory, local_ray):
    """Pictures and a network, their vectors from eight logical GPUs, two pictures a shard, and the receipts."""
    from raybench.engine.ray_core import RayExecutor

    base = tmp_path_factory.mktemp("devices")
    folder = scan(write_pictures(base / "pictures"))
    spec = resolve_images(write_script(base / "means.pt"), {}, SMALL)
    executor = RayExecutor(Observer(), 2, 8, True, False)
    run = Run(str(base / "run"), str(base / "run" / "stages"), executor, Observer())
    vectors, _ = describe(run, folder, spec, "all", "gpu", shard_size=2)
    executor.close()
    (path,) = (base / "run" / "receipts").glob("*-describe-images.jsonl")
    return folder, spec, vectors, [json.loads(line) for line in path.read_text().splitlines()]


def scan(folder):
    return ImageFiles.scan(str(folder))


def describe(run, folder, spec, role, device, **how):
    """The vectors of a folder's pictures, and the keys of those that were skipped."""
    found = describe_images(run, {role: folder}, Extraction(spec, device, **how))[role]
    return found.vectors, tuple(folder.keys[index] for index in found.skipped)


def rows_of(vectors):
    """Rows by place; every place at most once."""
    found = {}
    for shard in vectors.mapped.shards:
        index, rows = vectors.read(shard.index)
        for place, row in zip(index.tolist(), rows, strict=True):
            assert place not in found
            found[place] = row
    return found


def shard_bytes(vectors):
    return [stored(vectors.mapped, shard.index) for shard in vectors.mapped.shards]


def test_every_image_gets_its_own_row_at_its_place_in_name_order(pictures, inline, script):
    folder = scan(pictures())
    spec = resolve_images(script, {}, SMALL)
    vectors, skipped = describe(inline(), folder, spec, "queries", "cpu", batch_size=4, shard_size=6)
    found = rows_of(vectors)
    assert sorted(found) == list(range(23)) and len(vectors) == 23 and skipped == ()
    network = Means()
    for place in range(23):
        image = decode_image(folder.read(place), "")
        expected = network(torch.from_numpy(SMALL.apply(image)[np.newaxis]))[0]
        np.testing.assert_allclose(found[place], expected, atol=1e-6)


def test_images_of_one_resulting_shape_stand_together_and_else_in_name_order():
    sizes = np.array([SIZES[number % 5] for number in range(10)])
    spec = resolve_images("picture_descriptors:ChannelMeans", {}, SMALL)
    order, prepared_bytes = shape_order(spec, Headers(sizes, {7: "broken"}))
    # 32 x 32; 32 x 48 of two sizes; 48 x 32
    assert order.tolist() == [2, 0, 3, 4, 5, 8, 9, 1, 6]
    assert prepared_bytes == 3 * 32 * (32 + 6 * 48 + 2 * 48)


def test_batches_are_full_and_of_one_shape_even_where_a_class_does_not_say_its_shape(pictures):
    folder = scan(pictures(20))
    spec = resolve_images("picture_descriptors:Quarters", {}, SMALL)
    sizes = np.array([SIZES[number % 5] for number in range(20)])
    stage = DescribeImages(folder, shape_order(spec, Headers(sizes, {}))[0], Extraction(spec, "cpu", batch_size=3))
    stage.compute(stage.load(Shard("describe-images", 0, 0, 20)))
    seen = stage._opened.seen
    assert Counter(shape[0] for shape in seen) == {3: 5, 1: 5}  # five shapes of four images
    assert len({shape[1:] for shape in seen}) == 5


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Pictures, a network, its rows of one picture at a time, and where to store others."""
    base = tmp_path_factory.mktemp("network")
    path = weight_file(base / "weights.pt", "TV_RESNET18", 16)
    folder = scan(write_pictures(base / "pictures"))
    spec = resolve_images(f"sscd:{path}", {"backbone": "TV_RESNET18", "dims": 16}, SMALL)
    run = Run(str(base / "run"), str(base / "run" / "stages"), InlineExecutor(Observer()), Observer())
    alone, _ = describe(run, folder, spec, "all", "cpu", batch_size=1)
    return folder, spec, rows_of(alone), run


@settings(deadline=None, max_examples=6)
@given(batch_size=st.integers(2, 9), shard_size=st.integers(1, 23))
def test_a_network_gives_a_row_the_same_to_rounding_whatever_batch_it_is_in(network, batch_size, shard_size):
    folder, spec, expected, run = network
    vectors, _ = describe(run, folder, spec, "all", "cpu", batch_size=batch_size, shard_size=shard_size)
    found = rows_of(vectors)
    assert max(np.abs(expected[place] - found[place]).max() for place in expected) < 1e-6


def test_processes_with_and_without_devices_publish_the_same_bytes(on_devices, inline, tmp_path, local_ray):
    from raybench.engine.ray_core import RayExecutor

    folder, spec, device_vectors, _ = on_devices
    executor = RayExecutor(Observer(), 2, 0, False, False)
    actors = Run(str(tmp_path / "cpus"), str(tmp_path / "cpus" / "stages"), executor, Observer())
    found = [describe(run, folder, spec, "all", "cpu", shard_size=2)[0] for run in (inline(), actors)]
    executor.close()
    assert shard_bytes(found[0]) == shard_bytes(found[1]) == shard_bytes(device_vectors)
    assert found[0].digest == found[1].digest != device_vectors.digest  # a real device rounds otherwise


def test_eight_device_actors_each_publish_a_shard(on_devices):
    _, _, vectors, receipts = on_devices
    assert len(receipts) == len(vectors.mapped.shards) == 12
    assert sorted(rows_of(vectors)) == list(range(23))
    assert len({receipt["worker"]["actor"] for receipt in receipts}) == 8
    assert all(receipt["worker"]["device"].startswith("gpu") for receipt in receipts)
    assert all(receipt["worker"]["device"].endswith(": no GPU that torch sees") for receipt in receipts)
    assert {receipt["loader"]["actor"] for receipt in receipts} == {"task"}


def test_headers_are_read_once_for_all_descriptors_of_a_folder(pictures, inline, script):
    folder, run = scan(pictures()), inline()
    describe(run, folder, resolve_images(script, {}, SMALL), "all", "cpu")
    describe(run, folder, resolve_images("thumbnail", {}, SMALL), "all", "cpu")
    computed = [(record.name, record.computed > 0) for record in run.records]
    assert [known for name, known in computed if name == "image-sizes"] == [True, False]
    assert [known for name, known in computed if name == "describe-images"] == [True, True]


def test_broken_headers_are_all_listed_before_anything_is_described(pictures, inline):
    folder = pictures()
    (folder / "03.png").write_text("a note")
    (folder / "11.png").write_bytes(b"")
    run = inline()
    with pytest.raises(Problems) as raised:
        describe(run, scan(folder), resolve_images("thumbnail", {}, SMALL), "all", "cpu")
    lines = raised.value.lines()
    assert [name in line for name, line in zip(("03.png", "11.png"), lines, strict=True)] == [True, True]
    assert [record.name for record in run.records] == ["image-sizes"]


def test_a_broken_file_of_two_sets_is_said_once(pictures, inline):
    folder = pictures()
    (folder / "03.png").write_text("a note")
    sets = dict.fromkeys(("queries", "references"), scan(folder))
    with pytest.raises(Problems) as raised:
        describe_images(inline(), sets, Extraction(resolve_images("thumbnail", {}, SMALL), "cpu"))
    assert len(raised.value.lines()) == 1


def test_an_image_that_breaks_while_it_is_decoded_is_named(pictures, inline):
    folder = pictures()
    data = (folder / "05.png").read_bytes()
    (folder / "05.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"05\.png: can't be decoded"):
        describe(inline(), scan(folder), resolve_images("thumbnail", {}, SMALL), "all", "cpu")


def test_what_can_not_be_decoded_is_skipped_and_listed_if_asked_for(pictures, inline):
    folder = pictures()
    (folder / "03.png").write_text("a note")
    data = (folder / "05.png").read_bytes()
    (folder / "05.png").write_bytes(data[: len(data) // 2])
    spec = resolve_images("thumbnail", {}, SMALL)
    for shard_size in (1, 7, None):
        run = inline(f"size{shard_size}")
        vectors, skipped = describe(run, scan(folder), spec, "all", "cpu", shard_size=shard_size, skip=True)
        assert skipped == ("03.png", "05.png")
        found = rows_of(vectors)
        assert sorted(found) == [place for place in range(23) if place not in (3, 5)]
        assert len(vectors) == 23
        assert {vectors.read(shard.index)[1].shape[1] for shard in vectors.mapped.shards} == {704}


def test_a_folder_of_nothing_but_broken_images_is_an_error_even_with_skip(pictures, inline):
    folder = pictures(2)
    for path in folder.iterdir():
        path.write_text("a note")
    with pytest.raises(DataError, match="none of its 2 images"):
        describe(inline(), scan(folder), resolve_images("thumbnail", {}, SMALL), "all", "cpu", skip=True)


@pytest.mark.parametrize(
    ("kind", "shard_size", "complaint"),
    [
        ("NanForDark", 1, r"07\.png: its descriptor quarters has NaN"),
        ("NanForDark", 23, r"07\.png: its descriptor quarters has NaN"),
        ("OneRow", 23, r"gave an array of shape \(1, 3\) for \d images"),
        ("Bits", 23, "gave uint8, is compared by L2"),
        ("ByWidth", 1, "all must be the same"),
        ("ByWidth", 23, "all must be the same"),
    ],
)
def test_a_descriptor_that_breaks_its_word_is_said(pictures, inline, kind, shard_size, complaint):
    folder = pictures()
    Image.fromarray(np.zeros((60, 90, 3), np.uint8)).save(folder / "07.png")
    spec = resolve_images(f"picture_descriptors:{kind}", {}, SMALL)
    with pytest.raises(DataError, match=complaint):
        describe(inline(), scan(folder), spec, "all", "cpu", shard_size=shard_size, skip=True)


def test_a_rotation_by_exif_changes_plan_and_rows(tmp_path, inline):
    folder = tmp_path / "turned"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(picture(1, (90, 60))).save(folder / "a.jpg", exif=exif)
    Image.fromarray(picture(1, (60, 90))).save(folder / "b.jpg")
    spec = resolve_images("thumbnail", {}, SMALL)
    plain, _ = describe(inline(), scan(folder), spec, "all", "cpu")
    turned, _ = describe(inline(), scan(folder), spec, "all", "cpu", exif_rotate=True)
    assert plain.digest != turned.digest
    assert np.abs(rows_of(plain)[0] - rows_of(turned)[0]).max() > 0.01
    np.testing.assert_array_equal(rows_of(plain)[1], rows_of(turned)[1])


def test_packed_bits_come_out_as_minus_one_and_one(pictures, inline):
    pytest.importorskip("pdqhash")
    folder = scan(pictures(3))
    bits, _ = describe(inline(), folder, resolve_images("pdq", {}, SMALL), "all", "cpu")
    floats, _ = describe(inline(), folder, resolve_images("pdq-float", {}, SMALL), "all", "cpu")
    for place, row in rows_of(floats).items():
        np.testing.assert_array_equal(rows_of(bits)[place], row)


@pytest.mark.parametrize(
    ("count", "bytes_each", "size"),
    [
        (1, 10**5, 16),
        (500, 332_000, 16),
        (10_000, 30_000, 157),
        (1_000_000, 30_000, 2_048),
        (1_000_000, 332_000, 404),  # 128 MB of pictures of 288 x 384
        (100, 40_000_000, 3),
        (3, 10**9, 1),
    ],
)
def test_the_shard_size_is_by_number_and_size_of_images_alone(count, bytes_each, size):
    assert default_shard_size(count, count * bytes_each) == size


def test_vectors_of_small_shards_are_published_together_unless_a_size_is_asked_for(pictures, inline):
    folder, spec = scan(pictures()), resolve_images("thumbnail", {}, SMALL)
    together, _ = describe(inline(), folder, spec, "all", "cpu")
    apart, _ = describe(inline(), folder, spec, "all", "cpu", shard_size=16)
    assert [len(vectors.mapped.shards) for vectors in (together, apart)] == [1, 2]
    for place, row in rows_of(together).items():
        np.testing.assert_array_equal(rows_of(apart)[place], row)


def test_images_on_object_storage_give_the_same_rows(pictures, inline, s3):
    folder = pictures(5)
    spec = resolve_images("thumbnail", {}, SMALL)
    here, _ = describe(inline(), scan(folder), spec, "all", "cpu")
    there, _ = describe(inline(), scan(s3.upload(folder, f"{s3.bucket('shots')}/x")), spec, "all", "cpu")
    for place, row in rows_of(here).items():
        np.testing.assert_array_equal(rows_of(there)[place], row)
