"""Every golden figure of patch pairs from finished distances and scores, through the command line."""

import csv
import json

import numpy as np
import pytest

from raybench.runs.unit_values import unit_values

EXECUTORS = {"inline": ("--ray", "off"), "ray": ("--device", "cpu", "--cpus", "2")}


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def executor(request):
    if request.param != "inline":
        request.getfixturevalue("local_ray")
    return EXECUTORS[request.param]


@pytest.fixture
def fpr95(golden):
    return golden.parent.parent / "fpr95"


def rows(out):
    with (out / "patch_pairs.csv").open() as file:
        return {row["list"]: row for row in csv.DictReader(file)}


def assert_golden(found, fpr95):
    said = json.loads((fpr95 / "expected.json").read_text())
    for name, row in found.items():
        assert list(row) == ["list", "pairs", "positives", "ap", "auc", "fpr95", "fdr95"]
        for column, value in said["expected"][name].items():
            assert float(row[column]) == pytest.approx(value, abs=said["tolerance"]), (name, column)


def run(raybench, out, *more):
    said = raybench("run", "patch-pairs", "--out", out, *more)
    assert said.code == 0, said.err
    return rows(out)


def test_every_golden_figure_comes_out(raybench, fpr95, tmp_path, executor):
    found = run(raybench, tmp_path / "out", "--results", fpr95 / "data", *executor)
    assert len(found) == 9
    assert_golden(found, fpr95)


def test_one_file_and_several_with_commas_are_lists_as_well(raybench, fpr95, tmp_path):
    data = fpr95 / "data"
    one = run(raybench, tmp_path / "one", "--results", data / "ties.npz", "--ray", "off")
    two = run(raybench, tmp_path / "two", "--results", f"{data / 'cosine.npz'},{data / 'ties.npz'}", "--ray", "off")
    assert list(one) == ["ties"]
    assert list(two) == ["cosine", "ties"]
    assert two["ties"] == one["ties"]
    assert_golden(two, fpr95)


@pytest.mark.parametrize("labels", [np.bool_, np.int64, np.float64])
@pytest.mark.parametrize("values", [np.float64, np.int64])
def test_figures_do_not_depend_on_the_types_of_arrays(raybench, fpr95, tmp_path, labels, values):
    given = np.load(fpr95 / "data/ties.npz")
    np.savez(tmp_path / "ties.npz", labels=given["labels"].astype(labels), distances=given["distances"].astype(values))
    assert_golden(run(raybench, tmp_path / "out", "--results", tmp_path / "ties.npz", "--ray", "off"), fpr95)


def test_csv_may_have_its_columns_in_any_order_and_negative_scores(raybench, fpr95, tmp_path):
    given = np.load(fpr95 / "data/cosine.npz")
    lines = [f"{label},x,{score!r}" for label, score in zip(given["labels"], given["scores"].tolist(), strict=True)]
    (tmp_path / "cosine.csv").write_text("\n".join(["label,other,score", *lines]) + "\n")
    assert_golden(run(raybench, tmp_path / "out", "--results", tmp_path / "cosine.csv", "--ray", "off"), fpr95)


def test_ties_give_the_other_end_that_the_case_says(raybench, fpr95, tmp_path):
    run(raybench, tmp_path / "out", "--results", fpr95 / "data/ties.npz", "--ray", "off")
    with (tmp_path / "out/tables/ties.csv").open() as file:
        (row,) = (row for row in csv.DictReader(file) if row["figure"] == "fpr95")
    said = json.loads((fpr95 / "expected.json").read_text())
    assert float(row["worst"]) == float(row["value"]) == pytest.approx(0.05)
    assert float(row["best"]) == pytest.approx(said["ties_other_orders"]["ties"]["positives first"])


def test_a_single_pair_is_worth_nothing_by_itself(raybench, fpr95, tmp_path):
    run(raybench, tmp_path / "out", "--results", fpr95 / "data/twenty.npz", "--ray", "off")
    assert unit_values(str(tmp_path / "out")) == []


def test_the_run_with_fewer_false_alarms_is_better_in_a_comparison(raybench, tmp_path):
    random = np.random.default_rng(0)
    labels = random.random(2_000) < 0.5
    for name, spread in (("sharp", 0.3), ("blurred", 0.9)):
        distances = np.where(labels, 1.0, 2.0) + random.normal(0, spread, len(labels))
        np.savez(tmp_path / "pairs.npz", labels=labels, distances=distances)
        run(raybench, tmp_path / name, "--results", tmp_path / "pairs.npz", "--ray", "off")
    said = raybench("compare", tmp_path / "blurred", tmp_path / "sharp", "--draws", "200")
    lines = said.out.splitlines()
    for figure in ("ap", "auc", "fpr95", "fdr95"):
        place = next(number for number, line in enumerate(lines) if line.split()[:1] == [figure])
        assert lines[place].split()[1] == "sharp"
        assert " a  better than blurred by " in lines[place]
        assert " b  baseline" in lines[place + 1]
    assert "better in 4" in said.out
    marked = raybench("compare", tmp_path / "blurred", tmp_path / "sharp", "--draws", "200", "--format", "markdown").out
    (line,) = (line for line in marked.splitlines() if line.startswith("| pairs | sharp |"))
    assert line.count("**") == 8
