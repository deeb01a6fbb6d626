"""`raybench selftest`: the package has the golden figures of the tests, and a figure that is off is found."""

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest
from conftest import GOLDEN

from raybench.benchmarks import BENCHMARKS
from raybench.runs import selftest

PACKAGED = Path(selftest.__file__).with_name(selftest.CASES)
MATCHES = "matches the published tools on this machine"


def test_the_package_has_the_golden_cases_as_they_are():
    spec = importlib.util.spec_from_file_location("pack", GOLDEN / "pack.py")
    pack = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pack)
    with zipfile.ZipFile(PACKAGED) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == pack.packed(), "run tests/golden/pack.py"
    assert PACKAGED.stat().st_size < 10**6


def test_every_benchmark_has_a_case_with_figures(tmp_path):
    cases = selftest.unpack_cases(tmp_path)
    assert [case.benchmark for case in cases] == list(BENCHMARKS)
    for case in cases:
        assert {one.figure for one in case.figures} <= set(BENCHMARKS[case.benchmark].open().figures)
        assert len(case.figures) >= 4
        assert all(0 < one.tolerance <= 1e-5 for one in case.figures)


def test_this_machine_matches_the_published_tools(raybench):
    said = raybench("selftest", "--ray", "off")
    assert (said.code, said.out.splitlines()[-1]) == (0, MATCHES), said.out
    assert sum("  off  " in line for line in said.out.splitlines()) == len(BENCHMARKS)


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_a_local_ray_matches_the_published_tools(raybench):
    said = raybench("selftest", "--ray", "local")
    assert (said.code, said.out.splitlines()[-1]) == (0, MATCHES), said.out
    assert sum("  local  " in line for line in said.out.splitlines()) == len(BENCHMARKS)


@pytest.mark.parametrize(("value", "row"), [(0.5, None), (None, "no such row")])
def test_a_figure_that_is_off_or_missing_is_named_with_exit_code_five(raybench, tmp_path, monkeypatch, value, row):
    with zipfile.ZipFile(PACKAGED) as packed:
        files = {
            name: packed.read(name) for name in packed.namelist() if name.startswith(("cases", "hbench_retrieval"))
        }
    (case,) = (one for one in json.loads(files["cases.json"]) if one["name"] == "hbench_retrieval")
    figure = case["figures"][1]
    case["figures"][1] = {**figure, "value": value or figure["value"], "row": row or figure["row"]}
    files["cases.json"] = json.dumps([case]).encode()
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        for name, content in files.items():
            other.writestr(name, content)
    monkeypatch.setattr(selftest, "CASES", str(tmp_path / "other.zip"))
    said = raybench("selftest", "--ray", "off")
    assert said.code == 5
    assert MATCHES not in said.out
    (line,) = (line for line in said.out.splitlines() if line.startswith("differs: "))
    assert f"{figure['figure']} of {row or figure['row']}" in line
