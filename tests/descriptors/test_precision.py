"""What the user trades digits for: set for each descriptor, whatever the process did before, and kept apart."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from image_models import weight_file

from raybench.descriptors.image_descriptors import resolve_images
from raybench.descriptors.image_networks import TorchNetwork
from raybench.descriptors.patch_descriptors import resolve
from raybench.descriptors.precision import EXACT, Precision
from raybench.descriptors.torchscript import TorchScript
from raybench.errors import ConfigError
from raybench.formats.images import Preprocess


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(torch.relu(self.layer(x)).mean(dim=(2, 3)))


class Network(TorchNetwork):
    """A network without a file."""

    def __init__(self, path, size, mode, **precision):
        super().__init__(path, Preprocess(size, mode), Precision(**precision))

    def load(self, device):
        torch.manual_seed(0)
        return Small().eval().to(device)


class Columns(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=2).flatten(1)


@pytest.fixture
def patches_file(tmp_path):
    path = tmp_path / "columns.pt"
    torch.jit.script(Columns()).save(str(path))
    return path


def pictures(count, height=20, width=30):
    return np.random.default_rng(count * width).integers(0, 256, (count, height, width, 3), np.uint8)


def tf32_settings():
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


def test_a_process_that_served_another_descriptor_has_the_settings_of_this_one(patches_file):
    fast, exact = Network("n.pt", 20, "square", tf32=True), Network("n.pt", 20, "square")
    patches = TorchScript(str(patches_file))
    for descriptor, batch, expected in (
        (fast, pictures(1), True),
        (exact, pictures(1), False),
        (fast, pictures(1), True),  # whose model is loaded already
        (patches, np.zeros((1, 1, 8, 8), np.float32), False),
    ):
        descriptor.describe(batch)
        assert tf32_settings() == (expected, expected)


def test_every_choice_has_a_digest_of_its_own(tmp_path, patches_file):
    weights = weight_file(tmp_path / "w.pt", "TV_RESNET18", 8)
    network = {"backbone": "TV_RESNET18", "dims": 8}
    choices = [EXACT, Precision("float16"), Precision("bfloat16"), Precision(tf32=True), Precision(compile=True)]
    images = [resolve_images(f"sscd:{weights}", network, Preprocess(40), choice) for choice in choices]
    patches = [resolve(f"torchscript:{patches_file}", {}, choice) for choice in choices[:4]]
    assert len({spec.digest for spec in images}) == 5
    assert len({spec.digest for spec in patches}) == 4
    assert [spec.precision for spec in images] == choices


@pytest.mark.parametrize("choice", [Precision("float16"), Precision("bfloat16"), Precision(tf32=True)])
def test_what_only_gpus_do_is_refused_on_cpus(choice):
    with pytest.raises(ConfigError, match=r"^--(dtype b?float16|tf32): needs a GPU"):
        choice.check_device("cpu")
    choice.check_device("gpu")
    Precision(compile=True).check_device("cpu")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_of_half_precision_come_back_as_float32_near_the_exact_ones(dtype):
    batch = pictures(3)
    exact, half = (Network("n.pt", 20, "square", dtype=kind).describe(batch) for kind in ("float32", dtype))
    assert half.dtype == np.float32
    assert 0 < np.abs(exact - half).max() < 0.02


@pytest.mark.slow
def test_a_compiled_network_gives_the_rows_of_a_plain_one_and_is_not_compiled_for_each_shape():
    plain, compiled = Network("n.pt", 20, "square"), Network("n.pt", 20, "square", compile=True)
    first = [pictures(4), pictures(1), pictures(2, 24, 36)]
    later = [pictures(3, 20, 41), pictures(1, 33, 20), pictures(7, 50, 22), pictures(4, 64, 64)]
    for ours, theirs in zip(compiled.describe_each(first), plain.describe_each(first), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    with torch.compiler.set_stance("fail_on_recompile"):
        found = list(compiled.describe_each(later))
    for ours, theirs in zip(found, plain.describe_each(later), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    torch.compiler.reset()


@pytest.mark.slow
def test_a_machine_on_which_torch_can_not_compile_is_said_in_one_line(tmp_path):
    code = (
        "from test_precision import Network, pictures\n"
        "from raybench.errors import ConfigError\n"
        "try: Network('n.pt', 20, 'square', compile=True).describe(pictures(2))\n"
        "except ConfigError as error: print(error)"
    )
    places = {"CXX": str(tmp_path / "no-compiler"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **places, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    assert line.startswith("--compile: torch can't compile n.pt here (")
    assert line.endswith("; it needs a C++ compiler, on a GPU also triton; or leave it out")
