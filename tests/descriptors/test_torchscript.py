import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from raybench.descriptors.torch_models import run_as_it_is
from raybench.descriptors.torchscript import TorchScript
from raybench.errors import ConfigError, DataError


class Columns(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=2).flatten(1)


class Unflattened(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Logarithm(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1).log()


class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x


class Halting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(x.flatten(1))


@pytest.fixture
def saved(tmp_path):
    def save(module):
        path = tmp_path / "network.pt"
        torch.jit.script(module).save(str(path))
        return str(path)

    return save


def noise(count, side=65):
    return np.random.default_rng(0).integers(0, 256, (count, side, side), dtype=np.uint8)


def described(descriptor, patches):
    return descriptor.describe(descriptor.prepare(patches))


def test_describe_gives_the_models_rows(saved):
    patches = noise(7)
    rows = described(TorchScript(saved(Columns())), patches)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, patches.mean(axis=1), rtol=1e-5)


def test_the_name_is_the_files_stem():
    assert TorchScript("s3://models/hardnet.v2.pt").name == "hardnet.v2"


def test_no_patches_give_no_rows_of_the_models_dimension(saved):
    assert described(TorchScript(saved(Columns()), input_size=32), noise(0)).shape == (0, 32)


def test_the_model_is_in_evaluation_mode(saved):
    patches = noise(2, side=8)
    rows = described(TorchScript(saved(Halting())), patches)
    np.testing.assert_array_equal(rows, patches.reshape(2, 64))


@pytest.mark.parametrize(
    ("normalise", "expected"),
    [
        ("none", lambda x: x),
        ("unit", lambda x: x / 255),
        ("0.443728,0.203", lambda x: (x / 255 - 0.443728) / 0.203),
        ("patch", lambda x: (x - x.mean(axis=(1, 2), keepdims=True)) / x.std(axis=(1, 2), keepdims=True)),
    ],
)
def test_prepare_normalises_as_asked(normalise, expected):
    patches = noise(3)
    prepared = TorchScript("network.pt", normalise=normalise).prepare(patches)
    assert (prepared.shape, prepared.dtype) == ((3, 1, 65, 65), np.float32)
    np.testing.assert_allclose(prepared[:, 0], expected(patches.astype(float)), atol=2e-5)


def test_a_constant_patch_normalised_by_itself_is_zeros():
    flat = np.full((1, 65, 65), 93, np.uint8)
    assert not TorchScript("network.pt", input_size=32, normalise="patch").prepare(flat).any()


def test_shrinking_averages():
    chequered = np.tile(np.array([[0, 200], [200, 0]], np.uint8), (1, 32, 32))
    np.testing.assert_allclose(TorchScript("network.pt", input_size=32).prepare(chequered), 100)


@pytest.mark.parametrize("normalise", ["imagenet", "0.4", "0.4,0", "0.4,nan", "0.4,-1", "a,b", "1,2,3", ""])
def test_an_unknown_normalisation_is_a_config_error(normalise):
    with pytest.raises(ConfigError, match="expected none, unit, patch, or MEAN,STD"):
        TorchScript("network.pt", normalise=normalise)


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        (Unflattened(), r"expected \(2, dim\) .* found \(2, 1, 65, 65\)"),
        (Logarithm(), "2 of 2 descriptors are not finite"),
        (Two(), "expected one tensor from the model, found tuple"),
    ],
)
def test_an_unusable_output_is_a_data_error_that_names_the_file(saved, module, complaint):
    patches = np.zeros((2, 65, 65), np.uint8)
    with pytest.raises(DataError, match=r"network\.pt: " + complaint):
        described(TorchScript(saved(module)), patches)


def test_a_state_dict_is_a_data_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "weights.pth"
    torch.save(torch.nn.Linear(2, 2).state_dict(), path)
    with pytest.raises(DataError, match=r"weights\.pth: can't be loaded as TorchScript .* torch\.jit\.trace"):
        described(TorchScript(str(path)), noise(1))


def test_any_other_file_is_a_data_error_too(tmp_path):
    path = tmp_path / "notes.pt"
    path.write_text("not a network")
    with pytest.raises(DataError, match=r"notes\.pt: can't be loaded as TorchScript"):
        described(TorchScript(str(path)), noise(1))


def test_a_missing_file_is_a_data_error():
    with pytest.raises(DataError, match=r"nowhere\.pt: no such file"):
        described(TorchScript("nowhere.pt"), noise(1))


def test_a_read_only_array_is_described_without_a_warning(saved, recwarn):
    descriptor = TorchScript(saved(Columns()))
    prepared = descriptor.prepare(noise(2))
    prepared.flags.writeable = False  # as Ray's object store hands it out
    descriptor.describe(prepared)
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]


def test_a_copy_that_was_pickled_describes_the_same(saved):
    descriptor = TorchScript(saved(Columns()), input_size=32, normalise="unit")
    copy = pickle.loads(pickle.dumps(descriptor))
    copy.to("cpu")
    np.testing.assert_array_equal(described(copy, noise(3)), described(descriptor, noise(3)))


def test_tf32_and_cudnn_search_are_off(saved):
    described(TorchScript(saved(Columns())), noise(1))
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cudnn.benchmark


def test_torch_is_not_imported_before_it_is_needed():
    code = (
        "import sys, numpy as np; from raybench.descriptors.torchscript import TorchScript;"
        "TorchScript('x.pt').prepare(np.zeros((1, 65, 65), np.uint8)); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class OfColours(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).flatten(1)


def test_a_network_for_colour_pictures_is_refused_with_what_it_was_given(saved):
    descriptor = TorchScript(saved(OfColours()))
    with pytest.raises(
        DataError, match=r"grey patches, \(2, 1, 5, 5\) \(.*3 channels.*exported for such input"
    ) as raised:
        descriptor.describe(descriptor.prepare(np.zeros((2, 5, 5), np.uint8)))
    assert "\n" not in str(raised.value)


class Full(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("CUDA out of memory")


def test_what_a_machine_lacks_is_not_blamed_on_the_network():
    with pytest.raises(RuntimeError, match="out of memory"):
        run_as_it_is(Full(), torch.zeros(1, 1, 2, 2), "network.pt")
