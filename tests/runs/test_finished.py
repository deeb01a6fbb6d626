"""Runs are found in the folder that is named, or below it."""

import pytest
from report_pages import manifest

from raybench import storage
from raybench.runs.finished import runs_below, runs_in


def finished(folder):
    manifest("hbench-matching", folder.name).publish(str(folder))
    return str(folder)


def test_the_folder_of_a_run_is_that_run_even_with_others_in_it(tmp_path):
    finished(tmp_path / "a/inner")
    assert runs_in(finished(tmp_path / "a")) == [str(tmp_path / "a")]


@pytest.mark.parametrize("above", ["", "hbench"])
def test_of_a_folder_above_runs_all_are_taken(tmp_path, above):
    names = ("hbench-classification", "hbench-matching")
    found = [finished(tmp_path / above / name) for name in names]
    (tmp_path / above / "data").mkdir()
    assert runs_in(str(tmp_path)) == found


def test_a_folder_without_runs_is_named_in_the_error(raybench, tmp_path):
    said = raybench("report", tmp_path, "--out", tmp_path / "page.html")
    assert said.code == 2 and f"{tmp_path}: no run there" in said.err and not (tmp_path / "page.html").exists()


def test_in_a_bucket_only_files_of_that_very_name_are_manifests(tmp_path):
    folder = f"memory://{tmp_path.name}"
    for name in ("a/manifest.json", "b/old-manifest.json", "c/manifest.json.bak", "d/x/stages/manifest.json"):
        storage.publish(f"{folder}/{name}", b"{}")
    assert runs_below(folder) == ["a"]
