"""Wrong input of TSS: one clear line each, all at once, before any compute, exit code 2."""

import csv
import json
import shutil
import struct

import numpy as np
import pytest
from conftest import GOLDEN, only_line
from PIL import Image

from raybench.benchmarks.tss import inputs
from raybench.formats.flo import read_flow, write_flo


@pytest.fixture
def trees(tmp_path):
    """Copies of the golden trees to spoil: truth and results."""
    for tree in ("Dataset", "Results"):
        shutil.copytree(GOLDEN / "tss/data" / tree, tmp_path / tree)
    return tmp_path / "Dataset/MINI", tmp_path / "Results/MINI"


@pytest.fixture
def run(raybench, trees, tmp_path):
    def call(*more, command="run", out="out"):
        given = ("--data", tmp_path / "Dataset", "--out", tmp_path / out, "--ray", "off")
        entry = () if "--descriptor" in more or "--results" in more else ("--results", tmp_path / "Results")
        return raybench(command, "tss", *given, *entry, *more)

    return call


def spoil_flow(file, change):
    flow = read_flow(file.read_bytes(), "", ".flo").copy()
    change(flow)
    file.write_bytes(write_flo(flow))


@pytest.mark.parametrize("tree", [0, 1])
def test_a_wrong_magic(run, trees, tree):
    file = trees[tree] / "p01_same/flow2.flo"
    file.write_bytes(b"NOPE" + file.read_bytes()[4:])
    only_line(run(), file, "PIEH", "NOPE")
    only_line(run(command="check"), file, "PIEH", "NOPE")


@pytest.mark.parametrize("tree", [0, 1])
def test_a_truncated_flow_and_one_with_more_than_it_says(run, trees, tree):
    file = trees[tree] / "p02_smaller/flow1.flo"
    whole = file.read_bytes()
    file.write_bytes(whole[:-16])
    only_line(run(), file, f"{len(whole) - 28:,} bytes", f"expected {len(whole) - 12:,}", "truncated")
    file.write_bytes(whole + b"more")
    only_line(run(), file, f"{len(whole) - 8:,} bytes", f"expected {len(whole) - 12:,}")


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-3, 5), (2_000_000, 5)])
def test_a_size_that_can_t_be(run, trees, size):
    file = trees[1] / "p02_smaller/flow1.flo"
    file.write_bytes(b"PIEH" + struct.pack("<ii", *size))
    only_line(run(), file, f"{size[0]}x{size[1]}", "expected 1 to 99,999")


@pytest.mark.parametrize("seen", ["at the start", "by the run"])
def test_every_nan_is_named_with_its_file_and_place(run, trees, seen, monkeypatch):
    """Small sets are read through at the start, also by `check`; of large ones the scoring stage finds all."""
    if seen == "by the run":
        monkeypatch.setattr(inputs, "LOOK_BYTES", 0)
    files = [trees[1] / "p01_same/flow1.flo", trees[1] / "p06_flipped/flow2.flo", trees[0] / "p08_greysame/flow2.flo"]
    for file in files:
        spoil_flow(file, lambda flow: flow.__setitem__((4, 7, 1), np.nan))
    for command in ("run", "check") if seen == "at the start" else ("run",):
        said = run(command=command)
        assert said.code == 2
        assert len(said.errors) == 3
        assert all(str(file) in line and "x=7, y=4" in line for file, line in zip(files, said.errors, strict=True))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA"])
def test_a_mask_of_another_channel_count(run, trees, mode):
    file = trees[1] / "p01_same/mask1.png"
    Image.open(file).convert(mode).save(file)
    only_line(run(), file, "one channel")


def test_a_true_mask_of_another_size_than_its_flow(run, trees):
    file = trees[0] / "p01_same/mask2.png"
    Image.open(file).resize((7, 5)).save(file)
    only_line(run(), file, "7x5", "flow2.flo is 40x36")


def test_a_mask_that_is_no_image_or_cut_short(run, trees):
    file = trees[1] / "p01_same/mask1.png"
    whole = file.read_bytes()
    file.write_bytes(b"no image at all, but long enough for a header of PNG")
    only_line(run(), file, "no PNG")
    file.write_bytes(whole[:70])
    only_line(run(), file, "damaged")


def test_missing_pairs_are_listed_all_at_once(run, trees):
    for pair in ("p02_smaller", "p05_noflow", "p09_greysize"):
        shutil.rmtree(trees[1] / pair)
    said = run()
    assert said.code == 2
    assert len(said.errors) == 3
    assert all("--allow-missing" in line for line in said.errors)
    assert [line.split(":")[0].rpartition("/")[2] for line in said.errors] == [
        "p02_smaller",
        "p05_noflow",
        "p09_greysize",
    ]


def test_missing_pairs_may_be_left_out_and_are_counted(run, trees, tmp_path):
    shutil.rmtree(trees[1] / "p02_smaller")
    said = run("--allow-missing")
    assert said.code == 0, said.err
    assert "MISSING: 1 of 10 pairs of MINI have no result (p02_smaller)" in said.out
    rows = list(csv.DictReader((tmp_path / "out/tss.csv").open()))
    assert rows[0]["pairs"] == "9"
    expected = json.loads((GOLDEN / "tss/expected.json").read_text())["vc"]
    kept = [row["T"][4] for name, row in expected.items() if name.startswith("p") and "p02" not in name]
    assert float(rows[0]["T5"]) == pytest.approx(np.mean(kept), abs=1e-9)
    assert any("p02_smaller" in line for line in json.loads((tmp_path / "out/manifest.json").read_text())["skipped"])


def test_a_group_without_any_result_is_an_empty_row(run, trees, tmp_path):
    shutil.copytree(trees[0], trees[0].parent / "OTHER")
    assert run("--allow-missing").code == 0
    rows = {row["group"]: row for row in csv.DictReader((tmp_path / "out/tss.csv").open())}
    assert (rows["OTHER"]["pairs"], rows["OTHER"]["T5"]) == ("0", "")
    assert rows["mean"]["T5"] == rows["MINI"]["T5"]


def test_a_result_for_an_unknown_pair_is_skipped_and_said(run, trees, tmp_path):
    shutil.copytree(trees[1] / "p01_same", trees[1] / "p99_unknown")
    said = run()
    assert said.code == 0, said.err
    assert "SKIPPED: 1 results have no ground truth (MINI/p99_unknown)" in said.out
    assert any("p99_unknown" in line for line in json.loads((tmp_path / "out/manifest.json").read_text())["skipped"])
    assert next(csv.DictReader((tmp_path / "out/tss.csv").open()))["pairs"] == "10"


def test_all_problems_are_listed_together(run, trees):
    shutil.rmtree(trees[1] / "p02_smaller")
    (trees[0] / "p03_larger/flip_gt.txt").write_text("perhaps")
    (trees[0] / "p04_nomask/pair.txt").unlink()
    (trees[1] / "p05_noflow/mask1.png").write_bytes(b"")
    (trees[1] / "p06_flipped/flow1.flo").write_bytes(b"PIEH")
    spoil_flow(trees[1] / "p07_inverted/flow1.flo", lambda flow: flow.__setitem__((4, 7, 1), np.nan))
    said = run()
    assert said.code == 2
    assert len(said.errors) == 6, said.err
    for word in (
        "p02_smaller",
        "flip_gt.txt",
        "pair.txt",
        "mask1.png",
        "p06_flipped/flow1.flo",
        "p07_inverted/flow1.flo",
    ):
        assert sum(word in line for line in said.errors) == 1, word


def test_pairs_that_can_t_be_read_may_be_skipped_and_are_counted_and_listed(run, trees, tmp_path):
    """One seen at the start, one only in its body."""
    (trees[1] / "p01_same/flow1.flo").write_bytes(b"PIEH")
    spoil_flow(trees[1] / "p02_smaller/flow1.flo", lambda flow: flow.__setitem__((0, 0), np.nan))
    said = run("--on-bad-input", "skip")
    assert said.code == 0, said.err
    assert said.out.count("SKIPPED: 1 pairs") == 2
    assert next(csv.DictReader((tmp_path / "out/tss.csv").open()))["pairs"] == "8"
    skipped = json.loads((tmp_path / "out/manifest.json").read_text())["skipped"]
    assert [name in line for name, line in zip(("p01_same", "p02_smaller"), skipped, strict=True)] == [True, True]


def test_masks_without_any_foreground_and_flow_without_known_pixels(run, trees):
    for tree in trees:
        file = tree / "p01_same/mask1.png"
        Image.fromarray(np.asarray(Image.open(file)) * 0).save(file)
    spoil_flow(trees[0] / "p02_smaller/flow2.flo", lambda flow: flow.fill(1e10))
    said = run()
    assert said.code == 2
    assert [("mask1.png" in line, "0/0" in line) for line in said.errors] == [(True, True), (False, False)]
    assert "flow2.flo: no pixel with known flow" in said.errors[1]


def test_a_folder_a_level_too_low_or_too_high_or_not_there(run, trees, tmp_path):
    only_line(run("--results", trees[1]), trees[1], "one group", "parent")
    (tmp_path / "above").mkdir()
    shutil.move(tmp_path / "Results", tmp_path / "above/Results")
    only_line(run("--results", tmp_path / "above"), tmp_path / "above", "level too high")
    only_line(run("--results", tmp_path / "nowhere"), tmp_path / "nowhere", "does not exist")
    (tmp_path / "empty/G/P").mkdir(parents=True)
    only_line(run("--results", tmp_path / "empty"), "holds no pair")


def test_results_of_quite_another_set(run, trees, tmp_path):
    shutil.copytree(trees[1], tmp_path / "else/OTHER")
    only_line(run("--results", tmp_path / "else"), tmp_path / "else", "no result for any of the 10 pairs")


def test_no_place_to_enter_or_two_and_flags_that_contradict(run, raybench, tmp_path):
    only_line(raybench("run", "tss", "--data", tmp_path / "Dataset", "--out", tmp_path / "o"), "--descriptor", "none")
    only_line(run("--results", tmp_path / "Results", "--descriptor", "dis"), "--descriptor and --results")
    only_line(raybench("run", "tss", "--results", tmp_path, "--out", tmp_path / "o"), "--data is missing")
    only_line(run("--descriptor", "dis", "--allow-missing"), "--allow-missing", "--results")
    only_line(run("--compat", "octave"), "compat", "vc", "matlab")


def test_an_unknown_method_lists_them(run):
    only_line(run("--descriptor", "diss"), "did you mean dis?", "zero", "farneback", "dense-sift")
    only_line(run("--descriptor", "sift"), "sift: is a patch descriptor", "dense-sift")
    only_line(run("--descriptor", "flow_methods:NoFlow"), "no method flow()")
    only_line(run("--descriptor", "flow_methods:Shift", "--descriptor-args", '{"w": 1}'), "'w'")


def test_a_method_that_gives_nan_or_a_wrong_shape_names_the_pair(run):
    only_line(run("--descriptor", "flow_methods:NotANumber", out="a"), "MINI/p01_same", "nan", "NaN")
    only_line(
        run("--descriptor", "flow_methods:WrongShape", out="b"), "MINI/p01_same", "(34, 44)", "(height, width, 2)"
    )


def test_an_image_that_is_missing_or_broken_names_itself_where_it_is_needed(run, trees, tmp_path):
    """Scores of results need no images; pictures and methods do."""
    image = trees[0] / "p03_larger/image2.png"
    whole = image.read_bytes()
    image.unlink()
    assert run(out="scored").code == 0
    only_line(run("--visualize"), "p03_larger: no image2.png")
    only_line(run("--descriptor", "zero"), "p03_larger: no image2.png")
    image.write_bytes(whole[:60])
    only_line(run("--descriptor", "zero"), image, "damaged")
    said = run("--descriptor", "zero", "--on-bad-input", "skip", out="skipped")
    assert said.code == 0 and "SKIPPED: 1 pairs" in said.out, said.err
    assert not (tmp_path / "skipped/results/MINI/p03_larger").exists()


def halve(file):
    flow = read_flow(file.read_bytes(), "", ".flo")
    file.write_bytes(write_flo(np.ascontiguousarray(flow[::2, ::2] / 2)))


def test_flows_of_another_size_are_noted_and_more_so_where_only_one_side_is(run, trees):
    pair = trees[1] / "p01_same"
    halve(pair / "flow1.flo")
    for said in (run(command="check"), run()):
        assert said.code == 0, said.err
        assert "UNLIKE SIDES: flow1 and flow2 of 1 pairs have different scales (MINI/p01_same)" in said.out + said.err
        assert "SCALED: flows of " in said.out + said.err
    halve(pair / "flow2.flo")
    said = run(command="check")
    assert "UNLIKE SIDES" not in said.err
    assert "MINI/p01_same: " in said.err
