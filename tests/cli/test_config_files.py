"""`--config`: what YAML makes of a value is no matter, lists are taken, and a finished run's manifest repeats it."""

import json

import pytest
from conftest import GOLDEN, only_line

DISC = GOLDEN / "disc/data/small"
TSS = GOLDEN / "tss/data"


@pytest.fixture
def manifest(tmp_path):
    return lambda name: json.loads((tmp_path / name / "manifest.json").read_text())


def test_off_is_the_word_that_was_written_and_lists_are_joined(raybench, manifest, tmp_path):
    config = tmp_path / "job.yaml"
    config.write_text(
        f"features: {DISC}\nout: {tmp_path / 'out'}\nray: off\nprogress: none\nkeep-stages: no\nmetadata: 2e3\n"
        'codecs: [Flat, "PCAW16,L2norm,Flat"]\nscore-norm: [none, "1.0[0,2]"]\nbatch-size: ~\n'
    )
    said = raybench("run", "disc2021", "--config", config)
    assert said.code == 0, said.err
    found = manifest("out")
    assert found["arguments"]["codecs"] == "Flat;PCAW16,L2norm,Flat"
    assert found["arguments"]["score_norm"] == "none;1.0[0,2]"
    assert found["arguments"]["metadata"] == "2e3"
    assert (found["execution"]["ray"], found["execution"]["keep_stages"]) == ("off", False)
    assert not list((tmp_path / "out/stages").iterdir())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("limit: many", "--limit: expected a whole number, found 'many'"),
        ("limit: yes", "--limit: expected a whole number, found 'True'"),
        ("limit: 0", "--limit 0: expected 1 or more"),
        ("device: gpus", "--device gpus: expected one of auto, gpu, cpu (did you mean gpu?)"),
        ("verify-inputs: 7", "--verify-inputs: expected true or false, found '7'"),
        ("descriptor-args: [a]", "--descriptor-args: expected an object"),
        ("device: [cpu, gpu]", "--device: expected one text"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_file(raybench, tmp_path, line, words):
    (tmp_path / "job.yaml").write_text(f"{line}\n")
    said = raybench("run", "disc2021", "--out", tmp_path / "out", "--config", tmp_path / "job.yaml")
    only_line(said, tmp_path / "job.yaml", words)


@pytest.fixture
def finished(raybench, tmp_path):
    """A finished run with an option of every kind."""
    given = ("--data", TSS / "Dataset", "--results", TSS / "Results", "--allow-missing", "--missing-flow", "skip")
    assert raybench("run", "tss", *given, "--out", tmp_path / "first", "--ray", "off").code == 0
    return tmp_path / "first/manifest.json"


def test_a_manifest_repeats_its_run_into_another_folder(raybench, finished, manifest, tmp_path):
    said = raybench("run", "tss", "--config", finished, "--out", tmp_path / "again", "--ray", "off")
    assert said.code == 0, said.err
    assert manifest("again")["arguments"] == manifest("first")["arguments"]
    assert (tmp_path / "again/tss.csv").read_bytes() == (tmp_path / "first/tss.csv").read_bytes()
    assert (tmp_path / "again/stages").is_dir()
    raybench("run", "tss", "--config", finished, "--out", tmp_path / "other", "--ray", "off", "--missing-flow", "zero")
    assert manifest("other")["arguments"] == {**manifest("first")["arguments"], "missing_flow": "zero"}


def test_a_manifest_does_not_say_where_results_go(raybench, finished):
    only_line(raybench("run", "tss", "--config", finished), "--out")


def test_a_manifest_of_another_benchmark_is_refused(raybench, finished, tmp_path):
    said = raybench("run", "copydays", "--config", finished, "--out", tmp_path / "out")
    only_line(said, "is of tss, not of copydays")
