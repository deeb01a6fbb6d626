"""Every golden figure of HPatches 2016 retrieval, through the command line, from every place one may enter."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from conftest import GOLDEN, outputs_of_every_plan

CASE = GOLDEN / "hbench_retrieval"
DATA = CASE / "data"
SAID = json.loads((CASE / "expected.json").read_text())
TASKS = sorted(SAID["expected"])
INLINE = ("--ray", "off")
ENTRIES = {
    "strips": ("--data", DATA / "hpatches", "--descriptor", "patch_descriptors:Block4"),
    "vectors": ("--features", DATA / "descriptors/block4"),
    "results": ("--results", DATA / "results/block4"),
}


def table(out, name="hbench_retrieval.csv"):
    with (out / name).open() as file:
        return list(csv.DictReader(file))


def per_query(out):
    rows = pyarrow.parquet.read_table(out / "tables/per_query.parquet").to_pylist()
    return {task: [row for row in rows if row["task"] == task] for task in TASKS}


def run(raybench, out, *given, benchmarks=DATA / "benchmarks"):
    said = raybench("run", "hbench-retrieval", "--benchmarks", benchmarks, "--out", out, *given)
    assert said.code == 0, said.err
    return said


def assert_golden(out):
    """All figures, as the lists of `.results` give them."""
    assert [row["task"] for row in table(out)] == TASKS
    queries = per_query(out)
    for row in table(out):
        expected = SAID["expected"][row["task"]]
        assert int(row["queries"]) == expected["n_returned"] - 1
        for kind in ("image", "patch"):
            assert float(row[f"{kind}_map"]) == pytest.approx(expected[f"{kind}_map"], abs=SAID["tolerance"])
            found = [query[f"{kind}_ap"] for query in queries[row["task"]]]
            assert found == pytest.approx(expected[f"{kind}_ap"], abs=SAID["tolerance"])


def assert_golden_but_for_edited_lines(out):
    """Query 1, and 2 of the 3s tasks, were edited in `.results`; all others come from the descriptors."""
    for task, queries in per_query(out).items():
        edited = 2 if "_3s_" in task else 1
        for kind in ("image", "patch"):
            found = [query[f"{kind}_ap"] for query in queries[edited:]]
            assert found == pytest.approx(SAID["expected"][task][f"{kind}_ap"][edited:], abs=SAID["tolerance"])


def test_figures_from_finished_results_are_the_published_ones(raybench, tmp_path):
    run(raybench, tmp_path, *ENTRIES["results"], *INLINE)
    assert_golden(tmp_path)


def test_the_tools_own_mean_is_there_for_compatibility(raybench, tmp_path):
    said = run(raybench, tmp_path, *ENTRIES["results"], *INLINE, "--compat", "hbench")
    assert "n + 1" in said.out
    for row in table(tmp_path):
        for kind in ("image", "patch"):
            expected = SAID["expected"][row["task"]][f"{kind}_map_as_printed"]
            assert float(row[f"{kind}_map"]) == pytest.approx(expected, abs=SAID["tolerance"])


@pytest.mark.parametrize("entry", ["strips", "vectors"])
def test_figures_from_descriptors_are_the_published_ones(raybench, tmp_path, entry):
    run(raybench, tmp_path, *ENTRIES[entry], *INLINE)
    assert_golden_but_for_edited_lines(tmp_path)
    for task in TASKS:
        own, published = (
            (folder / f"{task}.results").read_text().splitlines()
            for folder in (tmp_path / "results/retrieval/block4", DATA / "results/block4/retrieval")
        )
        edited = 2 if "_3s_" in task else 1
        assert (own[0], own[1 + edited :]) == (published[0], published[1 + edited :])


@pytest.mark.parametrize("entry", ["strips", "results"])
def test_figures_on_ray_are_the_published_ones(raybench, tmp_path, local_ray, entry):
    run(raybench, tmp_path, *ENTRIES[entry], "--device", "cpu", "--cpus", "2")
    if entry == "results":
        assert_golden(tmp_path)
    else:
        assert_golden_but_for_edited_lines(tmp_path)


def test_tables_and_results_are_byte_equal_for_every_shard_size_and_executor(raybench, tmp_path, local_ray):
    given = ("--data", DATA / "hpatches", "--descriptor", "sift")
    seen = outputs_of_every_plan(lambda out, *more: run(raybench, out, *given, *more), tmp_path)
    assert len(seen) == 1
    assert len(seen.pop()) == 12


def test_own_results_read_back_to_the_same_table(raybench, tmp_path):
    run(raybench, tmp_path / "a", *ENTRIES["vectors"], *INLINE)
    run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", *INLINE)
    for name in ("hbench_retrieval.csv", "tables/per_query.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_without_labels_the_cluster_is_the_patch_in_its_sequence(raybench, tmp_path):
    benchmarks = shutil.copytree(DATA / "benchmarks/retrieval", tmp_path / "tasks")
    for file in benchmarks.glob("*.labels"):
        file.unlink()
    run(raybench, tmp_path / "out", *ENTRIES["results"], *INLINE, benchmarks=benchmarks)
    assert_golden(tmp_path / "out")


def test_seeds_of_one_group_have_their_mean(raybench, tmp_path):
    benchmarks, results = (
        shutil.copytree(DATA / folder, tmp_path / name)
        for folder, name in (("benchmarks/retrieval", "tasks"), ("results/block4/retrieval", "results"))
    )
    for folder in (benchmarks, results):  # the tough task as if it were the hard one with another seed
        for file in folder.glob("mini_tough_3s_00.*"):
            file.rename(folder / f"mini_hard_3s_01{file.suffix}")
    run(raybench, tmp_path / "out", "--results", results, *INLINE, benchmarks=benchmarks)
    (row,) = table(tmp_path / "out", "tables/seeds.csv")
    hard, tough = (SAID["expected"][f"mini_{level}_3s_00"] for level in ("hard", "tough"))
    assert (row["group"], row["tasks"], row["queries"]) == ("mini_hard_3s", "2", "22")
    for column in ("image_map", "patch_map"):
        assert float(row[column]) == pytest.approx((hard[column] + tough[column]) / 2, abs=1e-9)


def test_equal_patches_keep_pool_order_and_the_query_is_swapped_first(raybench, tmp_path):
    """All descriptors alike: every list is the pool's first 51, with the query in the place of the very first."""
    for image in ("ref", "e1"):
        (tmp_path / "flat/i_a").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"flat/i_a/{image}.csv").write_text("1,2\n" * 40)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/x.benchmark").write_text("i_a.e1,i_a.ref\ni_a.e1.3\ni_a.ref.30\n")
    given = ("--features", tmp_path / "flat", *INLINE, "--shard-size", "1")
    run(raybench, tmp_path / "out", *given, benchmarks=tmp_path / "tasks")
    _, near, far = (tmp_path / "out/results/retrieval/flat/x.results").read_text().splitlines()
    pool = [f"i_a.{image}.{patch}" for image in ("e1", "ref") for patch in range(40)]
    assert near.split(",") == [pool[3], pool[1], pool[2], pool[0], *pool[4:51]]
    assert far.split(",") == ["i_a.ref.30", *pool[1:51]]  # it comes too late to be among the 51


def test_a_pool_smaller_than_the_list_gives_shorter_lists_that_read_back(raybench, tmp_path):
    (tmp_path / "few/i_a").mkdir(parents=True)
    (tmp_path / "few/i_a/ref.csv").write_text("1\n2\n4\n")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/x.benchmark").write_text("i_a.ref\ni_a.ref.1\n")
    run(raybench, tmp_path / "a", "--features", tmp_path / "few", *INLINE, benchmarks=tmp_path / "tasks")
    lines = (tmp_path / "a/results/retrieval/few/x.results").read_text().splitlines()
    assert lines[1] == "i_a.ref.1,i_a.ref.0,i_a.ref.2"
    said = run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", *INLINE, benchmarks=tmp_path / "tasks")
    assert "3 names a query, not 51" in said.out
    assert table(tmp_path / "a") == table(tmp_path / "b")


def test_curves_end_at_full_recall(raybench, tmp_path):
    run(raybench, tmp_path, *ENTRIES["results"], *INLINE)
    points = pyarrow.parquet.read_table(tmp_path / "curves/mini_easy_2s_00.parquet").to_pylist()
    assert len(points) == 11 * 51
    ends = [point for point in points if point["rank"] == 50]
    assert [point["image_recall"] for point in ends] == [1.0] * 11
    assert [point["patch_recall"] for point in ends] == [0.0] + [1.0] * 10  # the first finds none of its patches


@pytest.mark.parametrize("entry", ["vectors", "results"])
def test_one_task_may_be_chosen_and_a_limit_is_said(raybench, tmp_path, entry):
    said = run(raybench, tmp_path, *ENTRIES[entry], *INLINE, "--task", "*easy*", "--limit", "4")
    assert [(row["task"], row["queries"]) for row in table(tmp_path)] == [("mini_easy_2s_00", "4")]
    assert "LIMITED" in said.out
    found = [query["patch_ap"] for query in per_query(tmp_path)["mini_easy_2s_00"]][1:]
    assert found == pytest.approx(SAID["expected"]["mini_easy_2s_00"]["patch_ap"][1:4], abs=1e-9)


def test_lists_are_those_of_a_full_distance_matrix_by_l1_and_hamming(raybench, tmp_path):
    vectors = tmp_path / "bits"
    for file in (DATA / "descriptors/block4").glob("*/*.csv"):
        target = vectors / file.relative_to(DATA / "descriptors/block4")
        target.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(target, np.loadtxt(file, delimiter=";") > 0, fmt="%d", delimiter=";")
    given = ("--features", vectors, "--task", "mini_hard_3s_00", *INLINE)
    for distance in ("L1", "hamming"):  # the same for bits
        run(raybench, tmp_path / distance, *given, "--distance", distance)
        pool, *lists = (tmp_path / distance / "results/retrieval/bits/mini_hard_3s_00.results").read_text().splitlines()
        images = {
            image: np.loadtxt(vectors / f"{image.replace('.', '/')}.csv", delimiter=";") for image in pool.split(",")
        }
        names = [f"{image}.{k}" for image, rows in images.items() for k in range(len(rows))]
        every = np.concatenate(list(images.values()))
        for line in lists:
            found = line.split(",")
            order = np.argsort(np.abs(every - every[names.index(found[0])]).sum(axis=1), kind="stable")[:51].tolist()
            at = order.index(names.index(found[0]))
            order[0], order[at] = order[at], order[0]
            assert found == [names[i] for i in order]


def test_the_published_files_parse_where_they_are(raybench, tmp_path):
    from raybench.formats.hbench_retrieval import read_names, read_retrieval_task

    real = Path(__file__).parents[4] / "shared/data/hbench/retrieval"
    if not real.is_dir():
        pytest.skip(f"{real} is not here")
    for name, queries in (("train_easy_5s_00", 500), ("train_example", 50)):
        task = read_retrieval_task((real / f"{name}.benchmark").read_bytes(), name)
        clusters = read_names((real / f"{name}.labels").read_bytes(), name, task)
        assert (len(task.pool), len(task.queries), clusters.shape) == (30, queries, (queries, 6))


def test_views_are_the_means_of_their_queries(raybench, tmp_path):
    run(raybench, tmp_path, *ENTRIES["vectors"], *INLINE)
    with (tmp_path / "tables/views.csv").open() as file:
        views = list(csv.DictReader(file))
    with (tmp_path / "hbench_retrieval.csv").open() as file:
        tasks = list(csv.DictReader(file))
    assert {row["view"] for row in views} == {"noise", "change", "sequence"}
    for view in ("change", "sequence"):
        rows = [row for row in views if row["view"] == view]
        assert sum(int(row["queries"]) for row in rows) == sum(int(row["queries"]) for row in tasks)
        for column in ("image_map", "patch_map"):
            own, all_tasks = (sum(float(row[column]) * int(row["queries"]) for row in some) for some in (rows, tasks))
            assert own == pytest.approx(all_tasks)
