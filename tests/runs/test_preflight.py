"""`check`: what running would trip over, found in seconds: broken pixels, a model that fails, folders of no use."""

import shutil

import numpy as np
import pytest
from conftest import GOLDEN, only_line
from PIL import Image

from raybench import storage
from raybench.errors import ProblemList
from raybench.extract import trials
from raybench.extract.trials import look_through

PATCHES = GOLDEN / "hbench_classification/data"
CLASSES = """
import os

import numpy as np


class Unopened:
    def __init__(self):
        raise OSError("no weights here")

    def prepare(self, patches):
        return patches

    def describe(self, patches):
        return np.zeros((len(patches), 4))

    def flow(self, image1, image2):
        return np.zeros((*image1.shape[:2], 2), np.float32)


class Wide(Unopened):
    def __init__(self):
        self.name = os.environ.get("NAME", "wide")

    def describe(self, batch):
        return np.zeros((1, 4))


class ForGpus(Wide):
    def describe(self, batch):
        raise RuntimeError("Found no NVIDIA driver on your system")


class Means:
    def describe(self, batch):
        return batch.mean((2, 3))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "models.py").write_text(CLASSES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def patches(raybench, here):
    """`check` of patches, whose strips a test may spoil."""
    shutil.copytree(PATCHES / "hpatches", here / "hpatches")

    def call(*more, descriptor="meanstd"):
        given = ("--data", here / "hpatches", "--benchmarks", PATCHES / "benchmarks", "--descriptor", descriptor)
        return raybench("check", "hbench-classification", *given, *more)

    return call


@pytest.fixture
def images(raybench, here):
    """`check` of three folders of images, which a test may spoil."""
    for role, count in (("queries", 3), ("references", 4)):
        (here / role).mkdir()
        for number in range(count):
            pixels = np.random.default_rng(number).integers(0, 255, (40, 60, 3), np.uint8)
            Image.fromarray(pixels).save(here / role / f"{role[0]}{number}.png")
    (here / "truth.csv").write_text("q0,r0\n")

    def call(*more, descriptor="models:Means", data=here):
        folders = ("--queries", f"{data}/queries", "--references", f"{data}/references")
        return raybench(
            "check", "disc2021", *folders, "--ground-truth", f"{data}/truth.csv", "--descriptor", descriptor, *more
        )

    return call


def cut(file):
    file.write_bytes(file.read_bytes()[:-40])


def test_good_inputs_are_said_with_what_was_tried(patches, images):
    said = patches()
    assert said.out.strip() == "good: 3 tasks over 650 pairs in 6 lists"
    assert "meanstd tried: 8 patches, 2 values each" in said.err
    said = images()
    assert said.out.strip() == "good: 3 queries, 4 references, 1 true pairs"
    assert "queries: headers of all 3 images read, all 3 decoded" in said.err
    assert "Means tried: 2 images, 3 values each" in said.err


def test_a_strip_that_is_cut_short_is_found_by_decoding_it(patches, here):
    cut(here / "hpatches/v_gate/e1.png")
    only_line(patches(), "v_gate/e1.png", "can't be decoded")
    said = patches("--on-bad-input", "skip")
    assert said.code == 0
    assert "1 can't be read and will be skipped" in said.err


def test_pictures_without_bytes_cut_short_or_without_a_header_are_listed_together(images, here):
    (here / "queries/q0.png").write_bytes(b"")
    cut(here / "queries/q1.png")
    (here / "references/r2.png").write_text("no picture")
    said = images()
    assert said.code == 2
    assert len(said.errors) == 3, said.err
    for line, words in zip(
        said.errors, ("q0.png: is empty", "q1.png: can't be decoded", "r2.png: no image"), strict=True
    ):
        assert words in line


@pytest.mark.parametrize(
    ("name", "words"),
    [("Unopened", "models.py:9: models:Unopened raised OSError: no weights here"), ("Wide", "shape (1, 4) for ")],
)
def test_a_class_that_fails_is_found_by_one_small_batch(patches, images, name, words):
    only_line(patches(descriptor=f"models:{name}"), words)
    only_line(images(descriptor=f"models:{name}"), words)


def test_a_flow_method_that_fails_is_found_by_one_pair(raybench, here):
    given = ("check", "tss", "--data", GOLDEN / "tss/data/Dataset", "--descriptor")
    only_line(raybench(*given, "models:Unopened"), "models.py:9", "no weights here")
    assert "zero tried: flow of" in raybench(*given, "zero").err


def test_a_class_that_asks_for_a_gpu_is_no_problem_where_there_is_none(patches, monkeypatch, tmp_path):
    monkeypatch.setattr(trials, "CONTROL_FILE", tmp_path / "none")
    said = patches(descriptor="models:ForGpus")
    assert said.code == 0, said.err
    assert "not tried: it asks for a GPU, and there is none here" in said.err
    monkeypatch.setattr(trials, "CONTROL_FILE", tmp_path)
    only_line(patches(descriptor="models:ForGpus"), "NVIDIA")


def test_what_a_digest_does_not_cover_is_noted(patches):
    said = patches(descriptor="models:ForGpus")
    assert "note: DIGEST: " in said.err
    assert "models.py" in said.err


def test_folders_that_can_t_be_written_are_found_with_all_else(patches, here):
    (here / "file").write_text("")
    cut(here / "hpatches/v_gate/e1.png")
    said = patches("--out", here / "file/run", "--store", "/proc/raybench-store")
    assert said.code == 2
    assert len(said.errors) == 2, said.err
    assert f"{here}/file is a file" in said.errors[0]
    assert "/proc/raybench-store: can't be made" in said.errors[1]


def test_trying_to_write_leaves_nothing_behind(patches, here):
    (here / "there").mkdir()
    assert patches("--out", here / "new/run", "--store", here / "there").code == 0
    assert not (here / "new").exists()
    assert not list((here / "there").iterdir())


def test_object_storage_is_tried_the_same_way(images, here, s3):
    bucket = s3.bucket("check")
    cut(here / "queries/q1.png")
    for name in ("queries", "references"):
        s3.upload(here / name, f"{bucket}/{name}")
    storage.publish(f"{bucket}/truth.csv", b"q0,r0\n")
    said = images("--out", f"{bucket}/run", "--store", "s3://no-such-bucket/store", data=bucket)
    assert said.code == 2
    assert len(said.errors) == 2, said.err
    assert "no-such-bucket" in said.errors[0]
    assert f"{bucket}/queries/q1.png: can't be decoded" in said.errors[1]
    assert not storage.list_files(f"{bucket}/run")


def test_looking_ends_when_its_time_is_up_and_begins_where_the_seed_says(monkeypatch):
    monkeypatch.setattr(trials, "LOOK_SECONDS", -1.0)
    seen = [look_through(range(1000), lambda item: item, lambda _, item: item, seed) for seed in (0, 0, 1)]
    assert [one.share for one in seen] == ["1 of 1,000"] * 3
    assert seen[0].good == seen[1].good != seen[2].good


def test_where_nothing_can_be_read_skipping_is_no_way_out(patches, here):
    for strip in (here / "hpatches").rglob("*.png"):
        cut(strip)
    assert patches("--on-bad-input", "skip").code == 2
    looked = look_through([1], lambda item: item, lambda _, item: item, 0)
    assert looked.note(ProblemList(), skip=True) == []
