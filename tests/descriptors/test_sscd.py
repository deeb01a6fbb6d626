import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from image_models import state, torchscript_file, weight_file

from raybench.descriptors.sscd import Sscd, check_state
from raybench.descriptors.sscd_backbones import BACKBONES
from raybench.descriptors.sscd_network import file_shapes
from raybench.errors import ConfigError, DataError, Problems

GOLDEN = Path(__file__).parent.parent / "golden" / "models"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


def empty(backbone, dims):
    return {key: torch.empty(shape, device="meta") for key, shape in file_shapes(backbone, dims).items()}


@pytest.mark.parametrize("case", EXPECTED["expected"])
def test_the_networks_give_the_published_embeddings(case, tmp_path):
    figures = EXPECTED["expected"][case]
    backbone, dims = figures["backbone"], figures["dims"]
    path = weight_file(tmp_path / "weights.pt", backbone, dims)
    sscd = Sscd(str(path), 64, "square", backbone=backbone, dims=dims, pool_param=figures["pool_param"])
    network = sscd.load("cpu")
    batch = torch.from_numpy(np.load(GOLDEN / "data" / "input.npz")["x"])
    with torch.inference_mode():
        plain = network(batch)
        last = network.to(memory_format=torch.channels_last)(batch.to(memory_format=torch.channels_last))
    for found in (plain, last):
        np.testing.assert_allclose(found, figures["embeddings"], rtol=0, atol=EXPECTED["tolerance"])


@pytest.mark.parametrize("file", sorted(path.name for path in (GOLDEN / "keys").iterdir()))
def test_keys_and_shapes_are_those_of_the_published_networks(file):
    backbone, _, dims = file.removesuffix(".json").rpartition("_d")
    published = {key: tuple(shape) for key, shape in json.loads((GOLDEN / "keys" / file).read_text())}
    assert file_shapes(backbone, int(dims)) == published


def test_the_wide_resnext_has_eight_channels_a_group():
    shapes = file_shapes("TV_RESNEXT101", 512)
    assert shapes["backbone.layer1.0.conv2.weight"] == (256, 8, 3, 3)
    assert shapes["backbone.layer3.22.conv2.weight"] == (1024, 32, 3, 3)
    assert shapes["backbone.fc.weight"] == (512, 2048)


def test_the_same_network_as_torchscript_gives_the_same_rows(tmp_path):
    from raybench.descriptors.image_networks import ImageTorchScript

    weights = weight_file(tmp_path / "weights.pt")
    script = torchscript_file(tmp_path / "script.pt", weights)
    pictures = np.random.default_rng(0).integers(0, 256, (3, 70, 90, 3), np.uint8)
    ours = Sscd(str(weights), 48, "short_edge", backbone="CV_RESNET18", dims=32)
    theirs = ImageTorchScript(str(script), 48, "short_edge")
    batch = np.stack([ours.prepare(picture) for picture in pictures])
    rows = ours.describe(batch)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows, theirs.describe(batch))


@pytest.mark.parametrize("held", BACKBONES)
def test_weights_of_another_backbone_are_recognised(held):
    named = "CV_RESNET50" if held != "CV_RESNET50" else "TV_RESNET50"
    with pytest.raises(DataError, match=f"holds weights of {held}, not of {named}; give --backbone {held}"):
        check_state(empty(held, 7), "w.pt", named, 512)


def test_weights_with_other_dimensions_are_recognised():
    with pytest.raises(Problems, match="TV_RESNET18 with 7 dimensions, not 512; give --dims 7"):
        check_state(empty("TV_RESNET18", 7), "w.pt", "TV_RESNET18", 512)


def test_all_keys_that_do_not_fit_are_listed_at_once():
    found = empty("CV_RESNET18", 8)
    del found["embeddings.1.bias"]
    found["foo.bar"] = torch.zeros(1)
    found["backbone.blocks.3.block3-1.bn.bias"] = torch.zeros(3)
    with pytest.raises(Problems) as raised:
        check_state(found, "w.pt", "CV_RESNET18", 8)
    lines = raised.value.lines()
    assert [line for line in lines if "1 key missing: embeddings.1.bias" in line]
    assert [line for line in lines if "1 key unexpected: foo.bar" in line]
    assert [line for line in lines if "backbone.blocks.3.block3-1.bn.bias is (3,), expected (512,)" in line]


def test_counters_of_training_may_be_absent(tmp_path):
    kept = {key: value for key, value in state("TV_RESNET18", 8).items() if "num_batches_tracked" not in key}
    torch.save(kept, tmp_path / "old.pt")
    batch = np.zeros((1, 32, 32, 3), np.uint8)
    old = Sscd(str(tmp_path / "old.pt"), 32, "square", backbone="TV_RESNET18", dims=8)
    new = Sscd(str(weight_file(tmp_path / "new.pt", "TV_RESNET18", 8)), 32, "square", backbone="TV_RESNET18", dims=8)
    np.testing.assert_array_equal(old.describe(batch), new.describe(batch))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"backbone": "CV_RESNET51"}, r"unknown \(did you mean CV_RESNET50\?\)"),
        ({"dims": 0}, "--dims 0"),
        ({"pool_param": 0.0}, "--pool_param 0.0"),
        ({"dtype": "float8"}, "--dtype float8"),
        ({"mode": "round"}, "expected one of short_edge"),
    ],
)
def test_wrong_arguments_are_config_errors(arguments, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Sscd(**{"path": "w.pt", "size": 288, "mode": "square", **arguments})


class Malicious:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("content", [b"", b"no weights", b"query_id,reference_id\nQ00000,\n", pickle.dumps({"a": 1})])
def test_a_file_that_holds_no_weights_is_a_data_error(content, tmp_path):
    (tmp_path / "w.pt").write_bytes(content)
    with pytest.raises(DataError, match=r"w\.pt: can't be read as weights"):
        Sscd(str(tmp_path / "w.pt"), 288, "square").check()


def test_nothing_in_a_weight_file_is_executed(tmp_path, capsys):
    torch.save({"a": Malicious()}, tmp_path / "w.pt")
    with pytest.raises(DataError, match="can't be read as weights"):
        Sscd(str(tmp_path / "w.pt"), 288, "square").check()
    assert "executed" not in capsys.readouterr().out


def test_a_checkpoint_with_more_than_weights_says_what_to_do(tmp_path):
    torch.save({"epoch": 3, "state_dict": {"a": torch.zeros(1)}}, tmp_path / "w.pt")
    with pytest.raises(DataError, match=r"found a dict with epoch, state_dict .* save the model's state_dict alone"):
        Sscd(str(tmp_path / "w.pt"), 288, "square").check()


@pytest.mark.parametrize("level", [0.001, 1.0, 50.0, 1_000.0])
def test_the_generalised_mean_neither_overflows_nor_vanishes_in_half_precision(level):
    from raybench.descriptors.sscd_network import generalised_mean

    plane = torch.full((1, 2, 3, 3), level, dtype=torch.float16)
    assert generalised_mean(plane, 3.0).tolist()[0] == pytest.approx([level, level], rel=2e-3)


def test_half_precision_is_close(tmp_path):
    path = str(weight_file(tmp_path / "w.pt", "TV_RESNET18", 8))
    batch = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)
    exact, half = (
        Sscd(path, 64, "square", dtype=dtype, backbone="TV_RESNET18", dims=8).describe(batch)
        for dtype in ("float32", "bfloat16")
    )
    assert half.dtype == np.float32
    assert 0 < np.abs(exact - half).max() < 0.05


def test_torch_is_not_imported_before_it_is_needed():
    code = (
        "import sys, numpy as np; from raybench.descriptors.sscd import Sscd;"
        "Sscd('x.pt', 40, 'square').prepare(np.zeros((9, 9, 3), np.uint8)); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
