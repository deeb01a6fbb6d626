"""Words that a new user once stumbled over: names of the wrong kind, folders one beside the other, packages, links."""

import json
import shutil

import numpy as np
import pytest
from conftest import GOLDEN, only_line
from PIL import Image

from raybench.errors import ConfigError, StorageError
from raybench.runs.finished import finished_manifest, runs_below
from raybench.storage import checked

PATCHES = GOLDEN / "hbench_classification/data"
GIVEN = ("--data", PATCHES / "hpatches", "--benchmarks", PATCHES / "benchmarks")
INLINE = ("--ray", "off", "--progress", "none")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with a class in a file and in one below."""
    (tmp_path / "below").mkdir()
    shutil.copy(GOLDEN.parent / "patch_descriptors.py", tmp_path / "mine_here.py")
    shutil.copy(GOLDEN.parent / "patch_descriptors.py", tmp_path / "below/mine_below.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("spec", ["mine_here.py:Block4", "./mine_here.py:Block4", "below/mine_below.py:Block4"])
def test_a_class_may_be_named_by_its_file(raybench, here, spec):
    said = raybench("check", "hbench-classification", *GIVEN, "--descriptor", spec)
    assert said.code == 0, said.err


def test_a_class_in_a_file_elsewhere_is_told_where_to_go(raybench, here, monkeypatch):
    monkeypatch.chdir(here / "below")
    said = raybench("check", "hbench-classification", *GIVEN, "--descriptor", "../mine_here.py:Block4")
    only_line(said, f"go to {here} and give mine_here:Block4")
    said = raybench("check", "hbench-classification", *GIVEN, "--descriptor", "none.py:Block4")
    only_line(said, f"{here}/below/none.py does not exist")


@pytest.mark.parametrize(
    ("benchmark", "descriptor", "words"),
    [
        ("disc2021", "sift", "is a patch descriptor, which this benchmark does not take; give one of pdq"),
        ("disc2021", "dis", "is a flow method"),
        ("hbench-classification", "thumbnail", "is an image descriptor"),
        ("hbench-classification", "sscd:/weights.pth", "is an image descriptor"),
        ("hbench-classification", "model.pt", "is a file; say of what kind, as torchscript:model.pt"),
        ("hbench-classification", "mine.py", "name the class in it, too, as FILE.py:Class"),
        ("tss", "orb", "is a patch descriptor"),
        ("tss", "warp", "unknown; give one of zero, farneback, dis, dense-sift, or module:Class of your own"),
    ],
)
def test_a_descriptor_of_another_kind_is_called_what_it_is(raybench, benchmark, descriptor, words):
    data = {"disc2021": ("--data", GOLDEN), "tss": ("--data", GOLDEN / "tss/data/Dataset")}
    said = raybench("check", benchmark, *data.get(benchmark, GIVEN), "--descriptor", descriptor)
    assert said.code == 2
    assert f"--descriptor {descriptor}: " in said.errors[0]
    assert words in said.errors[0]
    assert not said.errors[0].endswith(" ")


def test_a_store_whose_package_is_missing_is_told_how_to_get_it():
    with pytest.raises(StorageError, match=r"gs://: needs a package that is not installed \(.*\); pip install gcsfs$"):
        checked("gs://bucket/folder")


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("benchmarks", "is --benchmarks itself"),
        ("benchmarks/run", "is inside --benchmarks"),
        (".", "holds --data"),
        ("linked", "is --data itself"),
    ],
)
def test_an_output_folder_that_is_an_input_or_holds_one_is_refused(raybench, tmp_path, out, words):
    for name in ("hpatches", "benchmarks"):
        shutil.copytree(PATCHES / name, tmp_path / name)
    (tmp_path / "linked").symlink_to(tmp_path / "hpatches")
    before = sorted(tmp_path.rglob("*"))
    given = ("--data", tmp_path / "hpatches", "--benchmarks", tmp_path / "benchmarks", "--descriptor", "meanstd")
    only_line(raybench("run", "hbench-classification", *given, "--out", tmp_path / out, *INLINE), words)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_to_nothing_is_bad_input_and_may_be_skipped(raybench, tmp_path):
    shutil.copytree(PATCHES / "hpatches", tmp_path / "hpatches")
    link = tmp_path / "hpatches/v_loft/e5.png"
    link.unlink()
    link.symlink_to(tmp_path / "nowhere")
    given = ("--data", tmp_path / "hpatches", "--benchmarks", PATCHES / "benchmarks", "--descriptor", "meanstd")
    given = ("run", "hbench-classification", *given, "--out", tmp_path / "out", *INLINE)
    only_line(raybench(*given), f"{link}: is a link to {tmp_path}/nowhere, which is not there")
    said = raybench(*given, "--on-bad-input", "skip")
    assert said.code == 0, said.err
    assert "SKIPPED: " in said.out


def test_a_picture_that_is_a_link_to_nothing_is_no_picture(raybench, tmp_path):
    for role in ("queries", "references"):
        (tmp_path / role).mkdir()
        for number in range(3):
            Image.fromarray(np.full((9, 9, 3), number, np.uint8)).save(tmp_path / f"{role}/{role[0]}{number}.png")
    (tmp_path / "queries/q3.png").symlink_to(tmp_path / "nowhere")
    (tmp_path / "truth.csv").write_text("q0,r0\nq3,r0\n")
    given = [part for role in ("queries", "references") for part in (f"--{role}", tmp_path / role)]
    given = ("disc2021", *given, "--ground-truth", tmp_path / "truth.csv", "--descriptor", "thumbnail")
    only_line(raybench("check", *given), "q3.png: is a link to")
    said = raybench("run", *given, "--out", tmp_path / "out", *INLINE, "--on-bad-input", "skip", "--codecs", "Flat")
    assert said.code == 0, said.err
    assert "SKIPPED: 1 images could not be read; 1 true pairs are left out with them." in said.out


def test_a_run_that_never_ended_gives_way_to_other_arguments_and_a_finished_one_does_not(raybench, tmp_path):
    shutil.copytree(PATCHES / "hpatches", tmp_path / "hpatches")
    strip = tmp_path / "hpatches/v_gate/e1.png"
    strip.write_bytes(strip.read_bytes()[:-400])
    given = ("--data", tmp_path / "hpatches", "--benchmarks", PATCHES / "benchmarks", "--descriptor", "meanstd")
    given = ("run", "hbench-classification", *given, "--out", tmp_path / "out", "--ray", "off")
    assert raybench(*given).code == 2
    said = raybench(*given, "--on-bad-input", "skip", "--limit", "20")
    assert said.code == 0, said.err
    assert "takes the place of a run that did not end (limit (none)" in said.err
    only_line(raybench(*given, "--on-bad-input", "skip", "--limit", "21"), "limit 20 → 21", "--overwrite")


def test_a_folder_of_runs_names_those_below_it(raybench, tmp_path):
    given = ("--benchmarks", PATCHES / "benchmarks", "--results", PATCHES / "results/block4", *INLINE)
    for name in ("a", "b"):
        assert raybench("run", "hbench-classification", *given, "--out", tmp_path / "all" / name).code == 0
    assert runs_below(str(tmp_path / "all")) == ["a", "b"]
    assert runs_below(str(tmp_path)) == ["all/a", "all/b"]
    only_line(
        raybench("report", tmp_path / "all", "--out", tmp_path / "r.html"), f"below it: {tmp_path}/all/a {tmp_path}"
    )
    with pytest.raises(ConfigError, match=r"no manifest\.json\); name the --out of a run"):
        finished_manifest(str(tmp_path / "none"))


def test_a_shard_size_is_of_images_and_leaves_pairs_and_scores_alone(raybench, tmp_path):
    given = ("run", "hbench-classification", *GIVEN, "--descriptor", "meanstd", *INLINE)
    for size in ("1", "7"):
        assert raybench(*given, "--shard-size", size, "--out", tmp_path / size).code == 0
    stages = [json.loads((tmp_path / size / "manifest.json").read_text())["stages"] for size in ("1", "7")]
    first, other = ({stage["name"]: stage["shards"] for stage in own} for own in stages)
    assert first.pop("extract") > other.pop("extract")
    assert first == other
    tables = [(tmp_path / size / "hbench_classification.csv").read_bytes() for size in ("1", "7")]
    assert tables[0] == tables[1]
