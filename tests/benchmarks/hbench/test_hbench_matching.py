"""Every golden figure of HPatches 2016 matching, through the command line, from every place one may enter."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from conftest import GOLDEN, outputs_of_every_plan

CASE = GOLDEN / "hbench_matching"
DATA = CASE / "data"
SAID = json.loads((CASE / "expected.json").read_text())
COMPUTED = ("mini_easy_illum", "mini_hard_viewpoint", "mini_tough_viewpoint")  # mini_relabelled is permuted in .results
INLINE = ("--ray", "off")


def table(out, name="hbench_matching.csv"):
    with (out / name).open() as file:
        return list(csv.DictReader(file))


def run(raybench, out, *given, benchmarks=DATA / "benchmarks"):
    said = raybench("run", "hbench-matching", "--benchmarks", benchmarks, "--out", out, *given)
    assert said.code == 0, said.err
    return said


def assert_golden(out, name, tasks):
    rows = {row["task"]: row for row in table(out)}
    pairs = {(row["task"], row["pair"]): row for row in table(out, "tables/per_pair.csv")}
    for task in tasks:
        expected = SAID["expected"][f"{name}/{task}"]
        assert int(rows[task]["pairs"]) == len(expected["pairs"])
        for column in ("map", "map_2nnr"):
            assert float(rows[task][column]) == pytest.approx(expected[column], abs=SAID["tolerance"])
        for pair in expected["pairs"]:
            for column in ("ap", "ap_2nnr"):
                found = float(pairs[task, pair["pair"]][column])
                assert found == pytest.approx(pair[column], abs=SAID["tolerance"]), (task, pair["pair"], column)


ENTRIES = {
    "strips": ("--data", DATA / "hpatches", "--descriptor", "patch_descriptors:Block4"),
    "vectors": ("--features", DATA / "descriptors/block4"),
    "block4": ("--results", DATA / "results/block4"),
    "shifted": ("--results", DATA / "results/shifted"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_figures_are_the_published_ones(raybench, tmp_path, entry):
    run(raybench, tmp_path / "out", *ENTRIES[entry], *INLINE)
    from_results = entry in ("block4", "shifted")
    tasks = (*COMPUTED, "mini_relabelled") if from_results else COMPUTED
    assert len(table(tmp_path / "out")) == 4
    assert_golden(tmp_path / "out", entry if from_results else "block4", tasks)


@pytest.mark.parametrize("entry", ["strips", "shifted"])
def test_figures_on_ray_are_the_published_ones(raybench, tmp_path, local_ray, entry):
    run(raybench, tmp_path / "out", *ENTRIES[entry], "--device", "cpu", "--cpus", "2")
    assert_golden(tmp_path / "out", "shifted" if entry == "shifted" else "block4", COMPUTED)


def test_tables_and_results_are_byte_equal_for_every_shard_size_and_executor(raybench, tmp_path, local_ray):
    given = ("--data", DATA / "hpatches", "--descriptor", "sift", "--k", "3")
    seen = outputs_of_every_plan(lambda out, *more: run(raybench, out, *given, *more), tmp_path)
    assert len(seen) == 1
    assert len(seen.pop()) == 14  # one of each for four tasks: results, samples


@pytest.mark.parametrize("k", [1, 2, 5])
def test_own_results_read_back_to_the_same_table(raybench, tmp_path, k):
    run(raybench, tmp_path / "a", *ENTRIES["vectors"], "--k", k, *INLINE)
    run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", *INLINE)
    for a, b in zip(table(tmp_path / "a"), table(tmp_path / "b"), strict=True):
        beyond = float(a.pop("map_ranked")) - float(b.pop("map_ranked"))
        assert a == b
        assert 0 <= beyond < 1 / (k + 1)  # a true target beyond K counts 0 there, 1 / rank here
        assert (a["map_2nnr"] == "") == (k == 1)


def test_with_every_target_in_the_list_the_ranked_figure_reads_back_too(raybench, tmp_path):
    given = (*ENTRIES["vectors"], "--task", "mini_easy_illum")
    run(raybench, tmp_path / "a", *given, "--k", "15", *INLINE)
    run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", "--task", "mini_easy_illum", *INLINE)
    assert (tmp_path / "a/hbench_matching.csv").read_bytes() == (tmp_path / "b/hbench_matching.csv").read_bytes()


def test_results_are_in_the_published_layout_with_every_digit(raybench, tmp_path):
    run(raybench, tmp_path, *ENTRIES["vectors"], *INLINE)
    lines = (tmp_path / "results/matching/block4/mini_hard_viewpoint.results").read_text().splitlines()
    published = (DATA / "results/block4/matching/mini_hard_viewpoint.results").read_text().splitlines()
    assert len(lines) == len(published) == 50
    for number, (line, other) in enumerate(zip(lines, published, strict=True)):
        if number % 5 in (0, 1, 3):  # heads and indices
            assert line == other
        else:
            assert np.square(np.fromstring(line, sep=",")) == pytest.approx(np.fromstring(other, sep=","), rel=1e-8)


@pytest.mark.parametrize("distance", ["L2", "L1", "hamming"])
def test_figures_from_vectors_are_those_of_a_full_distance_matrix(raybench, tmp_path, distance):
    from scipy.spatial.distance import cdist

    folder = DATA / "descriptors/block4"
    if distance == "hamming":
        folder = tmp_path / "bits"
        for file in (DATA / "descriptors/block4").glob("*/*.csv"):
            target = folder / file.relative_to(DATA / "descriptors/block4")
            target.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(target, np.loadtxt(file, delimiter=";") > 0, fmt="%d", delimiter=";")
    run(raybench, tmp_path / "out", "--features", folder, "--distance", distance, *INLINE)
    metric = {"L2": "euclidean", "L1": "cityblock", "hamming": "hamming"}[distance]
    for row in table(tmp_path / "out", "tables/per_pair.csv"):
        if row["task"] == "mini_relabelled":
            continue
        a, b = (np.loadtxt(folder / f"{im.replace('.', '/')}.csv", delimiter=";") for im in row["pair"].split(","))
        order = np.argsort(np.round(cdist(a, b, metric), 9), axis=1, kind="stable")
        ranks = (order == np.arange(len(a))[:, None]).argmax(axis=1) + 1
        assert float(row["success_rate"]) == pytest.approx((ranks == 1).mean())
        assert float(row["ap_ranked"]) == pytest.approx((1 / ranks).mean())
        assert float(row["ap_all"]) == pytest.approx(float(row["ap"]) * (ranks == 1).mean())


def test_labels_say_where_a_patch_is_found(raybench, tmp_path):
    """The targets permuted as mini_relabelled's labels say give back its published results."""
    vectors = shutil.copytree(DATA / "descriptors/block4", tmp_path / "block4")
    blocks = (DATA / "benchmarks/matching/mini_relabelled.labels").read_text().splitlines()
    for head, permutation in zip(blocks[::3], blocks[2::3], strict=True):
        file = vectors / f"{head.split(',')[1].replace('.', '/')}.csv"
        lines = file.read_text().splitlines()
        file.write_text("\n".join(lines[int(row)] for row in permutation.split(",")) + "\n")
    run(raybench, tmp_path / "out", "--features", vectors, "--task", "mini_relabelled", *INLINE)
    assert_golden(tmp_path / "out", "block4", ["mini_relabelled"])


def test_views_are_means_over_pairs_by_noise_change_and_sequence(raybench, tmp_path):
    run(raybench, tmp_path, *ENTRIES["vectors"], *INLINE)
    pairs = table(tmp_path, "tables/per_pair.csv")
    views = {(row["view"], row["group"]): row for row in table(tmp_path, "tables/views.csv")}
    assert [group for view, group in views if view == "noise"] == ["easy", "hard", "tough"]
    for key, part in (
        (("noise", "tough"), ".t"),
        (("change", "viewpoint"), "v_"),
        (("sequence", "v_yard"), "v_yard"),
    ):
        own = [float(row["ap"]) for row in pairs if part in row["pair"]]
        assert int(views[key]["pairs"]) == len(own)
        assert float(views[key]["map"]) == pytest.approx(np.mean(own))


def test_without_labels_the_truth_is_the_identity(raybench, tmp_path):
    benchmarks = shutil.copytree(DATA / "benchmarks/matching", tmp_path / "tasks")
    for file in benchmarks.glob("*.labels"):
        file.unlink()
    run(raybench, tmp_path / "out", *ENTRIES["block4"], *INLINE, benchmarks=benchmarks)
    assert_golden(tmp_path / "out", "block4", COMPUTED)


def test_curves_end_at_full_recall(raybench, tmp_path):
    run(raybench, tmp_path, *ENTRIES["block4"], *INLINE)
    points = pyarrow.parquet.read_table(tmp_path / "curves/mini_easy_illum.parquet").to_pylist()
    for score in ("distance", "ratio"):
        own = [point for point in points if point["pair"] == "i_reef.ref,i_reef.e1" and point["score"] == score]
        assert [point["rank"] for point in own] == list(range(16))
        assert own[-1]["recall"] == 1.0
        assert own[-1]["precision"] == pytest.approx(14 / 15)


@pytest.mark.parametrize("entry", ["vectors", "block4"])
def test_one_task_may_be_chosen_and_a_limit_is_said(raybench, tmp_path, entry):
    said = run(raybench, tmp_path, *ENTRIES[entry], *INLINE, "--task", "*hard*", "--limit", "3")
    assert [(row["task"], row["pairs"]) for row in table(tmp_path)] == [("mini_hard_viewpoint", "3")]
    assert "LIMITED" in said.out
    whole = SAID["expected"]["block4/mini_hard_viewpoint"]["pairs"][:3]
    assert float(table(tmp_path)[0]["map"]) == pytest.approx(np.mean([pair["ap"] for pair in whole]), abs=1e-9)


def test_one_extraction_serves_all_three_benchmarks(raybench, tmp_path):
    store = ("--store", tmp_path / "store", *INLINE)
    run(raybench, tmp_path / "a", *ENTRIES["strips"], *store)
    classification, retrieval = (tmp_path / kind for kind in ("classification", "retrieval"))
    for folder in (classification, retrieval):
        folder.mkdir()
    (classification / "some.benchmark").write_text("some.pairs\n")
    (classification / "some.pairs").write_text("v_mill.ref.0,v_mill.h1.0,1\nv_mill.ref.0,v_mill.h1.1,0\n")
    (retrieval / "some.benchmark").write_text("v_mill.ref,v_mill.h1\nv_mill.ref.0\n")
    for kind, folder in (("classification", classification), ("retrieval", retrieval)):
        given = ("--benchmarks", folder, "--out", tmp_path / f"out-{kind}", *ENTRIES["strips"], *store)
        assert raybench("run", f"hbench-{kind}", *given).code == 0
        stages = json.loads((tmp_path / f"out-{kind}/manifest.json").read_text())["stages"]
        assert [stage["computed"] for stage in stages if stage["name"] == "extract"] == [0]


def test_the_published_files_parse_where_they_are(raybench, tmp_path):
    from raybench.formats.hbench_matching import read_image_pairs, read_true_matches

    real = Path(__file__).parents[4] / "shared/data/hbench/matching"
    if not real.is_dir():
        pytest.skip(f"{real} is not here")
    pairs = read_image_pairs((real / "train_example.benchmark").read_bytes(), "train_example.benchmark")
    truth = read_true_matches((real / "train_example.labels").read_bytes(), "train_example.labels", pairs)
    assert len(pairs) == len(truth) == 25
    assert all(np.array_equal(labels, np.arange(len(labels))) for labels in truth.values())
    assert len(read_image_pairs((real / "train_easy_illum.benchmark").read_bytes(), "train_easy_illum")) == 185
