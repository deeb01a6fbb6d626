"""A TorchScript file as descriptor, from the command line: local and from object storage, in CPU and device actors."""

import json

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


def test_a_run_that_is_not_of_exact_float32_says_so_in_table_manifest_and_store(
    raybench, golden, tmp_path, model, local_ray
):
    for name, more in (("exact", ()), ("fast", ("--tf32",))):
        given = ("--gpus", "2", "--store", tmp_path / "stages", *more)
        said = run(raybench, golden, tmp_path / name, f"torchscript:{model}", *given)
        assert said.code == 0, said.err
    exact, fast = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("exact", "fast"))
    note = "PRECISION: descriptors were computed by TF32, not in exact float32."
    assert note in fast["notes"] and note not in exact["notes"]
    assert (fast["arguments"]["tf32"], exact["arguments"]["tf32"]) == (True, False)
    assert note in (tmp_path / "fast" / "report.html").read_text()
    first, again = (next(stage for stage in one["stages"] if stage["name"] == "extract") for one in (exact, fast))
    assert first["digest"] != again["digest"]
    assert (again["found"], again["computed"]) == (0, first["computed"])


def test_a_file_that_is_no_model_and_wrong_options_are_said(raybench, golden, tmp_path, model):
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"no model")
    for spec, options, word in (
        (f"torchscript:{tmp_path / 'none.pt'}", (), "does not exist"),
        (f"torchscript:{broken}", (), "TorchScript"),
        (f"torchscript:{model}", ("--normalise", "maybe"), "normalise=maybe"),
        ("sift", ("--input-size", "32"), "takes no arguments"),
        ("sift", ("--tf32",), "--tf32: goes with a network in a file; sift has an arithmetic of its own"),
        (f"torchscript:{model}", ("--tf32",), "--tf32: needs a GPU; leave it out on CPUs"),
        (f"torchscript:{model}", ("--dtype", "float16", "--device", "cpu"), "--dtype float16: needs a GPU"),
        (f"torchscript:{model}", ("--dtype", "float16", "--tf32"), "--tf32: is a way to multiply float32"),
        (f"torchscript:{model}", ("--descriptor-args", '{"dtype": "float16"}'), "dtype is no argument of the model"),
    ):
        said = run(raybench, golden, tmp_path / "out", spec, *options, "--ray", "off", "--overwrite")
        assert said.code == 2, spec
        assert len(said.errors) == 1
        assert word in said.errors[0]
