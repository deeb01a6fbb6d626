import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from image_models import onnx_file, weight_file
from PIL import Image

from raybench.descriptors import IMAGE_DESCRIPTORS
from raybench.descriptors.image_descriptors import resolve_images
from raybench.descriptors.precision import EXACT, Precision
from raybench.errors import ConfigError, DataError
from raybench.formats.images import Preprocess, channel_values

SMALL = Preprocess(40)


def pictures(count=3, height=60, width=90):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)


def described(descriptor, images):
    return descriptor.describe(np.stack([descriptor.prepare(image) for image in images]))


class Means(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=[2, 3])


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "means.pt"
    torch.jit.script(Means()).save(str(path))
    return path


@pytest.mark.parametrize("name", IMAGE_DESCRIPTORS)
def test_a_built_in_one_is_one_row_a_picture_whatever_stands_beside_it(name):
    spec = pickle.loads(pickle.dumps(resolve_images(name, {}, SMALL)))
    descriptor = spec.open()
    rows = described(descriptor, pictures(5))
    assert len(rows) == 5 and len(np.unique(rows, axis=0)) == 5
    assert (rows.dtype == np.uint8) == (spec.distance == "hamming")
    np.testing.assert_array_equal(described(descriptor, pictures(5)[3:4]), rows[3:4])
    assert descriptor.shape(90, 60) == descriptor.shape(7, 7)
    assert not spec.uses_gpu


@pytest.mark.parametrize("name", IMAGE_DESCRIPTORS)
def test_a_built_in_one_has_the_same_digest_for_every_preprocessing(name):
    assert resolve_images(name, {}, SMALL).digest == resolve_images(name, {}, Preprocess(50)).digest


def test_pdq_is_the_packages_hash_and_its_floats_are_its_bits():
    pdqhash = pytest.importorskip("pdqhash")
    image = pictures()[0]
    bits, _ = pdqhash.compute(image)
    packed = described(resolve_images("pdq", {}, SMALL).open(), [image])
    assert packed.shape == (1, 32)
    np.testing.assert_array_equal(np.unpackbits(packed[0]), bits)
    floats = described(resolve_images("pdq-float", {}, SMALL).open(), [image])
    np.testing.assert_array_equal(floats[0], np.where(bits, 1, -1))


def test_a_thumbnail_is_near_for_a_brighter_smaller_copy_and_far_for_another():
    y, x = np.mgrid[:120, :160]
    one = np.stack([x, y, (x + y) // 2], axis=2).astype(np.uint8)
    copy, other = one[::2, ::2] // 2 + 60, one[::-1, ::-1]
    rows = described(resolve_images("thumbnail", {}, SMALL).open(), [one, copy, other])
    assert np.linalg.norm(rows[0] - rows[1]) < 0.2 < 1 < np.linalg.norm(rows[0] - rows[2])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_a_thumbnail_of_a_plain_picture_is_zeros():
    assert not described(resolve_images("thumbnail", {}, SMALL).open(), [np.full((9, 9, 3), 77, np.uint8)]).any()


def test_a_torchscript_file_is_fed_with_the_published_preprocessing(script):
    descriptor = resolve_images(f"torchscript:{script}", {}, SMALL).open()
    images = pictures()
    expected = np.stack([SMALL.apply(image).mean(axis=(1, 2)) for image in images])
    np.testing.assert_allclose(described(descriptor, images), expected, atol=1e-5)
    assert descriptor.shape(90, 60) == (40, 60)


def test_the_device_makes_the_same_input_bit_for_bit():
    from raybench.descriptors.image_networks import normalisation, normalised_on_device

    every = np.stack(np.broadcast_arrays(*[np.arange(256, dtype=np.uint8)] * 3), axis=1)[np.newaxis]
    ours = normalised_on_device(torch.from_numpy(every[np.newaxis]), *normalisation("cpu", SMALL)).numpy()
    np.testing.assert_array_equal(ours[0], SMALL.normalised(every))


def test_batches_are_described_one_ahead_and_in_order(script):
    descriptor = resolve_images(f"torchscript:{script}", {}, SMALL).open()
    stack = np.stack([descriptor.prepare(image) for image in pictures(6)])
    parts = list(descriptor.describe_each(iter([stack[:1], stack[1:4], stack[4:]])))
    assert [len(part) for part in parts] == [1, 3, 2]
    np.testing.assert_allclose(np.concatenate(parts), descriptor.describe(stack), atol=1e-6)


def test_size_mode_precision_and_file_are_in_the_digest(script, tmp_path):
    specs = [
        resolve_images(f"torchscript:{script}", {}, SMALL),
        resolve_images(f"torchscript:{script}", {}, Preprocess(41)),
        resolve_images(f"torchscript:{script}", {}, Preprocess(40, "square")),
        resolve_images(f"torchscript:{script}", {}, SMALL, Precision("float16")),
        resolve_images(f"torchscript:{script}", {}, SMALL, Precision(tf32=True)),
    ]
    assert len({spec.digest for spec in specs}) == 5
    copy = tmp_path / "elsewhere.pt"
    copy.write_bytes(script.read_bytes())
    assert resolve_images(f"torchscript:{copy}", {}, SMALL).digest == specs[0].digest


def test_a_class_without_prepare_is_fed_with_the_published_preprocessing():
    spec = resolve_images("picture_descriptors:ChannelMeans", {}, SMALL)
    image = pictures()[0]
    np.testing.assert_array_equal(described(spec.open(), [image])[0], SMALL.apply(image).mean(axis=(1, 2)))
    assert spec.digest != resolve_images("picture_descriptors:ChannelMeans", {}, Preprocess(41)).digest
    assert spec.name == "ChannelMeans"


def test_a_class_with_its_own_prepare_gets_the_picture_and_its_arguments():
    spec = resolve_images("picture_descriptors:Quarters", {"scale": 2.0}, SMALL)
    image = pictures()[0]
    assert described(spec.open(), [image])[0, 1] == 2.0 * int(image[::2, ::2].max())
    assert spec.preprocess is None
    assert spec.digest != resolve_images("picture_descriptors:Quarters", {"scale": 3.0}, SMALL).digest


@pytest.mark.parametrize(
    ("spec", "arguments", "precision", "complaint"),
    [
        ("pdk", {}, EXACT, r"unknown \(did you mean pdq\?\).*torchscript:URI, sscd:URI, onnx:URI"),
        ("HF:vits", {}, EXACT, r"unknown \(did you mean hf:vits\?\); give one of"),
        ("facebook/dinov2-small", {}, EXACT, r"unknown \(did you mean hf:facebook/dinov2-small\?\); give one of"),
        ("https://huggingface.co/a/b/tree/main", {}, EXACT, r"unknown \(did you mean hf:a/b\?\); give one of"),
        ("picture_descriptors:ByCosine", {}, EXACT, "its distance is 'cosine', .* give --codecs L2norm,Flat"),
        ("thumbnail", {"size": 3}, EXACT, "takes no arguments"),
        ("thumbnail", {}, Precision("float16"), "--dtype float16: goes with"),
        ("thumbnail", {}, Precision(tf32=True, compile=True), "--tf32, --compile: goes with"),
        ("picture_descriptors:Quarters", {}, Precision(tf32=True), "--tf32: goes with"),
        ("picture_descriptors:NoDescribe", {}, EXACT, r"no method describe\(\)"),
        ("picture_descriptors:Quarters", {"sise": 3}, EXACT, "sise"),
        ("nowhere:Class", {}, EXACT, "nowhere"),
        ("torchscript:{script}", {"size": 3}, EXACT, "size is no argument of the model"),
        ("torchscript:{script}", {"compile": True}, EXACT, "compile is no argument of the model"),
        ("torchscript:{script}", {"backbone": "CV_RESNET50"}, EXACT, "backbone"),
        ("torchscript:{script}", {}, Precision("int8"), "--dtype int8"),
        ("torchscript:{script}", {}, Precision("float16", tf32=True), "--tf32: .* leave it out with --dtype float16"),
        (
            "torchscript:{script}",
            {},
            Precision(compile=True),
            "--compile: goes with sscd:URI, hf:, .*; a TorchScript file runs",
        ),
        ("onnx:{script}", {}, Precision(tf32=True), "--tf32: an ONNX file has an arithmetic of its own"),
    ],
)
def test_a_wrong_spec_is_said(spec, arguments, precision, complaint, script):
    with pytest.raises(ConfigError, match=complaint):
        resolve_images(spec.format(script=script), arguments, SMALL, precision)


@pytest.mark.parametrize("spec", ["vits", "./vits/"])
def test_a_folder_with_a_model_is_told_from_a_name(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vits").mkdir()
    with pytest.raises(ConfigError, match="unknown; give one of"):
        resolve_images(spec, {}, SMALL)
    (tmp_path / "vits/config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"is a folder with a model \(did you mean hf:vits\?\); give one of"):
        resolve_images(spec, {}, SMALL)


def test_a_missing_or_wrong_model_file_is_found_at_once(tmp_path):
    weights = weight_file(tmp_path / "w.pt", "TV_RESNET18", 8)
    with pytest.raises(DataError, match=r"none\.pt: does not exist"):
        resolve_images(f"sscd:{tmp_path / 'none.pt'}", {}, SMALL)
    with pytest.raises(DataError, match="can't be loaded as TorchScript"):
        resolve_images(f"torchscript:{weights}", {}, SMALL)
    with pytest.raises(DataError, match="holds weights of TV_RESNET18"):
        resolve_images(f"sscd:{weights}", {"backbone": "CV_RESNET50", "dims": 8}, SMALL)
    with pytest.raises(DataError, match="is a folder"):
        resolve_images(f"onnx:{tmp_path}", {}, SMALL)
    with pytest.raises(DataError, match="can't be loaded as ONNX"):
        resolve_images(f"onnx:{weights}", {}, SMALL)


@pytest.mark.parametrize("shape", [("n", 3, "h", "w"), (1, 3, 40, 40), (4, 3, "h", "w")])
def test_an_onnx_file_gives_its_rows_whatever_batch_it_was_made_for(shape, tmp_path):
    preprocess = Preprocess(40, "square")
    path = onnx_file(tmp_path / "means.onnx", shape)
    descriptor = resolve_images(f"onnx:{path}", {}, preprocess).open()
    images = pictures(6)
    expected = np.stack([preprocess.apply(image).mean(axis=(1, 2)) for image in images])
    np.testing.assert_allclose(described(descriptor, images), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        ({"inputs": 2}, "expected one input"),
        ({"shape": (1, 1, 40, 40)}, "expected one input"),
        ({"shape": (1, 3, 40)}, "expected one input"),
        ({"kind": "FLOAT16"}, "expected one input"),
        ({"shape": (1, 3, 32, 32)}, "32 x 32 px only, not those of 40 by short edge; give --size 32"),
    ],
)
def test_an_onnx_file_with_another_input_is_found_at_once(made, complaint, tmp_path):
    path = onnx_file(tmp_path / "other.onnx", **made)
    with pytest.raises(DataError, match=complaint):
        resolve_images(f"onnx:{path}", {}, SMALL)


def test_an_onnx_output_that_is_no_row_a_picture_is_said(tmp_path):
    descriptor = resolve_images(f"onnx:{onnx_file(tmp_path / 'm.onnx', flatten=False)}", {}, SMALL).open()
    with pytest.raises(DataError, match=r"expected \(3, dim\) .*found \(3, 3, 1, 1\); flatten"):
        described(descriptor, pictures())


def test_mean_deviation_and_filter_may_be_others_and_are_in_the_digest(script):
    own = Preprocess(40, mean=(0.5, 0.4, 0.3), std=(0.25, 0.5, 1.0), interpolation="bicubic")
    images = pictures()
    by_pillow = [np.asarray(Image.fromarray(image).resize((60, 40), Image.Resampling.BICUBIC)) for image in images]
    mean, std = np.array(own.mean, np.float32), np.array(own.std, np.float32)
    expected = np.stack([((one.astype(np.float32) / 255 - mean) / std).mean(axis=(0, 1)) for one in by_pillow])
    for spec in (f"torchscript:{script}", "picture_descriptors:ChannelMeans"):
        np.testing.assert_allclose(described(resolve_images(spec, {}, own).open(), images), expected, atol=1e-5)
        specs = [SMALL, own, replace(own, std=SMALL.std), replace(own, mean=SMALL.mean), replace(own, size=41)]
        assert len({resolve_images(spec, {}, one).digest for one in specs}) == 5


def test_the_published_preprocessing_has_the_digest_that_stores_know_it_by(script):
    assert SMALL.facts == (40, "short_edge")
    spelt_out = Preprocess(40, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), interpolation="bilinear")
    name = f"torchscript:{script}"
    assert resolve_images(name, {}, spelt_out).digest == resolve_images(name, {}, SMALL).digest


@pytest.mark.parametrize("spec", ["thumbnail", "picture_descriptors:Quarters"])
def test_a_descriptor_that_prepares_images_itself_takes_no_mean_or_filter(spec):
    with pytest.raises(ConfigError, match=rf"--mean, --interpolation: for a model file, .*; {spec} prepares"):
        resolve_images(spec, {}, Preprocess(40, mean=(0.5,) * 3, interpolation="nearest"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.5,0.4", "expected one number, or three"),
        ("x", "expected one number, or three"),
        ("nan", "expected one number"),
        ("123.675,116.28,103.53", "levels from 0 to 1, not to 255; divided by 255 it is 0.485,0.456,0.406"),
    ],
)
def test_a_mean_that_can_not_be_is_refused(text, words):
    with pytest.raises(ConfigError, match=f"--mean {text}: .*{words}"):
        channel_values("--mean", text)
    with pytest.raises(ConfigError, match=r"--std 0\.0,1,1: must be above 0"):
        Preprocess(40, std=(0.0, 1, 1))


def test_an_onnx_file_that_fails_on_a_batch_is_bad_input(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 3, "h", "w"))
    shape = helper.make_tensor("shape", TensorProto.INT64, (2,), (-1, 7))
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["rows"])]
    output = helper.make_tensor_value_info("rows", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "sevens", [given], [output], initializer=[shape])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "x.onnx")
    descriptor = resolve_images(f"onnx:{tmp_path}/x.onnx", {}, SMALL).open()
    with pytest.raises(DataError, match=r"fails on a batch of RGB images, \(1, 3, 40, 60\) \(.*Reshape"):
        described(descriptor, pictures(1))
