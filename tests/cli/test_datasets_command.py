"""`raybench datasets`: the list, one set, and a check, for people and for machines."""

import json
import os

import pytest
from conftest import only_line
from small_sets import make, scaled

from raybench.benchmarks.guides import GUIDES
from raybench.cli import datasets
from raybench.datasets.published import PUBLISHED


def test_the_list_has_each_set_with_licence_links_and_what_it_is_for(raybench):
    said = raybench("datasets")
    assert said.code == 0
    for name, one in PUBLISHED.items():
        assert f"\n  {name} " in said.out
        assert one.links[0] in said.out
    rows = json.loads(raybench("datasets", "--format", "json").out)
    assert [row["set"] for row in rows] == list(PUBLISHED)
    assert rows[0]["licence"].startswith("MIT")


@pytest.mark.parametrize("name", PUBLISHED)
def test_one_set_is_shown_with_its_tree_counts_and_steps(raybench, name):
    said = raybench("datasets", name)
    assert said.code == 0
    assert "└── " in said.out and "steps (none is taken here)\n  1. " in said.out
    assert f"raybench datasets check {name} PATH" in said.out
    parts = json.loads(raybench("datasets", name, "--format", "json").out)["parts"]
    assert [part["role"] for part in parts] == [part.role for part in PUBLISHED[name].parts]


def test_known_digests_are_shown_in_full(raybench):
    out = raybench("datasets", "hpatches-tasks").out
    assert "splits.json: 7,613 bytes, sha256 75d4272eb8872f5444d34c00b4111f317432b5fe7550e74749cb1354d972fa83" in out


def test_trees_and_links_of_lists_are_those_of_the_sets():
    for name, benchmark in (("disc2021", "disc2021"), ("tss", "tss"), ("hpatches", "hbench-matching")):
        assert PUBLISHED[name].tree in GUIDES[benchmark].tree
        assert PUBLISHED[name].links[0] in GUIDES[benchmark].sources


def test_names_that_sets_have_elsewhere_lead_to_sets_that_are_there():
    assert {name for names in datasets.CALLED_ELSEWHERE.values() for name in names} <= PUBLISHED.keys()
    assert not datasets.CALLED_ELSEWHERE.keys() & PUBLISHED.keys()


@pytest.mark.parametrize("words", [("datasets", "--help"), ("datasets", "check", "--help")])
def test_help_ends_with_two_examples(raybench, words):
    shown = raybench(*words).out
    assert shown.count("\n    raybench datasets") == 2 or shown.count("\n  raybench datasets") == 2


def test_an_unknown_set_is_one_line_with_a_suggestion(raybench, tmp_path):
    only_line(raybench("datasets", "disc2012"), "unknown set disc2012 (did you mean disc2021?)")
    only_line(raybench("datasets", "check", "hpatch", tmp_path), "unknown set hpatch (did you mean hpatches?)")
    only_line(raybench("datasets", "phototour"), "(did you mean liberty, notredame, yosemite?)")
    only_line(raybench("datasets", "hpatches-release"), "(did you mean hpatches, hpatches-tasks?)")
    only_line(raybench("datasets", "Oxford"), "(did you mean roxford5k?)")
    only_line(raybench("datasets", "check", "TSS", tmp_path), "unknown set TSS (did you mean tss?)")
    only_line(raybench("datasets", "check", "tss"), "Missing argument 'PATH'")


def test_a_check_ends_with_0_and_what_the_set_is_enough_for_or_with_2_and_a_line_per_problem(
    raybench, tmp_path, monkeypatch
):
    few = scaled(PUBLISHED["tss"], {"any": 2})
    monkeypatch.setitem(datasets.PUBLISHED, "tss", few)
    make(few, tmp_path)
    said = raybench("datasets", "check", "tss", tmp_path)
    assert said.code == 0, said.err
    assert f"raybench run tss --data {tmp_path} --descriptor dis --out OUT" in said.out
    assert f"good: {tmp_path} holds tss" in said.out
    (tmp_path / "JODS/pair0/mask1.png").unlink()
    (tmp_path / "PASCAL/pair1/image2.png").write_bytes(b"")
    said = raybench("datasets", "check", "tss", tmp_path, "--read", "headers")
    assert said.code == 2
    assert len(said.errors) == 2
    assert "not enough for" in said.out and "lacks truth, images" in said.out
    said = raybench("datasets", "check", "tss", tmp_path, "--format", "json")
    found = json.loads(said.out)
    assert said.code == 2 and found["problems"] == said.errors
    assert [part["good"] for part in found["parts"]] == [True, True, False, True, True, False]


def test_names_of_files_neither_command_a_terminal_nor_break_the_lines(raybench, tmp_path, monkeypatch):
    few = scaled(PUBLISHED["disc2021"], {"any": 2})
    monkeypatch.setitem(datasets.PUBLISHED, "disc2021", few)
    make(few, tmp_path)
    for name in (b"R\x1b[31m.jpg", b"R\nx.jpg", b"R\xff.jpg"):
        (tmp_path / "val_ref" / os.fsdecode(name)).write_bytes(b"x")
    for form in ("table", "json"):
        said = raybench("datasets", "check", "disc2021", tmp_path, "--format", form)
        assert said.code == 2 and len(said.errors) == 1 and "not of this set" in said.errors[0]
        assert "\x1b" not in said.out + said.err


def test_errors_on_a_wrong_root_name_the_command_that_shows_the_tree(raybench, tmp_path):
    said = raybench("check", "disc2021", "--data", tmp_path, "--descriptor", "thumbnail")
    assert "`raybench datasets disc2021` shows its tree" in said.err
