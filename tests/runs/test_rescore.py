"""`raybench rescore`: features of a finished run by other rules, images gone; the same bytes as a fresh run."""

import shutil

import pytest
from conftest import GOLDEN, only_line

INLINE = ("--ray", "off", "--progress", "none")
VERIFICATION = GOLDEN / "hpatches_verification/data"


def results(out):
    """Tables, results and curves of a run by name."""
    kinds = ("*.csv", "tables/*", "results/**/*.*", "curves/*")
    paths = [path for kind in kinds for path in out.glob(kind) if path.is_file()]
    return {path.relative_to(out): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def disc(copies, tmp_path_factory):
    """A finished run whose images are gone, and a fresh one by the options that it is scored again by."""
    from raybench.cli.commands import exit_code

    folder = tmp_path_factory.mktemp("disc")
    data = shutil.copytree(copies / "disc", folder / "data")
    given = ["run", "disc2021", "--data", str(data), "--descriptor", "thumbnail", *INLINE]
    other = ["--codecs", "L2norm,Flat", "--k", "3", "--score-norm", "0.5[0,1]", "--global-candidates"]
    assert exit_code([*given, "--codecs", "Flat", "--out", str(folder / "run")]) == 0
    assert exit_code([*given, *other, "--out", str(folder / "fresh")]) == 0
    data.rename(folder / "away")
    return folder, other


def test_other_codecs_norms_and_k_give_what_a_fresh_run_gives_without_the_images(disc, raybench, tmp_path):
    folder, other = disc
    said = raybench("rescore", folder / "run", "--out", tmp_path / "again", *other, *INLINE)
    assert said.code == 0, said.err
    assert results(tmp_path / "again") == results(folder / "fresh")


def test_options_that_are_not_given_are_those_of_the_finished_run(disc, raybench, tmp_path):
    assert raybench("rescore", disc[0] / "run", "--out", tmp_path / "again", *INLINE).code == 0
    assert results(tmp_path / "again") == results(disc[0] / "run")


def test_pictures_are_drawn_where_the_images_are_still_there(copies, raybench, tmp_path):
    given = ("--data", copies / "disc", "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    assert raybench("run", "disc2021", *given, "--out", tmp_path / "run").code == 0
    assert raybench("rescore", tmp_path / "run", "--out", tmp_path / "again", "--k", 2, *INLINE).code == 0
    assert sorted(path.name for path in (tmp_path / "again/pictures").iterdir()) == [
        "cases.json",
        "false_alarms.jpg",
        "missed.jpg",
    ]


@pytest.fixture(scope="module")
def patches(tmp_path_factory):
    """A finished run over patches whose strips are gone."""
    from raybench.cli.commands import exit_code

    folder = tmp_path_factory.mktemp("patches")
    data = shutil.copytree(VERIFICATION / "hpatches", folder / "data")
    given = ["run", "hpatches-verification", "--data", str(data), "--tasks", str(VERIFICATION / "tasks")]
    given += ["--descriptor", "meanstd", *INLINE]
    assert exit_code([*given, "--out", str(folder / "run")]) == 0
    assert exit_code([*given, "--distance", "L1", "--out", str(folder / "fresh")]) == 0
    data.rename(folder / "away")
    return folder


def test_another_distance_gives_what_a_fresh_run_gives_without_the_strips(patches, raybench, tmp_path):
    said = raybench("rescore", patches / "run", "--out", tmp_path / "again", "--distance", "L1", *INLINE)
    assert said.code == 0, said.err
    assert results(tmp_path / "again") == results(patches / "fresh")


def test_a_run_that_was_moved_finds_its_own_store(patches, raybench, tmp_path):
    moved = shutil.copytree(patches / "run", tmp_path / "moved")
    hidden = (patches / "run/stages").rename(patches / "run/hidden")
    try:
        said = raybench("rescore", moved, "--out", tmp_path / "again", "--distance", "L1", *INLINE)
    finally:
        hidden.rename(patches / "run/stages")
    assert said.code == 0, said.err
    assert results(tmp_path / "again") == results(patches / "fresh")


def test_no_listing_stays_where_stages_are_removed(raybench, tmp_path):
    given = ("--data", VERIFICATION / "hpatches", "--tasks", VERIFICATION / "tasks", "--descriptor", "meanstd")
    out = tmp_path / "run"
    said = raybench("run", "hpatches-verification", *given, "--keep-stages", "no", "--out", out, *INLINE)
    assert said.code == 0, said.err
    assert not [path for path in out.rglob("*") if path.suffix in (".shard", ".listing")]


def test_features_that_were_removed_are_said(patches, raybench, tmp_path):
    run = shutil.copytree(patches / "run", tmp_path / "run")
    shutil.rmtree(run / "stages")
    said = raybench("rescore", run, "--out", tmp_path / "again", *INLINE)
    only_line(said, run, "its features are not in the store", "raybench run")


def test_a_run_from_finished_results_has_nothing_to_score_again(raybench, tmp_path):
    data = GOLDEN / "hbench_classification/data"
    tasks = ("--benchmarks", data / "benchmarks")
    given = ("--features", data / "descriptors/block4", *tasks, *INLINE)
    assert raybench("run", "hbench-classification", *given, "--out", tmp_path / "a").code == 0
    given = ("--results", tmp_path / "a/results", *tasks, *INLINE)
    assert raybench("run", "hbench-classification", *given, "--out", tmp_path / "b").code == 0
    only_line(raybench("rescore", tmp_path / "b", "--out", tmp_path / "c"), "finished results", "no features")


def test_what_would_need_the_images_again_is_refused(patches, raybench, tmp_path):
    only_line(raybench("rescore", patches / "run", "--out", tmp_path / "again", "--shard-size", 3), "--shard-size")


def test_out_must_be_named_and_another(patches, raybench):
    only_line(raybench("rescore", patches / "run", *INLINE), "--out")
    only_line(raybench("rescore", patches / "run", "--out", patches / "run", *INLINE), "name another folder")


def test_no_run_is_said(raybench, tmp_path):
    only_line(raybench("rescore", tmp_path / "none", "--out", tmp_path / "x"), "no run there")
