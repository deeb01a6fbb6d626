"""Every golden figure of HPatches 2016 classification, through the command line, from every place one may enter."""

import csv
import json

import pyarrow.parquet
import pytest

SETS = ("block4", "coarse", "constant")
EXECUTORS = {"inline": ("--ray", "off"), "ray-cpu": ("--device", "cpu", "--cpus", "2"), "ray-gpu": ("--gpus", "2")}


@pytest.fixture(params=["inline", *(pytest.param(name, marks=pytest.mark.ray) for name in ("ray-cpu", "ray-gpu"))])
def executor(request):
    if request.param != "inline":
        request.getfixturevalue("local_ray")
    return EXECUTORS[request.param]


def rows(out):
    with (out / "hbench_classification.csv").open() as file:
        return list(csv.DictReader(file))


def assert_golden(out, golden, descriptor):
    said = json.loads((golden.parent / "expected.json").read_text())
    assert len(rows(out)) == 3
    for row in rows(out):
        full, even = (said["expected"][f"{descriptor}/{row['task']}/{kind}"] for kind in ("full", "balanced"))
        assert (int(row["positives"]), int(row["pairs"])) == (full["numpos"], full["numpos"] + full["numneg"])
        figures = {"ap": full["ap"], "auc": full["auc"], "ap_balanced": even["ap"], "auc_balanced": even["auc"]}
        for column, figure in figures.items():
            assert float(row[column]) == pytest.approx(figure, abs=said["tolerance"]), (row["task"], column)


def run(raybench, golden, out, *more):
    said = raybench("run", "hbench-classification", "--benchmarks", golden / "benchmarks", "--out", out, *more)
    assert said.code == 0, said.err
    return said


@pytest.mark.parametrize("folder", ["results", "results_with_labels"])
@pytest.mark.parametrize("descriptor", SETS)
def test_figures_from_finished_results_are_the_published_ones(raybench, golden, tmp_path, folder, descriptor):
    run(raybench, golden, tmp_path / "out", "--results", golden / folder / descriptor, "--ray", "off")
    assert_golden(tmp_path / "out", golden, descriptor)


def test_figures_from_finished_results_are_the_same_everywhere(raybench, golden, tmp_path, executor):
    run(raybench, golden, tmp_path / "out", "--results", golden / "results/block4", *executor)
    assert_golden(tmp_path / "out", golden, "block4")


def test_figures_from_descriptors_are_the_published_ones(raybench, golden, tmp_path, executor):
    run(raybench, golden, tmp_path / "out", "--features", golden / "descriptors/block4", *executor)
    assert_golden(tmp_path / "out", golden, "block4")


def test_figures_from_patch_strips_are_the_published_ones(raybench, golden, tmp_path, executor):
    given = ("--data", golden / "hpatches", "--descriptor", "patch_descriptors:Block4")
    run(raybench, golden, tmp_path / "out", *given, *executor)
    assert_golden(tmp_path / "out", golden, "block4")


def test_the_users_descriptor_gives_the_golden_vectors_from_the_strips(golden):
    import numpy as np
    from patch_descriptors import Block4
    from PIL import Image

    for strip in sorted((golden / "hpatches").glob("*/*.png")):
        patches = np.asarray(Image.open(strip)).reshape(-1, 65, 65)
        vectors = Block4().describe(Block4().prepare(patches))
        expected = np.loadtxt(golden / "descriptors/block4" / strip.parent.name / f"{strip.stem}.csv", delimiter=";")
        assert np.array_equal(vectors, expected)


@pytest.mark.parametrize(
    ("entry", "executors"),
    [("strips", EXECUTORS), ("vectors", ("inline", "ray-cpu")), ("results", ("inline", "ray-cpu"))],
)
def test_tables_are_byte_equal_for_every_shard_size_and_executor(
    raybench, golden, tmp_path, local_ray, entry, executors
):
    given = {
        "strips": ("--data", golden / "hpatches", "--descriptor", "sift"),
        "vectors": ("--features", golden / "descriptors/block4"),
        "results": ("--results", golden / "results/coarse"),
    }[entry]
    tables = set()
    for name in executors:
        for size in ("7", "100", "default") if name == "inline" else ("7",):
            out = tmp_path / size / name
            cut = () if size == "default" else ("--shard-size", size)
            run(raybench, golden, out, *given, *cut, *EXECUTORS[name])
            tables.add(tuple((out / name).read_bytes() for name in ("hbench_classification.csv", "tables/views.csv")))
    assert len(tables) == 1


def test_own_results_read_back_to_the_same_table(raybench, golden, tmp_path):
    run(raybench, golden, tmp_path / "a", "--features", golden / "descriptors/block4", "--ray", "off")
    files = sorted((tmp_path / "a/results/classification/block4").iterdir())
    assert [file.name for file in files] == sorted(
        f"{file.stem}.results" for file in (golden / "benchmarks/classification").glob("*.pairs")
    )
    assert len((files[0].read_text().splitlines()[0]).split(",")) == 2
    run(raybench, golden, tmp_path / "b", "--results", tmp_path / "a/results", "--ray", "off")
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_curves_end_at_full_recall_and_hold_roc_points(raybench, golden, tmp_path):
    run(raybench, golden, tmp_path / "out", "--results", golden / "results/block4", "--ray", "off")
    for row in rows(tmp_path / "out"):
        points = pyarrow.parquet.read_table(tmp_path / "out/curves" / f"{row['task']}.parquet").to_pydict()
        assert points["rank"] == list(range(int(row["pairs"]) + 1))
        assert (points["recall"][-1], points["false_positive_rate"][-1]) == (1.0, 1.0)
        assert points["precision"][-1] == int(row["positives"]) / int(row["pairs"])


def test_one_task_may_be_chosen_and_a_limit_is_said(raybench, golden, tmp_path):
    given = ("--results", golden / "results/block4", "--ray", "off", "--task", "*easy", "--limit", "20")
    said = run(raybench, golden, tmp_path / "out", *given)
    assert [(row["task"], row["pairs"], row["positives"]) for row in rows(tmp_path / "out")] == [
        ("mini_sameseq_easy", "40", "20")
    ]
    assert "LIMITED" in said.out


def test_l1_and_hamming_distances_rank_as_scipy_does(raybench, golden, tmp_path):
    import numpy as np
    from scipy.spatial.distance import cityblock

    vectors = tmp_path / "bits"
    for file in (golden / "descriptors/block4").glob("*/*.csv"):
        target = vectors / file.relative_to(golden / "descriptors/block4")
        target.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(target, np.loadtxt(file, delimiter=";") > 0, fmt="%d", delimiter=",")
    out = {}
    for name, folder in (("L1", golden / "descriptors/block4"), ("hamming", vectors)):
        run(raybench, golden, tmp_path / name, "--features", folder, "--distance", name, "--ray", "off")
        found = next((tmp_path / name / "results").rglob("mini_easy_pos.results")).read_text().splitlines()
        out[name] = [float(line.split(",")[0]) for line in found]
    for i, line in enumerate((golden / "benchmarks/classification/mini_easy_pos.pairs").read_text().splitlines()):
        (s, im, k), (s2, im2, k2) = (signature.split(".") for signature in line.split(","))
        a, b = (
            np.loadtxt(golden / "descriptors/block4" / x / f"{y}.csv", delimiter=";")[int(z)]
            for x, y, z in ((s, im, k), (s2, im2, k2))
        )
        assert out["L1"][i] == pytest.approx(cityblock(a, b), abs=1e-12)
        assert out["hamming"][i] == np.count_nonzero((a > 0) != (b > 0))


def test_the_published_lists_parse_where_they_are(raybench, tmp_path):
    from pathlib import Path

    real = Path(__file__).parents[4] / "shared/data/hbench/classification"
    if not real.is_dir():
        pytest.skip(f"{real} is not here")
    counts = {"train_example": (3000, 1000)}
    results = tmp_path / "train_example.results"
    results.write_text("\n".join(str(i) for i in range(3000)) + "\n")
    said = raybench(
        *("run", "hbench-classification", "--benchmarks", real, "--task", "train_example"),
        *("--results", tmp_path, "--out", tmp_path / "out", "--ray", "off"),
    )
    assert said.code == 0, said.err
    assert {r["task"]: (int(r["pairs"]), int(r["positives"])) for r in rows(tmp_path / "out")} == counts
    assert float(rows(tmp_path / "out")[0]["ap"]) == 1.0


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".h5"])
def test_descriptors_in_other_files_than_csv_give_the_same_table(raybench, golden, tmp_path, suffix):
    import h5py
    import numpy as np
    import pyarrow as pa

    for file in (golden / "descriptors/block4").glob("*/*.csv"):
        vectors = np.loadtxt(file, delimiter=";")
        target = (tmp_path / "block4" / file.relative_to(golden / "descriptors/block4")).with_suffix(suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".npy":
            np.save(target, vectors)
        elif suffix == ".parquet":
            pyarrow.parquet.write_table(pa.table({"vectors": vectors.tolist()}), target)
        else:
            with h5py.File(target, "w") as handle:
                handle["vectors"] = vectors
    run(raybench, golden, tmp_path / "out", "--features", tmp_path / "block4", "--ray", "off")
    assert_golden(tmp_path / "out", golden, "block4")
