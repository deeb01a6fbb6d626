"""The same patches and pairs from every place one may enter give the same distances, and so the same table."""

import csv
import shutil

import h5py
import numpy as np
import pytest
from pair_patches import make_patches
from patch_descriptors import Block4

from raybench import storage


@pytest.fixture
def patches(tmp_path):
    return make_patches(tmp_path / "patches")


def run(raybench, out, *more, code=0):
    said = raybench("run", "patch-pairs", "--out", out, "--ray", "off", *more)
    assert said.code == code, said.err
    return said


def figures(out):
    with (out / "patch_pairs.csv").open() as file:
        return [list(row.values())[1:] for row in csv.DictReader(file)]


def distances(out):
    (path,) = (out / "results").glob("*.csv")
    return path.read_text()


@pytest.fixture
def expected(patches):
    """The distances worked out here, pair by pair."""
    vectors = Block4().describe(Block4().prepare(patches.pixels)).astype(np.float64)
    return [float(np.sqrt(((vectors[a] - vectors[b]) ** 2).sum())) for a, b, _ in patches.lines]


def assert_right(out, patches, expected):
    with (out / "results" / "list.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["label"]) for row in rows] == [match for _, _, match in patches.lines]
    assert [float(row["distance"]) for row in rows] == pytest.approx(expected, abs=1e-6)


BLOCK = ("--descriptor", "patch_descriptors:Block4")


def test_sheets_singles_and_strips_give_the_distances_worked_out_by_hand(raybench, patches, expected, tmp_path):
    sheets, singles, strips = patches.sheets(), patches.singles(), patches.strips()
    lists = {
        "m50": (sheets, "list.txt", patches.phototour),
        "numbers": (sheets, "list.csv", patches.named(str, header="")),
        "names": (singles, "list.csv", patches.named("p{}".format)),
        "files": (singles, "list.csv", patches.named("deep/p{}.png".format, label=lambda match: str(bool(match)))),
        "strips": (strips, "list.csv", patches.named(lambda number: f"i_{number // 150}.ref.{number % 150}")),
    }
    for name, (data, file, text) in lists.items():
        given = patches.written(file, text)
        run(raybench, tmp_path / name, "--pairs", given, "--data", data, *BLOCK, "--shard-size", "1")
        assert_right(tmp_path / name, patches, expected)
    assert len({tuple(map(tuple, figures(tmp_path / name))) for name in lists}) == 1


def test_vectors_by_number_and_by_name_give_the_same_distances(raybench, patches, expected, tmp_path):
    vectors = Block4().describe(Block4().prepare(patches.pixels))
    folder = patches.folder
    np.save(folder / "v.npy", vectors)
    np.savez(folder / "v.npz", vectors=vectors)
    np.savetxt(folder / "v.csv", vectors, delimiter=",")
    with h5py.File(folder / "v.h5", "w") as file:
        file["vectors"] = vectors
    shuffled = np.random.default_rng(3).permutation(len(vectors))
    np.savez(folder / "named.npz", vectors=vectors[shuffled], image_names=[f"deep/p{one}.png" for one in shuffled])
    by_number = patches.written("list.txt", patches.phototour)
    by_name = patches.written("list.csv", patches.named("p{}".format))
    for name in ("v.npy", "v.npz", "v.csv", "v.h5", "named.npz"):
        pairs = by_name if name == "named.npz" else by_number
        run(raybench, tmp_path / name, "--pairs", pairs, "--features", folder / name)
        assert_right(tmp_path / name, patches, expected)


def test_results_read_back_to_the_same_table(raybench, patches, tmp_path):
    pairs = patches.written("list.csv", patches.named("p{}".format))
    run(raybench, tmp_path / "out", "--pairs", pairs, "--data", patches.singles(), "--descriptor", "meanstd")
    table = (tmp_path / "out/patch_pairs.csv").read_text()
    for name, results in {"again": "out/results", "whole": "out", "file": "out/results/list.csv"}.items():
        run(raybench, tmp_path / name, "--results", tmp_path / results)
        assert (tmp_path / name / "patch_pairs.csv").read_text() == table


def test_a_run_on_object_storage_is_read_back_likewise(raybench, patches, tmp_path, s3):
    out = f"{s3.bucket('pairs-again')}/out"
    pairs = patches.written("list.csv", patches.named("p{}".format))
    run(raybench, out, "--pairs", pairs, "--data", patches.singles(), "--descriptor", "meanstd")
    run(raybench, tmp_path / "again", "--results", out)
    assert (tmp_path / "again/patch_pairs.csv").read_bytes() == storage.read(f"{out}/patch_pairs.csv")


def test_another_distance_needs_no_patch_again(raybench, patches, tmp_path):
    cases = {
        "sheets": (patches.sheets(), patches.written("list.txt", patches.phototour)),
        "singles": (patches.singles(), patches.written("list.csv", patches.named("p{}".format))),
        "strips": (patches.strips(), patches.written("s.csv", patches.named(lambda n: f"i_{n // 150}.ref.{n % 150}"))),
    }
    for name, (data, pairs) in cases.items():
        given = ("--pairs", pairs, "--data", data, "--descriptor", "meanstd")
        run(raybench, tmp_path / name, *given)
        run(raybench, tmp_path / f"{name}-L1", *given, "--distance", "L1")
        data.rename(patches.folder / "moved")
        said = raybench("rescore", tmp_path / name, "--distance", "L1", "--out", tmp_path / "r", "--ray", "off")
        assert said.code == 0, said.err
        assert figures(tmp_path / "r") == figures(tmp_path / f"{name}-L1") != figures(tmp_path / name)
        (patches.folder / "moved").rename(data)
        (tmp_path / "r").rename(tmp_path / f"{name}-rescored")


def test_patches_that_info_txt_said_too_late_are_described(raybench, patches, expected, tmp_path):
    folder, store = patches.sheets(), ("--store", tmp_path / "store")
    whole = (folder / "info.txt").read_text()
    (folder / "info.txt").write_text("0 0\n" * 270)
    few = [line for line in patches.phototour.splitlines(True) if max(map(int, line.split()[:4:3])) < 270]
    run(
        raybench,
        tmp_path / "few",
        "--pairs",
        patches.written("list.txt", "".join(few)),
        "--data",
        folder,
        *store,
        *BLOCK,
    )
    (folder / "info.txt").write_text(whole)
    pairs = patches.written("list.txt", patches.phototour)
    run(raybench, tmp_path / "all", "--pairs", pairs, "--data", folder, *store, *BLOCK)
    assert_right(tmp_path / "all", patches, expected)


def test_singles_and_sheets_may_lie_in_an_archive(raybench, patches, expected, tmp_path):
    by_name = patches.written("list.csv", patches.named("p{}".format))
    for kind in ("tar", "zip"):
        archive = shutil.make_archive(str(patches.folder / "patches"), kind, patches.singles(f"singles-{kind}"))
        run(raybench, tmp_path / kind, "--pairs", by_name, "--data", archive, *BLOCK)
        assert_right(tmp_path / kind, patches, expected)
    archive = shutil.make_archive(str(patches.folder / "sheets"), "zip", patches.sheets())
    by_number = patches.written("list.txt", patches.phototour)
    run(raybench, tmp_path / "sheets-zip", "--pairs", by_number, "--data", archive, *BLOCK)
    assert_right(tmp_path / "sheets-zip", patches, expected)


def test_info_txt_is_read_on_object_storage_too(raybench, patches, expected, tmp_path, s3):
    folder = patches.sheets()
    data, pairs = s3.upload(folder, f"{s3.bucket('sheets')}/liberty"), patches.written("list.txt", patches.phototour)
    run(raybench, tmp_path / "out", "--pairs", pairs, "--data", data, *BLOCK)
    assert_right(tmp_path / "out", patches, expected)
    assert "NO INFO" not in (tmp_path / "out/manifest.json").read_text()
    pairs = patches.written("list.txt", patches.phototour + "400 1 0 2 2 0 0\n")
    said = run(raybench, tmp_path / "beyond", "--pairs", pairs, "--data", data, *BLOCK, code=2)
    assert "patch '400' is not there; info.txt" in said.errors[0]


def test_a_run_is_verified_by_other_cuts(raybench, patches, tmp_path):
    pairs = patches.written("list.txt", patches.phototour)
    run(raybench, tmp_path / "out", "--pairs", pairs, "--data", patches.sheets(), "--descriptor", "resize")
    said = raybench("verify", tmp_path / "out", "--share", "1")
    assert said.code == 0, said.err
    assert "unchanged" in said.out


def test_colours_become_the_grey_of_strips(raybench, patches, expected, tmp_path):
    from PIL import Image

    singles = patches.singles()
    for path in (singles / "deep").iterdir():
        Image.open(path).convert("RGB").save(path, compress_level=1)
    pairs = patches.written("list.csv", patches.named("p{}".format))
    run(raybench, tmp_path / "out", "--pairs", pairs, "--data", singles, *BLOCK)
    assert_right(tmp_path / "out", patches, expected)


def test_a_limit_that_leaves_no_match_leaves_figures_empty(raybench, patches, tmp_path):
    patches.lines.sort(key=lambda line: line[2])
    pairs = patches.written("list.csv", patches.named("p{}".format))
    run(
        raybench,
        tmp_path / "out",
        "--pairs",
        pairs,
        "--data",
        patches.singles(),
        "--descriptor",
        "meanstd",
        "--limit",
        9,
    )
    assert figures(tmp_path / "out") == [["9", "0", "", "", "", ""]]


def test_the_worst_pairs_are_shown(raybench, patches, tmp_path):
    import json

    pairs = patches.written("list.csv", patches.named("p{}".format))
    run(raybench, tmp_path / "out", "--pairs", pairs, "--data", patches.singles(), "--descriptor", "meanstd")
    cases = json.loads((tmp_path / "out/pictures/cases.json").read_text())
    assert {case["kind"] for case in cases} == {"missed", "false alarm"}
    labelled = {frozenset((f"deep/p{a}.png", f"deep/p{b}.png")): match for a, b, match in patches.lines}
    for case in cases:
        assert labelled[frozenset(panel["name"] for panel in case["panels"])] == (case["kind"] == "missed")


def test_points_are_drawn_where_the_list_says_them_and_pairs_elsewhere(raybench, patches, tmp_path):
    import json

    sheets, singles = patches.sheets(), patches.singles()
    given = ("--descriptor", "meanstd", "--bootstrap", "20")
    points = patches.written("list.txt", patches.phototour)
    run(raybench, tmp_path / "points", "--pairs", points, "--data", sheets, *given)
    names = patches.written("list.csv", patches.named("p{}".format))
    run(raybench, tmp_path / "pairs", "--pairs", names, "--data", singles, *given)
    for kind in ("points", "pairs"):
        assert json.loads((tmp_path / kind / "samples/samples.json").read_text())["kind"] == kind
        with (tmp_path / kind / "tables/intervals.csv").open() as file:
            for row in csv.DictReader(file):
                assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def test_repeated_pairs_are_counted_and_noted(raybench, patches, tmp_path):
    patches.lines.extend(patches.lines[:3] + [(b, a, match) for a, b, match in patches.lines[:2]])
    pairs = patches.written("list.csv", patches.named("p{}".format))
    run(raybench, tmp_path / "out", "--pairs", pairs, "--data", patches.singles(), "--descriptor", "meanstd")
    assert figures(tmp_path / "out")[0][0] == str(len(patches.lines))
    assert "stand in the list before; each counts" in (tmp_path / "out/manifest.json").read_text()


def test_patches_of_several_sides_go_with_a_model_that_resizes(raybench, patches, tmp_path):
    import torch
    from PIL import Image

    singles = patches.singles()
    for number in range(0, 300, 3):
        path = singles / "deep" / f"p{number}.png"
        Image.open(path).resize((48, 48)).save(path)
    model = torch.jit.trace(torch.nn.Flatten(), torch.zeros(2, 1, 16, 16))
    model.save(patches.folder / "flat.pt")
    pairs = patches.written("list.csv", patches.named("p{}".format))
    given = ("--pairs", pairs, "--data", singles, "--descriptor", f"torchscript:{patches.folder / 'flat.pt'}")
    said = run(raybench, tmp_path / "no", *given, code=2)
    assert "patches of several sides" in said.errors[0]
    run(raybench, tmp_path / "out", *given, "--input-size", "16")
    assert len(figures(tmp_path / "out")) == 1


def test_tables_are_byte_equal_on_ray(raybench, patches, local_ray, tmp_path):
    pairs = patches.written("list.txt", patches.phototour)
    given = ("run", "patch-pairs", "--pairs", pairs, "--data", patches.sheets(), "--descriptor", "sift")
    seen = set()
    for name, more in {"inline": ("--ray", "off"), "ray": ("--device", "cpu", "--shard-size", "1")}.items():
        assert raybench(*given, "--out", tmp_path / name, *more).code == 0
        seen.add((distances(tmp_path / name), (tmp_path / name / "patch_pairs.csv").read_text()))
    assert len(seen) == 1
