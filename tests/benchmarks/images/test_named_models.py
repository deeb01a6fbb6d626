"""Models by name through the command line: what tables say of them, and options that do not go with them."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import only_line
from PIL import Image
from vision_models import model_folder

from raybench import storage
from raybench.descriptors import IMAGE_MODEL_NAMES


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    base = tmp_path_factory.mktemp("disc")
    for role in ("queries", "references"):
        (base / role).mkdir()
        for number in range(4):
            pixels = np.random.default_rng(number).integers(0, 255, (30 + number, 40, 3), np.uint8)
            Image.fromarray(pixels).save(base / role / f"{role[0]}{number}.png")
    (base / "truth.csv").write_text("q0,r0\n")
    folders = [part for role in ("queries", "references") for part in (f"--{role}", base / role)]
    return ("disc2021", *folders, "--ground-truth", base / "truth.csv", "--codecs", "Flat")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_folder(tmp_path_factory.mktemp("models") / "tiny-vit")


def test_a_run_says_how_pictures_were_prepared_and_what_rows_are(raybench, given, model, tmp_path):
    said = raybench("run", *given, "--descriptor", f"hf:{model}", "--ray", "off", "--out", tmp_path / "own")
    assert said.code == 0, said.err
    assert "32 x 32 px (height x width), bilinear, minus mean 0.5,0.5,0.5, over deviation 0.5,0.5,0.5" in said.out
    assert f"Rows of hf:{model}: the model's own `pooler_output`." in said.out
    assert "100.00" in said.out  # a query that is its reference stands first


def test_the_published_steps_and_a_pooling_are_taken_where_asked_for(raybench, given, model, tmp_path):
    how = ("--preprocess", "published", "--size", "40", "--pooling", "gem", "--pool-param", "4")
    said = raybench("run", *given, "--descriptor", f"hf:{model}", *how, "--ray", "off", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert "40 px by short edge, bilinear, minus mean 0.485,0.456,0.406" in said.out
    assert "the generalised mean (power 4.0, of values from 1e-6 up) over the patches of the last layer." in said.out
    arguments = json.loads((tmp_path / "out/manifest.json").read_text())["arguments"]
    assert {key: arguments[key] for key in ("preprocess", "pooling", "pool_param")} == {
        "preprocess": "published",
        "pooling": "gem",
        "pool_param": 4.0,
    }


@pytest.mark.parametrize(
    ("descriptor", "options", "words"),
    [
        ("hf:{model}", ("--size", "40"), "--size: would do nothing with the model's own preprocessing"),
        (
            "hf:{model}",
            ("--mean", "0.5", "--preserve-aspect-ratio", "false"),
            "--preserve-aspect-ratio, --mean: would do",
        ),
        ("hf:{model}", ("--backbone", "CV_RESNET50"), "--backbone: for --descriptor sscd:URI only"),
        ("hf:{model}", ("--pool-param", "2"), "--pool-param: goes with --pooling gem, or with sscd:URI"),
        ("hf:{model}", ("--weights", "w.pth"), "--weights: for timm:NAME and torchvision:NAME"),
        ("hf:{model}", ("--tf32", "--device", "cpu"), "--tf32: needs a GPU; leave it out on CPUs"),
        ("thumbnail", ("--pooling", "cls"), "--pooling: for --descriptor hf:, timm:, torchvision: only"),
        ("thumbnail", ("--preprocess", "model"), "--preprocess: for --descriptor hf:, timm:, torchvision: only"),
        ("thumbnail", ("--pool-param", "2"), "--pool-param: for --descriptor sscd:URI only"),
    ],
)
def test_options_that_would_do_nothing_are_refused(descriptor, options, words, raybench, given, model):
    said = raybench("check", *given, "--descriptor", descriptor.format(model=model), *options)
    only_line(said, words)


def test_a_folder_in_a_bucket_gives_the_same_table_in_process_and_on_devices(
    raybench, given, model, tmp_path, local_ray, s3
):
    bucket = s3.bucket("named-models")
    for path in model.iterdir():
        storage.publish(f"{bucket}/tiny-vit/{path.name}", path.read_bytes())
    tables = set()
    for name, spec, more in (
        ("inline", f"hf:{model}", ("--ray", "off")),
        ("remote", "hf:s3://named-models/tiny-vit", ("--gpus", "2", "--batch-size", "3")),
    ):
        said = raybench("run", *given, "--descriptor", spec, "--out", tmp_path / name, *more)
        assert said.code == 0, said.err
        tables.add((tmp_path / name / "disc_metrics.csv").read_bytes())
    assert len(tables) == 1


def test_each_kind_has_an_extra_of_its_name():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert set(IMAGE_MODEL_NAMES) <= set(project["optional-dependencies"])


def test_the_lists_say_which_extra_a_model_by_name_needs(raybench):
    said = raybench("list")
    for kind in ("hf", "timm", "torchvision"):
        (line,) = [line for line in said.out.splitlines() if line.strip().startswith(f"{kind}:")]
        assert f"needs raybench[{kind}]" in line and "runs no code from" in line


def test_doctor_lists_the_libraries_of_models_by_name():
    from raybench.cli.findings import of_packages

    found = {what: words for what, words, _ in of_packages()}
    assert found["transformers"][0].isdigit()
    assert {"timm", "torchvision"} <= found.keys()
