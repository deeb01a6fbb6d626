"""`--fail-below`: exit code 4 with a line for each figure that is too low; names are checked before any compute."""

import pytest
from conftest import GOLDEN, only_line

from raybench.errors import ConfigError, FigureBelow
from raybench.runs.floors import Floor, floors_of, refuse_below

HBENCH = GOLDEN / "hbench_classification/data"
GIVEN = ("--benchmarks", HBENCH / "benchmarks", "--results", HBENCH / "results/block4", "--ray", "off")
FOUND = [
    {"row": "PCAW32,L2norm,Flat | 1.0[0,2]", "figure": "uAP", "value": 0.625},
    {"row": "Flat | None", "figure": "uAP", "value": 0.5},
    {"row": "Flat | None", "figure": "recall-at-p90", "value": None},
]


def test_rows_may_hold_commas_and_colons():
    found = floors_of("uAP=0.61,a:b,c | d:recall-at-p90 = .5")
    assert found == [Floor("", "uAP", 0.61), Floor("a:b,c | d", "recall-at-p90", 0.5)]
    assert floors_of("") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("uAP", "expected FIGURE=VALUE"),
        ("uAP=0.5,ap", "'ap': expected FIGURE=VALUE"),
        ("uAP=high", "'high' is no number"),
        ("uAP=61", "did you mean uAP=0.61"),
        ("uAP=-0.1", "expected a fraction"),
        ("uAP=nan", "expected a fraction"),
        ("uAP=610", "expected a fraction"),
    ],
)
def test_what_is_no_floor_is_said(text, words):
    with pytest.raises(ConfigError, match=words):
        floors_of(text)


@pytest.mark.parametrize("text", ["", "uAP=0.625", "Flat | None:uAP=0.5", "uAP=0.6,Flat | None:uAP=0"])
def test_the_best_row_counts_unless_one_is_named(text):
    refuse_below(floors_of(text), FOUND)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("uAP=0.63", ["uAP is 0.625 in the best row, PCAW32,L2norm,Flat | 1.0[0,2]; expected at least 0.63"]),
        ("Flat | None:uAP=0.6", ["uAP is 0.5 in row Flat | None; expected at least 0.6"]),
        ("recall-at-p90=0", ["recall-at-p90 is undefined, expected at least 0.0"]),
    ],
)
def test_what_is_below_is_said_with_its_value(text, lines):
    with pytest.raises(FigureBelow) as caught:
        refuse_below(floors_of(text), FOUND)
    assert caught.value.lines() == lines


def test_an_unknown_row_is_named_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown row 'Flat \| Non' \(did you mean Flat \| None\?\)"):
        refuse_below(floors_of("Flat | Non:uAP=0.1"), FOUND)


def test_a_run_that_is_below_shows_its_table_and_exits_with_four_also_when_it_is_done_already(raybench, tmp_path):
    run = ("run", "hbench-classification", *GIVEN, "--out", tmp_path)
    said = raybench(*run, "--fail-below", "ap=0.999,mini_diffseq_hard:auc=0.1")
    assert said.code == 4
    assert "mini_diffseq_hard" in said.out
    assert [line for line in said.err.splitlines() if line.startswith("below:")] == [
        "below: ap is 0.980433 in the best row, mini_sameseq_easy; expected at least 0.999"
    ]
    again = raybench(*run, "--fail-below", "ap=0.5")
    assert (again.code, "done already" in again.err) == (0, True)


def test_an_unknown_figure_is_refused_before_any_compute(raybench, tmp_path):
    said = raybench("run", "hbench-classification", *GIVEN, "--out", tmp_path / "out", "--fail-below", "apc=0.5")
    only_line(said, "unknown figure 'apc' (did you mean ap?)", "ap_balanced")
    assert not (tmp_path / "out").exists()


def test_a_family_takes_the_figures_of_all_its_members(raybench, tmp_path):
    given = ("--benchmarks", HBENCH / "benchmarks", "--features", tmp_path / "in", "--out", tmp_path / "out")
    only_line(raybench("check", "hbench", *given, "--fail-below", "uAP=0.5"), "unknown figure 'uAP'")
    assert "unknown figure" not in raybench("check", "hbench", *given, "--fail-below", "ap=0.5,image_map=0.5").err


def test_of_an_error_rate_the_value_is_the_most_and_the_lowest_row_is_the_best():
    found = [{"row": "a", "figure": "fpr95", "value": 0.2}, {"row": "b", "figure": "fpr95", "value": 0.1}]
    refuse_below(floors_of("fpr95=0.1,a:fpr95=0.2"), found)
    with pytest.raises(FigureBelow) as below:
        refuse_below(floors_of("fpr95=0.05,a:fpr95=0.15"), found)
    assert below.value.lines() == [
        "fpr95 is 0.1 in the best row, b; expected at most 0.05",
        "fpr95 is 0.2 in row a; expected at most 0.15",
    ]
