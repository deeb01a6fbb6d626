from importlib.metadata import PackageNotFoundError, version

import huggingface_hub
import numpy as np
import pytest
import torch
from named_libraries import broken_library, library_or_skip
from PIL import Image
from safetensors.torch import save_file

from raybench.descriptors.image_descriptors import resolve_by_name
from raybench.errors import ConfigError, DataError

RESNET, VIT = "resnet10t.c3_in1k", "vit_tiny_patch16_224.augreg_in21k_ft_in1k"


def pictures(count=2, height=301, width=455):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)


def rows_of(name, weights, **arguments):
    descriptor = resolve_by_name(f"timm:{name}", {"weights": str(weights), **arguments}, None).open()
    return descriptor.describe(np.stack([descriptor.prepare(image) for image in pictures()]))


@pytest.fixture(scope="module")
def timm():
    return library_or_skip("timm")


@pytest.fixture(scope="module")
def weights(timm, tmp_path_factory):
    """A file of random weights for each architecture."""
    torch.manual_seed(0)
    made = {}
    for name in (RESNET, VIT):
        made[name] = tmp_path_factory.mktemp("timm") / "model.safetensors"
        save_file({key: value.contiguous() for key, value in timm.create_model(name).state_dict().items()}, made[name])
    return made


def directly(timm, name, weights):
    """What timm itself makes of the pictures: tokens or maps, and the row that it feeds its classifier with."""
    model = timm.create_model(name, checkpoint_path=str(weights[name])).eval()
    model.reset_classifier(0)
    prepare = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    values = torch.stack([prepare(Image.fromarray(image)) for image in pictures()])
    with torch.inference_mode():
        return model.forward_features(values).numpy(), model(values).numpy()


@pytest.mark.parametrize("name", [RESNET, VIT])
def test_a_row_is_what_timm_itself_feeds_its_classifier_with(name, timm, weights):
    _, expected = directly(timm, name, weights)
    np.testing.assert_allclose(rows_of(name, weights[name]), expected, atol=2e-5)


def test_tokens_and_maps_are_pooled(timm, weights):
    tokens, _ = directly(timm, VIT, weights)
    np.testing.assert_allclose(rows_of(VIT, weights[VIT], pooling="cls"), tokens[:, 0], atol=2e-5)
    np.testing.assert_allclose(rows_of(VIT, weights[VIT], pooling="avg"), tokens[:, 1:].mean(axis=1), atol=2e-5)
    maps, _ = directly(timm, RESNET, weights)
    gem = np.cbrt((maps.clip(1e-6).astype(np.float64) ** 3).mean(axis=(2, 3)))
    np.testing.assert_allclose(rows_of(RESNET, weights[RESNET], pooling="gem"), gem, rtol=1e-4, atol=1e-6)
    with pytest.raises(ConfigError, match="has no class token"):
        rows_of(RESNET, weights[RESNET], pooling="cls")


def test_weights_are_found_in_the_local_cache_of_the_hub(timm, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=rf"not in the local cache .* hf download timm/{RESNET}; or give --weights"):
        resolve_by_name(f"timm:{RESNET}", {}, None)
    repository = tmp_path / f"models--timm--{RESNET}"
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc" / "model.safetensors").write_bytes(weights[RESNET].read_bytes())
    by_cache = resolve_by_name(f"timm:{RESNET}", {}, None)
    assert by_cache.digest == resolve_by_name(f"timm:{RESNET}", {"weights": str(weights[RESNET])}, None).digest


def test_unknown_names_and_weights_of_another_model_are_said(timm, weights, tmp_path):
    with pytest.raises(ConfigError, match=r"has no such model \(did you mean resnet10t\?\)"):
        resolve_by_name("timm:resnet10", {}, None)
    with pytest.raises(ConfigError, match=r"Invalid pretrained tag .* There are .*c3_in1k"):
        resolve_by_name("timm:resnet10t.other", {}, None)
    with pytest.raises(DataError, match=rf"timm:{RESNET}: can't be loaded \(Error.* ResNet: .*\)"):
        rows_of(RESNET, weights[VIT])
    (tmp_path / "w.safetensors").write_bytes(b"none")
    with pytest.raises(DataError, match=rf"^{tmp_path}/w\.safetensors: can't be read as safetensors"):
        rows_of(RESNET, tmp_path / "w.safetensors")


def test_a_timm_that_can_not_be_imported_is_told_in_one_line(tmp_path, monkeypatch):
    broken_library("timm", tmp_path, monkeypatch)
    with pytest.raises(
        ConfigError, match=r"^timm can't be imported here \(RuntimeError: operator torchvision::nms"
    ) as no:
        resolve_by_name(f"timm:{RESNET}", {}, None)
    assert f"fit torch {torch.__version__}: pip install 'raybench[timm]'" in str(no.value)


def test_a_timm_that_is_not_there_is_told_with_its_extra():
    try:
        pytest.skip(f"timm {version('timm')} is installed")
    except PackageNotFoundError:
        with pytest.raises(ConfigError, match=r"needs the package timm: pip install 'raybench\[timm\]'"):
            resolve_by_name(f"timm:{RESNET}", {}, None)
