"""Words that a new user once stumbled over: names of the wrong kind, folders one beside the other, packages, links."""

import json
import shutil

import numpy as np
import pytest
from conftest import GOLDEN, only_line
from PIL import Image

from raybench.errors import ConfigError, StorageError
from raybench.formats.parquet import read_parquet, write_parquet
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
        ("hpatches/run", "is inside --data"),
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
    said = raybench("report", tmp_path / "all", "--out", tmp_path / "r.html")
    assert said.code == 0, said.err
    only_line(raybench("verify", tmp_path / "all"), f"below it: {tmp_path}/all/a {tmp_path}")
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


@pytest.mark.parametrize(
    ("below", "words"),
    [
        ("", "is a level too high; name {}/hpatches"),
        ("hpatches/v_loft", "is a level too low; name {}/hpatches"),
        ("benchmarks", "holds 12 files (classification/"),
        ("empty", "is empty"),
        ("packed.zip", "is a packed file; unpack it"),
        ("none", "does not exist"),
    ],
)
def test_a_folder_without_strips_is_told_what_it_is(raybench, tmp_path, below, words):
    shutil.copytree(PATCHES / "hpatches", tmp_path / "in/hpatches")
    shutil.copytree(PATCHES / "benchmarks", tmp_path / "in/benchmarks" if below == "benchmarks" else tmp_path / "other")
    (tmp_path / "in/packed.zip").write_bytes(b"PK")
    (tmp_path / "in/empty").mkdir()
    given = ("--data", tmp_path / "in" / below, "--benchmarks", PATCHES / "benchmarks", "--descriptor", "meanstd")
    said = raybench("check", "hbench-classification", *given)
    only_line(said, words.format(tmp_path / "in"), "expected a folder with patch strips SEQ/IM.png")


def test_a_level_too_high_is_told_the_folder_that_holds_strips_not_the_first(raybench, tmp_path):
    shutil.copytree(PATCHES / "hpatches", tmp_path / "hpatches")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/a.benchmark").touch()
    given = ("--data", tmp_path, "--benchmarks", PATCHES / "benchmarks", "--descriptor", "meanstd")
    only_line(raybench("check", "hbench-classification", *given), f"is a level too high; name {tmp_path}/hpatches;")


def test_folders_and_files_in_the_place_of_each_other_are_told_apart(raybench, tmp_path):
    given = ("--data", PATCHES / "hpatches", "--descriptor", "meanstd", "--benchmarks")
    only_line(
        raybench("check", "hbench-matching", *given, PATCHES / "benchmarks/classification"), "of another benchmark"
    )
    only_line(raybench("check", "hbench-classification", *given, PATCHES / "README.md"), "does not exist")
    strips = ("--benchmarks", PATCHES / "benchmarks", "--features", PATCHES / "hpatches")
    only_line(raybench("check", "hbench-classification", *strips), "for strips SEQ/IM.png give --data")
    truth = ("--ground-truth", GOLDEN / "disc/data/small/val_groundtruth_matches.csv")
    only_line(raybench("check", "disc2021", *truth, "--results", tmp_path), "is a folder without predictions.csv")
    (tmp_path / "disc/val_query").mkdir(parents=True)
    said = raybench("check", "disc2021", "--data", tmp_path, "--descriptor", "thumbnail")
    assert (
        f"{tmp_path}: has no folder val_query or queries; expected the DISC root; perhaps {tmp_path}/disc" in said.err
    )


def test_an_option_of_another_benchmark_is_told_whose_it_is(raybench):
    said = raybench("run", "hpatches-matching", "--benchmarks", "x")
    only_line(said, "no such option --benchmarks; hbench-classification, hbench-matching, hbench-retrieval take it")


def test_predictions_joined_by_tabs_or_semicolons_are_told_to_use_commas(raybench, tmp_path):
    truth = ("--ground-truth", GOLDEN / "disc/data/small/val_groundtruth_matches.csv")
    for mark, word in (("\t", "tabs"), (";", "semicolons")):
        (tmp_path / "p.csv").write_text(f"Q1{mark}R1{mark}0.5\n")
        only_line(raybench("check", "disc2021", *truth, "--results", tmp_path / "p.csv"), f"joined by {word}, expected")


def test_columns_without_a_row_are_written_and_read_back():
    columns = {"rank": np.zeros(0, np.int64), "name": np.zeros(0, np.str_)}
    assert {name: len(values) for name, values in read_parquet(write_parquet(columns), "x").items()} == {
        "rank": 0,
        "name": 0,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_package\n", "failing imports no_such_package, which is not there; pip install it"),
        ("one = 1\ntwo = three\n", "NameError: name 'three' is not defined, at {}/failing.py:2"),
    ],
)
def test_a_module_that_can_not_be_imported_is_told_by_its_line_or_by_what_it_lacks(raybench, here, text, words):
    (here / "failing.py").write_text(text)
    said = raybench("check", "hbench-classification", *GIVEN, "--descriptor", "failing:Mine")
    only_line(said, words.format(here))
