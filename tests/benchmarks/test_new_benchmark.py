"""A new benchmark is one file (tests/toy_benchmark.py), one line in BENCHMARKS and a test; nothing else knows of it."""

import numpy as np
import pytest

from raybench.benchmarks import BENCHMARKS, Listed


@pytest.fixture(autouse=True)
def line_in_benchmarks(monkeypatch):
    monkeypatch.setitem(BENCHMARKS, "toy", Listed("toy_benchmark:BENCHMARK", "Vowels of words", "--words"))


@pytest.fixture
def words(tmp_path):
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "fruit.txt").write_text("fig\n")
    (folder / "trees.txt").write_text("oak\nash\nyew\nelm elm\n")
    return folder


def test_it_runs_from_the_command_line_and_a_second_time_finds_itself_done(raybench, words, tmp_path):
    given = ("run", "toy", "--words", words, "--out", tmp_path / "out", "--ray", "off")
    said = raybench(*given)
    assert said.code == 0, said.err
    assert (tmp_path / "out/toy.csv").read_text().splitlines() == [
        "list,words,vowel_share",
        "fruit,1,0.3333333333333333",
        f"trees,5,{np.mean([2, 1, 1, 1, 1]) / 3}",
    ]
    assert (tmp_path / "out/results/fruit.txt").read_text() == "fig,0.3333333333333333\n"
    assert "33.33" in said.out and "vowel_share: mean share of vowels per word." in said.out
    assert "done already" in raybench(*given).err


def test_it_runs_on_ray_with_the_same_bytes(raybench, words, tmp_path, local_ray):
    for name, executor in (("ray", ("--device", "cpu", "--cpus", "2")), ("inline", ("--ray", "off"))):
        said = raybench("run", "toy", "--words", words, "--vowels", "aeiouy", "--out", tmp_path / name, *executor)
        assert said.code == 0, said.err
    for file in ("toy.csv", "results/trees.txt"):
        assert (tmp_path / "ray" / file).read_bytes() == (tmp_path / "inline" / file).read_bytes()


def test_it_is_checked(raybench, words):
    assert raybench("check", "toy", "--words", words).out == "good: 2 lists\n"
    for name in ("a", "b"):
        (words / f"{name}.txt").write_text("\n")
    said = raybench("check", "toy", "--words", words)
    assert said.code == 2
    assert said.errors == [f"{words}/{name}.txt: empty; expected words" for name in ("a", "b")]
    assert raybench("check", "toy").errors == ["toy: --words is missing, the folder of word lists"]


def test_it_is_listed_and_its_help_shows_its_options(raybench):
    assert "toy                      Vowels of words" in raybench("list").out
    said = raybench("run", "toy", "--help")
    assert "Vowels of words" in said.out and "letters that count [default: aeiou]" in said.out


def test_its_runs_are_reported(raybench, words, tmp_path):
    raybench("run", "toy", "--words", words, "--out", tmp_path / "out", "--ray", "off")
    said = raybench("report", tmp_path / "out", "--out", tmp_path / "page.html")
    assert said.code == 0, said.err
    assert "vowel_share" in (tmp_path / "page.html").read_text()


def test_the_demo_goes_where_it_went():
    from raybench.demo.tour import STOPS

    assert "toy" not in STOPS and set(STOPS) < set(BENCHMARKS)
