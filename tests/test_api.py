"""`import raybench`: the same runs, files and words as the command line's, as Python has them."""

import inspect
import json
import re
import textwrap

import pyarrow
import pytest
from conftest import GOLDEN

import raybench as package
from raybench.table import Table

DISC = GOLDEN / "disc/data/small"
HBENCH = GOLDEN / "hbench_classification/data"
QUIET = {"ray": "off", "progress": "none"}
HBENCH_GIVEN = {"benchmarks": HBENCH / "benchmarks", "features": HBENCH / "descriptors/block4"}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A finished run, to be read only."""
    out = tmp_path_factory.mktemp("api") / "out"
    return package.run("hbench-classification", out=out, **HBENCH_GIVEN, **QUIET)


def test_the_example_of_the_package_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    documented = inspect.getdoc(package)
    example = textwrap.dedent(documented[documented.index("    import raybench") : documented.index("`__all__` is")])
    (tmp_path / "descriptors").symlink_to(DISC)
    monkeypatch.chdir(tmp_path)
    names = {"pyarrow": pyarrow}
    exec(example.replace("out=", 'ray="off", out='), names)
    assert "L2norm,Flat" in capsys.readouterr().out
    assert names["best"] == max(row["uAP"] for row in names["rows"])
    assert names["paper"].startswith(r"\begin{tabular}")
    assert names["same"] == names["result"]


def test_everything_that_the_package_promises_is_there():
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'ruin'"):
        _ = package.ruin


def test_a_result_is_what_the_command_line_leaves(result, raybench, tmp_path):
    given = [str(part) for key, value in {**HBENCH_GIVEN, **QUIET}.items() for part in (f"--{key}", value)]
    assert raybench("run", "hbench-classification", *given, "--out", tmp_path).code == 0
    said = package.load(tmp_path)
    assert (said.table, said.tables, said.figures) == (result.table, result.tables, result.figures)
    assert said.out == str(tmp_path)
    assert said.report == str(tmp_path / "report.html")
    assert said.figures == json.loads((tmp_path / "result.json").read_text())["figures"]


def test_a_result_has_its_tables_by_name_main_table_first(result):
    assert next(iter(result.tables.values())) is result.table
    assert set(result.tables) >= {"hbench_classification", "published"}


def test_running_again_finds_the_run_done(result):
    again = package.run("hbench-classification", out=result.out, **HBENCH_GIVEN, **QUIET)
    assert again == result


def test_check_says_what_was_found_and_raises_everything_at_once(tmp_path):
    assert "3 tasks" in package.check("hbench-classification", **HBENCH_GIVEN)
    with pytest.raises(package.InputError) as caught:
        package.check("tss", data=tmp_path / "a", results=tmp_path / "b")
    assert str(tmp_path / "a") in str(caught.value)


@pytest.mark.parametrize(
    ("benchmark", "options", "words"),
    [
        ("disc2012", {}, "unknown benchmark disc2012 (did you mean disc2021?)"),
        ("hbench", {}, "is several benchmarks; call once for each of hbench-classification"),
        ("disc2021", {"codec": "Flat"}, "unknown option codec (did you mean codecs?)"),
        ("disc2021", {"limit": "5"}, "--limit: expected a whole number, found '5'"),
        ("disc2021", {"ray": False}, "--ray: expected one text, found 'False'"),
        ("disc2021", {"device": "tpu"}, "--device tpu: expected one of auto, gpu, cpu"),
    ],
)
def test_wrong_arguments_are_refused_with_the_command_lines_words(tmp_path, benchmark, options, words):
    with pytest.raises(package.ConfigError, match=re.escape(words)):
        package.run(benchmark, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_figure_below_its_floor_is_an_error_and_the_run_stays(result):
    with pytest.raises(package.FigureBelow, match=r"ap is 0\.98"):
        package.run("hbench-classification", out=result.out, fail_below=["ap=0.99"], **HBENCH_GIVEN, **QUIET)
    assert package.load(result.out) == result


def test_a_folder_without_a_run_is_said(tmp_path):
    with pytest.raises(package.ConfigError, match="no run there"):
        package.load(tmp_path)


def test_runs_are_compared_by_result_or_by_folder(result, tmp_path):
    other = {**HBENCH_GIVEN, "distance": "L1"}
    second = package.run("hbench-classification", out=tmp_path / "second", **other, **QUIET)
    found = package.compare([result, second.out], draws=50)
    assert found == package.compare([second], baseline=result, draws=50)
    assert {row[0] for row in found.rows} == {"out", "second"}
    assert pyarrow.table(found).column_names == list(found.columns) == list(found.table.columns)
    assert "<table>" in found._repr_html_() and "second" in str(found)
    assert str(found) == found.table.to_text() and found._repr_html_() == found.table.to_html()
    assert "rows" not in repr(found)
    with pytest.raises(package.ConfigError, match="expected a list"):
        package.compare(second.out)


def test_a_plan_says_what_a_run_would_take_and_leaves_nothing(tmp_path):
    found = package.plan("hbench-classification", gpus=(1, 4), out=tmp_path / "out", **HBENCH_GIVEN, **QUIET)
    assert set(found.wall_seconds) == {1, 4}
    assert not (tmp_path / "out").exists()


def test_a_notebook_shows_the_table_with_everything_escaped(result):
    assert result.table._repr_html_() in result._repr_html_()
    table = Table("t", ("<b>",), (("<i>",),))
    assert "<i>" not in package.Result("x", "<u>", table, {}, [], "r")._repr_html_()
    assert "<u>" not in package.Result("x", "<u>", table, {}, [], "r")._repr_html_()


def test_readers_of_arrow_get_one_type_per_column_and_nulls_for_what_is_undefined():
    rows = (("a", 1, 0.5, 7, None), (32, 2, float("nan"), None, None), (None, 3, 1, 9, None))
    found = pyarrow.table(Table("t", ("name", "count", "ap", "seen", "none"), rows))
    assert [str(kind) for kind in found.schema.types] == ["string", "int64", "double", "int64", "double"]
    assert found.to_pydict() == {
        "name": ["a", "32", None],
        "count": [1, 2, 3],
        "ap": [0.5, None, 1.0],
        "seen": [7, None, 9],
        "none": [None] * 3,
    }


def test_a_run_joins_the_ray_that_its_process_has_and_leaves_it_up(local_ray, tmp_path):
    found = package.run("hbench-classification", out=tmp_path, device="cpu", progress="none", **HBENCH_GIVEN)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["cluster"]["executor"], manifest["execution"]["ray"]) == ("ray", "auto")
    assert manifest["cluster"]["gpus"] == 8
    assert local_ray.is_initialized()
    assert found.table.rows
