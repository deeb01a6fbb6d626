"""result.json: the main table's figures for machines, with digests and versions, and no arguments."""

import json

import pytest
from conftest import GOLDEN

from raybench.benchmarks import BENCHMARKS
from raybench.errors import DataError
from raybench.metrics.bootstrap import Interval
from raybench.runs.result_file import measured, read_figures
from raybench.table import Table

DISC = GOLDEN / "disc/data/small"
BENCHMARK = BENCHMARKS["hpatches-retrieval"].open()
TABLE = Table(
    "hpatches_retrieval", ("split", "noise", "pool", "map"), (("full", "e", 100, 0.5), ("full", "e", 0, None))
)


def test_a_run_leaves_its_figures_digests_versions_and_seconds(raybench, tmp_path):
    given = ("--features", DISC, "--codecs", "Flat;PCAW16,Flat", "--metadata", "mine", "--ray", "off")
    given = (*given, "--bootstrap", "20")
    assert raybench("run", "disc2021", *given, "--out", tmp_path).code == 0
    found = json.loads((tmp_path / "result.json").read_text())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert list(found) == ["benchmark", "figures", "inputs", "versions", "seconds"]
    assert (found["benchmark"], found["inputs"], found["versions"]) == (
        "disc2021",
        manifest["inputs"],
        manifest["versions"],
    )
    assert 0 < found["seconds"] < 60
    assert {one["figure"] for one in found["figures"]} == {"uAP", "accuracy-at-1", "recall-at-p90"}
    lines = (tmp_path / "disc_metrics.csv").read_text().splitlines()
    assert [f"{one['value']!r}" for one in found["figures"] if one["figure"] == "uAP"] == [
        line.split(",")[-4] for line in lines[1:]
    ]
    assert found["figures"][0]["row"] == "Flat | None"
    assert all(one["low"] <= one["value"] <= one["high"] for one in found["figures"] if one["figure"] == "uAP")
    assert "result.json" in manifest["files"]


def test_intervals_stand_beside_the_figures_they_are_of():
    found = measured(BENCHMARK, TABLE, {("full | e | 100", "map"): Interval(0.4, 0.6)})
    assert found == [
        {"row": "full | e | 100", "figure": "map", "value": 0.5, "low": 0.4, "high": 0.6},
        {"row": "full | e | 0", "figure": "map", "value": None},
    ]


def test_a_run_older_than_the_file_has_the_figures_of_its_table(tmp_path):
    assert read_figures(str(tmp_path), BENCHMARK, TABLE) == measured(BENCHMARK, TABLE)


FIGURE_OF_TEXT = '{"figures": [{"row": "a", "figure": "map", "value": "0.5"}]}'


@pytest.mark.parametrize("text", ["{", "[]", '{"figure": []}', '{"figures": [1]}', FIGURE_OF_TEXT])
def test_a_broken_file_is_named(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(DataError, match=r"result\.json: no result of a run"):
        read_figures(str(tmp_path), BENCHMARK, TABLE)
