"""A TorchScript file as descriptor, from the command line: local and from object storage, in CPU and device actors."""

import pytest
import torch

from raybench import storage


class Mean(torch.nn.Module):
    """4x4 block means of a patch: a network small enough to check by hand."""

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.adaptive_avg_pool2d(patches, 4).flatten(1)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "mean.pt"
    torch.jit.script(Mean()).save(str(path))
    return path


def run(raybench, golden, out, spec, *more):
    given = ("--data", golden / "hpatches", "--benchmarks", golden / "benchmarks", "--out", out, "--descriptor", spec)
    return raybench("run", "hbench-classification", *given, *more)


def test_a_model_gives_the_same_table_in_process_on_devices_and_from_object_storage(
    raybench, golden, tmp_path, model, local_ray, s3
):
    storage.publish(f"{s3.bucket('models')}/mean.pt", model.read_bytes())
    options = ("--input-size", "32", "--normalise", "patch")
    tables = set()
    for name, spec, more in (
        ("inline", f"torchscript:{model}", ("--ray", "off")),
        ("device", f"torchscript:{model}", ("--gpus", "2", "--batch-size", "5")),
        ("remote", "torchscript:s3://models/mean.pt", ("--device", "cpu", "--cpus", "2")),
    ):
        said = run(raybench, golden, tmp_path / name, spec, *options, *more)
        assert said.code == 0, said.err
        tables.add((tmp_path / name / "hbench_classification.csv").read_bytes())
        assert (tmp_path / name / "results/classification/mean/mini_easy_pos.results").exists()
    assert len(tables) == 1


def test_a_file_that_is_no_model_and_wrong_options_are_said(raybench, golden, tmp_path, model):
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"no model")
    for spec, options, word in (
        (f"torchscript:{tmp_path / 'none.pt'}", (), "does not exist"),
        (f"torchscript:{broken}", (), "TorchScript"),
        (f"torchscript:{model}", ("--normalise", "maybe"), "normalise=maybe"),
        ("sift", ("--input-size", "32"), "takes no arguments"),
    ):
        said = run(raybench, golden, tmp_path / "out", spec, *options, "--ray", "off", "--overwrite")
        assert said.code == 2, spec
        assert len(said.errors) == 1
        assert word in said.errors[0]
