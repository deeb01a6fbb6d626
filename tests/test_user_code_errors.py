"""Exceptions of a user's own class: one line with its file and line, no useless tries, its traceback by --debug."""

import pickle

import numpy as np
import pytest
from conftest import GOLDEN

from raybench.descriptors.own_errors import blamed_on_class
from raybench.errors import OwnCodeFailed

DATA = GOLDEN / "hbench_classification/data"
CLASSES = """
from pathlib import Path

import numpy as np


class Raising:
    def prepare(self, patches):
        return patches

    def describe(self, patches):
        with Path("calls").open("a") as calls:
            calls.write("x")
        return self.layer(patches)

    def layer(self, patches):
        return np.zeros(3).reshape(2, 2)  # line 17


class Unopened(Raising):
    def __init__(self):
        raise OSError("no weights\\nhere")  # line 22


class Ragged(Raising):
    def layer(self, patches):
        return [[1.0], [2.0, 3.0]]


class Nothing(Raising):
    def layer(self, patches):
        return None


class Fewer(Raising):
    def prepare(self, patches):
        return patches[1:]
"""


@pytest.fixture
def run(raybench, tmp_path, monkeypatch):
    (tmp_path / "raising.py").write_text(CLASSES)
    monkeypatch.chdir(tmp_path)

    def call(name, *more):
        given = ("--data", DATA / "hpatches", "--benchmarks", DATA / "benchmarks", "--ray", "off", "--progress", "none")
        return raybench("run", "hbench-classification", *given, "--descriptor", name, "--out", tmp_path / "out", *more)

    return call


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [("Raising", 17, "ValueError: cannot reshape"), ("Unopened", 22, "OSError: no weights")],
)
def test_an_exception_is_one_line_that_begins_with_the_users_own(run, tmp_path, name, line, words):
    said = run(f"raising:{name}")
    assert said.code == 3
    assert said.errors[0].startswith(f"{tmp_path}/raising.py:{line}: raising:{name} raised {words}")
    assert "stage extract, shard 0: i_pond/e1" in said.errors[0]
    assert "mend the class, then the same command goes on" in said.err
    assert "from there" not in said.err
    assert "Traceback" not in said.err


def test_the_same_exception_at_the_same_line_is_tried_once_more_and_no_third_time(run, tmp_path):
    run("raising:Raising")
    assert (tmp_path / "calls").read_text() == "xx"


def test_debug_shows_the_users_traceback_and_no_frame_of_ours(run):
    said = run("raising:Raising", "--debug")
    assert 'raising.py", line 17, in layer' in said.err
    assert "np.zeros(3).reshape(2, 2)" in said.err
    assert "specs.py" not in said.err


@pytest.mark.parametrize(("name", "words"), [("Ragged", "rows of one length"), ("Nothing", "gave nothing")])
def test_rows_that_are_no_array_are_the_users_input(run, name, words):
    said = run(f"raising:{name}")
    assert said.code == 2
    assert words in said.errors[0]


def test_a_prepare_that_loses_patches_is_named_with_both_counts(run):
    said = run("raising:Fewer")
    assert said.code == 2
    assert "prepare() of descriptor Fewer gave shape (14, 65, 65) for 15 patches" in said.errors[0]


def test_an_error_of_a_library_is_told_with_the_users_line_that_called_it():
    def own():
        return np.linalg.inv(np.zeros((2, 2)))

    words = r"test_user_code_errors\.py:\d+: mine:Mine raised LinAlgError"
    with pytest.raises(OwnCodeFailed, match=words) as raised, blamed_on_class("mine:Mine"):
        own()
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.where, again.trace) == (str(raised.value), raised.value.where, raised.value.trace)


def test_a_built_in_descriptor_raises_as_it_is():
    with pytest.raises(ZeroDivisionError), blamed_on_class("raybench.descriptors.opencv:Sift"):
        raise ZeroDivisionError
