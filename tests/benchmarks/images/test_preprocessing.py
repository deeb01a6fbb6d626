"""How a network's images are prepared, by options of the command line: in the manifest, in notes, refused elsewhere."""

import json

import numpy as np
import pytest
from conftest import only_line
from PIL import Image


@pytest.fixture
def given(tmp_path):
    for role in ("queries", "references"):
        (tmp_path / role).mkdir()
        for number in range(3):
            pixels = np.random.default_rng(number).integers(0, 255, (30, 40, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / role / f"{role[0]}{number}.png")
    (tmp_path / "truth.csv").write_text("q0,r0\n")
    folders = [part for role in ("queries", "references") for part in (f"--{role}", tmp_path / role)]
    return ("disc2021", *folders, "--ground-truth", tmp_path / "truth.csv", "--ray", "off", "--codecs", "Flat")


def test_the_steps_stand_in_the_manifest_and_below_the_table(raybench, given, tmp_path):
    own = ("--descriptor", "picture_descriptors:ChannelMeans", "--out", tmp_path / "own", "--size", "20")
    said = raybench("run", *given, *own, "--mean", "0.5", "--std", "0.25,0.5,1", "--interpolation", "nearest")
    assert said.code == 0, said.err
    words = "20 px by short edge, nearest, minus mean 0.5,0.5,0.5, over deviation 0.25,0.5,1.0 of levels 0 to 1."
    assert words in said.out
    manifest = json.loads((tmp_path / "own/manifest.json").read_text())
    asked = {key: manifest["arguments"][key] for key in ("mean", "std", "interpolation")}
    assert asked == {"mean": "0.5", "std": "0.25,0.5,1", "interpolation": "nearest"}
    assert any(words in note for note in manifest["notes"])


def test_the_published_steps_are_named_as_well_and_are_no_argument(raybench, given, tmp_path):
    said = raybench("run", *given, "--descriptor", "picture_descriptors:ChannelMeans", "--out", tmp_path / "out")
    assert "288 px by short edge, bilinear, minus mean 0.485,0.456,0.406, over deviation 0.229" in said.out
    assert "mean" not in json.loads((tmp_path / "out/manifest.json").read_text())["arguments"]


def test_they_are_refused_where_they_would_do_nothing(raybench, given, tmp_path):
    only_line(raybench("check", *given, "--descriptor", "thumbnail", "--mean", "0.5"), "--mean", "thumbnail prepares")
    features = ("--features", tmp_path, "--std", "0.5", "--interpolation", "box")
    only_line(raybench("check", "disc2021", *features), "--std, --interpolation: would do nothing with --features")
