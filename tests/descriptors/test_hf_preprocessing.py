import numpy as np
import pytest
import transformers
from vision_models import write_json

from raybench.descriptors.hf_preprocessing import preprocess_of_model
from raybench.errors import DataError

ODD, TALL, SMALL = (61, 90), (133, 47), (9, 14)  # height, width

CASES = {  # files as the hub has them, new and old, with small edges
    "ViT": {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 24}},
    "ViT of an old file": {"feature_extractor_type": "ViTFeatureExtractor", "size": 32, "resample": 2},
    "ViT of defaults": {"image_processor_type": "ViTImageProcessorFast"},
    "DeiT": {
        "image_processor_type": "DeiTImageProcessor",
        "size": {"height": 41, "width": 41},
        "crop_size": {"height": 32, "width": 32},
    },
    "BEiT": {"image_processor_type": "BeitImageProcessor", "size": 33, "do_center_crop": False, "crop_size": 24},
    "SigLIP": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 30, "width": 30}},
    "CLIP": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 37}, "crop_size": 30},
    "CLIP of an old file": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 36, "crop_size": 36},
    "CLIP with borders": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 20}, "crop_size": 27},
    "DINOv2": {
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 43},
        "crop_size": {"height": 32, "width": 28},
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    },
    "ConvNeXt": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 45}, "crop_pct": 0.8},
    "ConvNeXt whole": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}},
    "BLIP": {"image_processor_type": "BlipImageProcessor", "size": {"height": 34, "width": 34}},
    "BLIP of defaults": {"image_processor_type": "BlipImageProcessor"},
    "PVT of defaults": {"image_processor_type": "PvtImageProcessor"},
    "Chinese CLIP of defaults": {"image_processor_type": "ChineseCLIPImageProcessor"},
    "MobileNet V1 of defaults": {"image_processor_type": "MobileNetV1ImageProcessor"},
    "MobileNet V2": {
        "image_processor_type": "MobileNetV2ImageProcessor",
        "size": {"shortest_edge": 40},
        "crop_size": {"height": 32, "width": 32},
        "resample": 2,
    },
    "MobileNet V2 of an old file": {
        "feature_extractor_type": "MobileNetV2FeatureExtractor",
        "size": 40,
        "crop_size": 32,
    },
    "no resizing": {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": False,
        "crop_size": {"height": 21, "width": 22},
    },
    "steps of null": {  # are left out, by transformers
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 25},
        "do_center_crop": None,
        "do_normalize": None,
        "crop_size": None,
    },
    "no resizing by null": {"image_processor_type": "ViTImageProcessor", "do_resize": None, "do_rescale": None},
    "other levels": {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 20, "width": 20},
        "rescale_factor": 1 / 127.5,
        "do_normalize": False,
        "resample": 1,
    },
    "levels as they are": {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 20, "width": 20},
        "do_rescale": False,
        "image_mean": [123.0, 117.0, 104.0],
        "image_std": [58.0, 57.0, 57.5],
    },
}


def steps_of(said, folder):
    write_json(folder / "preprocessor_config.json", said)
    return preprocess_of_model({"preprocessor_config.json": str(folder / "preprocessor_config.json")}, "hf:m")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [ODD, TALL, SMALL])
def test_pictures_are_prepared_as_by_the_image_processor_on_pillow(name, shape, tmp_path):
    said = CASES[name]
    steps = steps_of(said, tmp_path)
    write_json(tmp_path / "config.json", {"model_type": "vit"})
    theirs = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
    expected = np.asarray(theirs(images=image, input_data_format="channels_last")["pixel_values"][0])
    found = steps.resized(image)
    assert found.dtype == np.uint8 and found.shape[:2] == steps.shape(shape[1], shape[0])
    mean, std = np.array(steps.mean, np.float32), np.array(steps.std, np.float32)
    values = (found.astype(np.float32) / np.float32(steps.divisor) - mean) / std
    np.testing.assert_allclose(np.moveaxis(values, -1, 0), expected, atol=2e-6, rtol=2e-6)  # float32's last bits


def test_a_processor_within_that_of_texts_and_images_is_read(tmp_path):
    said = CASES["CLIP"]
    path = tmp_path / "processor_config.json"
    write_json(path, {"processor_class": "CLIPProcessor", "image_processor": said})
    assert preprocess_of_model({path.name: str(path)}, "hf:m") == steps_of(said, tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_processor_type": "SamImageProcessor"}, r"'SamImageProcessor', expected one of ViTImageProcessor, .*"),
        ({"image_processor_type": None}, "no `image_processor_type`, expected one of"),
        ({"size": {"longest_edge": 3}}, r"`size` is {'longest_edge': 3}, expected shortest_edge alone"),
        ({"size": {"height": 3, "width": 0}}, "in whole px up to 16,384"),
        ({"size": {"height": 10**9, "width": 10**9}}, "in whole px up to 16,384"),
        ({"size": "224"}, "`size` is 224, expected"),
        ({"size": True}, "`size` is True"),
        ({"do_resize": 1}, "`do_resize` is 1, expected true or false"),
        ({"resample": 9}, "`resample` is 9, expected a number of Pillow's filters"),
        ({"resample": [2]}, "`resample` is"),
        ({"image_mean": [0.5, 0.5]}, "`image_mean` is .*, expected three numbers"),
        ({"image_mean": [0.5, 0.5, "x"]}, "expected three numbers"),
        ({"image_std": [0.5, 0.5, 0]}, "`image_std` is .*, must be 1e-06 or more"),
        ({"rescale_factor": 0}, "`rescale_factor` is 0, expected a number from 1e-06 to 1,000,000"),
        ({"do_pad": True}, "asks for `do_pad`, which is not known here"),
        ({"image_processor": []}, "`image_processor` is a list"),
    ],
)
def test_what_is_not_known_or_broken_is_told_with_the_way_out(changes, words, tmp_path):
    with pytest.raises(DataError, match=words) as caught:
        steps_of({**CASES["ViT"], **changes}, tmp_path)
    assert "preprocessor_config.json: " in str(caught.value) and "--preprocess published" in str(caught.value)


def test_a_convnext_needs_a_short_edge_and_a_share_and_no_second_cut(tmp_path):
    with pytest.raises(DataError, match="asks for `do_center_crop`, which is not known here"):
        steps_of({**CASES["ConvNeXt"], "do_center_crop": True}, tmp_path)
    with pytest.raises(DataError, match="needs `shortest_edge`"):
        steps_of({**CASES["ConvNeXt"], "size": {"height": 3, "width": 3}}, tmp_path)
    with pytest.raises(DataError, match=r"`crop_pct` is 0\.001, expected a share"):
        steps_of({**CASES["ConvNeXt"], "crop_pct": 0.001}, tmp_path)
