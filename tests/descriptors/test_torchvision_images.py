from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
import torch
from named_libraries import broken_library, library_or_skip
from PIL import Image

from raybench.descriptors.image_descriptors import resolve_by_name
from raybench.errors import ConfigError, DataError

RESNET, MOBILE, DENSE = "resnet18", "mobilenet_v3_small", "densenet121"


def pictures(count=2, height=301, width=455):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)


def rows_of(name, weights, **arguments):
    descriptor = resolve_by_name(f"torchvision:{name}", {"weights": str(weights), **arguments}, None).open()
    return descriptor.describe(np.stack([descriptor.prepare(image) for image in pictures()]))


@pytest.fixture(scope="module")
def torchvision():
    return library_or_skip("torchvision")


@pytest.fixture(scope="module")
def models(torchvision, tmp_path_factory):
    """Models with random weights, each with a file of these."""
    torch.manual_seed(0)
    made = {}
    for name in (RESNET, MOBILE, DENSE):
        model = torchvision.models.get_model(name, weights=None).eval()
        path = tmp_path_factory.mktemp("torchvision") / "w.pth"
        torch.save(model.state_dict(), path)
        made[name] = model, path
    return made


def prepared(torchvision, name):
    """The pictures by the transforms that torchvision publishes with the weights."""
    steps = torchvision.models.get_model_weights(name).DEFAULT.transforms()
    return torch.stack([steps(Image.fromarray(image)) for image in pictures()])


@pytest.mark.parametrize("name", [RESNET, MOBILE, DENSE])
def test_a_row_is_what_the_last_linear_layer_is_fed_with(name, torchvision, models):
    model, path = models[name]
    last = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    seen = []
    hook = last.register_forward_pre_hook(lambda _, given: seen.append(given[0].numpy()))
    with torch.inference_mode():
        model(prepared(torchvision, name))
    hook.remove()
    np.testing.assert_allclose(rows_of(name, path), seen[0], atol=2e-5)


def test_a_map_is_pooled_where_the_model_pools_it(torchvision, models):
    model, path = models[RESNET]
    trunk = torch.nn.Sequential(*list(model.children())[:-2])
    with torch.inference_mode():
        maps = trunk(prepared(torchvision, RESNET)).numpy()
    gem = np.cbrt((maps.clip(1e-6).astype(np.float64) ** 3).mean(axis=(2, 3)))
    np.testing.assert_allclose(rows_of(RESNET, path, pooling="gem"), gem, rtol=1e-4, atol=1e-6)
    for name, pooling, words in [(RESNET, "cls", "has no class token"), (DENSE, "avg", "leave --pooling out")]:
        with pytest.raises(ConfigError, match=words):
            rows_of(name, models[name][1], pooling=pooling)


def test_weights_are_found_where_torch_keeps_them(torchvision, models, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    with pytest.raises(
        DataError, match=r"not in the local cache \(.*resnet18-.*\.pth\), and raybench downloads nothing"
    ):
        resolve_by_name(f"torchvision:{RESNET}", {}, None)
    url = torchvision.models.get_model_weights(RESNET).DEFAULT.url
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / url.rpartition("/")[2]).write_bytes(models[RESNET][1].read_bytes())
    by_cache = resolve_by_name(f"torchvision:{RESNET}", {}, None)
    assert by_cache.digest == resolve_by_name(f"torchvision:{RESNET}", {"weights": str(models[RESNET][1])}, None).digest


def test_unknown_names_and_weights_of_another_model_are_said(torchvision, models, tmp_path):
    with pytest.raises(ConfigError, match=r"no such classification model \(did you mean resnet18\?\)"):
        resolve_by_name("torchvision:resnet1", {}, None)
    with pytest.raises(DataError, match=r"the weights lack \d+, such as bn1\..* and hold as more \d+"):
        rows_of(RESNET, models[MOBILE][1])
    with pytest.raises(ConfigError, match=r"--weights w\.txt: expected a file that ends in \.safetensors, \.pth"):
        rows_of(RESNET, "w.txt")
    with pytest.raises(DataError, match=r"--weights .*none\.pth: does not exist"):
        rows_of(RESNET, tmp_path / "none.pth")


def test_a_torchvision_that_can_not_be_imported_is_told_in_one_line(tmp_path, monkeypatch):
    broken_library("torchvision", tmp_path, monkeypatch)
    with pytest.raises(
        ConfigError, match=r"can't be imported here \(RuntimeError: operator torchvision::nms"
    ) as caught:
        resolve_by_name(f"torchvision:{RESNET}", {}, None)
    assert f"fit torch {torch.__version__}: pip install 'raybench[torchvision]'" in str(caught.value)


def test_a_torchvision_that_is_not_there_is_told_with_its_extra():
    try:
        pytest.skip(f"torchvision {version('torchvision')} is installed")
    except PackageNotFoundError:
        with pytest.raises(ConfigError, match=r"needs the package torchvision: pip install 'raybench\[torchvision\]'"):
            resolve_by_name(f"torchvision:{RESNET}", {}, None)
