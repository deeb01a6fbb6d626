"""Images from archives and lists give the tables of their folders, byte for byte: inline, on Ray, on object storage."""

import json
import shutil
import zipfile

import pytest
from archives import pack_shards, pack_tar, pack_zip, write_list
from conftest import only_line

from raybench import storage
from raybench.benchmarks.images.asked_cases import disc_cases
from raybench.runs.finished import finished_manifest, read_tables

HOW = ("--descriptor", "thumbnail", "--codecs", "Flat;PCAW16,L2norm,Flat", "--progress", "none")
TABLES = (
    "disc_metrics.csv",
    "results/predictions.csv",
    "tables/disc_variants.csv",
    "tables/disc_thresholds.csv",
    "pictures/cases.json",
)


@pytest.fixture(scope="module")
def packed(copies, tmp_path_factory):
    """The sets of DISC as two tars in shards, a zip and a list; and as the published tree in `disc`."""
    disc, folder = copies / "disc", tmp_path_factory.mktemp("packed")
    pack_tar(disc / "val_query", folder / "queries.tar")
    pack_shards(disc / "val_ref", folder, 3)
    pack_zip(disc / "training", folder / "training.zip", "training/", zipfile.ZIP_DEFLATED)
    shutil.copytree(disc, folder / "disc")
    write_list(folder / "disc/val_query", folder / "queries.csv")
    return folder


def sets(root, queries="queries.tar"):
    return (
        *("--queries", f"{root}/{queries}", "--references", f"{root}/shard-{{000..002}}.tar"),
        *("--training", f"{root}/training.zip", "--ground-truth", f"{root}/disc/val_groundtruth_matches.csv"),
    )


@pytest.fixture(scope="module")
def tables(packed, tmp_path_factory):
    """What the folders give."""
    from raybench.cli.commands import exit_code

    out = tmp_path_factory.mktemp("plain")
    assert exit_code(["run", "disc2021", "--data", f"{packed}/disc", "--out", f"{out}", "--ray", "off", *HOW]) == 0
    return {name: (out / name).read_bytes() for name in TABLES}


def run(raybench, out, *given):
    said = raybench("run", "disc2021", "--out", out, *given, *HOW)
    assert said.code == 0, said.err
    return {name: storage.read(f"{out}/{name}") for name in TABLES}


@pytest.mark.parametrize("queries", ["queries.tar", "queries.csv"])
def test_archives_and_lists_give_the_tables_of_folders(raybench, packed, tables, tmp_path, queries):
    assert run(raybench, tmp_path, *sets(packed, queries), "--ray", "off") == tables


def test_so_they_do_on_ray_from_object_storage(raybench, packed, tables, s3, local_ray):
    uri = s3.upload(packed, f"{s3.bucket('packed')}/set")
    assert run(raybench, f"{uri}-out", *sets(uri), "--device", "cpu", "--cpus", "2") == tables
    assert len(storage.list_files(f"{uri}-out/stages/indexes")) == 5


def test_features_serve_without_the_archives(raybench, packed, tmp_path):
    for name in ("queries.tar", "training.zip", "shard-000.tar", "shard-001.tar", "shard-002.tar"):
        shutil.copy(packed / name, tmp_path / name)
    shutil.copytree(packed / "disc", tmp_path / "disc", ignore=shutil.ignore_patterns("*.jpg"))
    run(raybench, tmp_path / "out", *sets(tmp_path), "--ray", "off")
    again = ("rescore", tmp_path / "out", "--codecs", "PCAW8,Flat", "--progress", "none", "--ray", "off", "--out")
    assert raybench(*again, tmp_path / "there").code == 0
    for archive in (*tmp_path.glob("*.tar"), *tmp_path.glob("*.zip")):
        archive.unlink()
    assert raybench(*again, tmp_path / "gone").code == 0
    assert (tmp_path / "gone/disc_metrics.csv").read_bytes() == (tmp_path / "there/disc_metrics.csv").read_bytes()


def test_cases_asked_for_by_name_are_drawn_from_archives(raybench, packed, tmp_path):
    run(raybench, tmp_path, *sets(packed), "--ray", "off")
    manifest = finished_manifest(f"{tmp_path}")
    asked = disc_cases(f"{tmp_path}", manifest.arguments, read_tables(f"{tmp_path}", manifest), ["Q00001", "Q00005"])
    assert [case.unit for case in asked] == ["Q00001", "Q00005"]
    assert all(panel.jpeg for case in asked for panel in case.panels)


def test_by_content_a_run_on_archives_is_the_run_on_folders(raybench, packed, tmp_path):
    inputs = []
    for name, given in (("plain", ("--data", packed / "disc")), ("packed", sets(packed))):
        run(raybench, tmp_path / name, *given, "--ray", "off", "--verify-inputs", "--limit", "20")
        inputs.append(json.loads((tmp_path / name / "manifest.json").read_text())["inputs"])
    assert inputs[0] == inputs[1]


def test_broken_members_are_left_out_where_the_user_says_so(raybench, packed, tmp_path):
    shutil.copytree(packed / "disc/val_query", tmp_path / "queries")
    (tmp_path / "queries/Q00001.jpg").write_bytes(b"no picture")
    pack_tar(tmp_path / "queries", tmp_path / "queries.tar")
    given = (*sets(packed), "--queries", tmp_path / "queries.tar", "--ray", "off", "--out", tmp_path / "out", *HOW)
    only_line(raybench("run", "disc2021", *given), "queries.tar/Q00001.jpg")
    said = raybench("run", "disc2021", *given, "--on-bad-input", "skip")
    assert said.code == 0, said.err
    skipped = json.loads((tmp_path / "out/manifest.json").read_text())["skipped"]
    assert skipped == ["queries: Q00001: can't be read"]


def test_check_takes_archives_and_leaves_nothing(raybench, packed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in packed.iterdir()}
    assert raybench("check", "disc2021", *sets(packed), *HOW, "--ray", "off").code == 0
    assert {path: path.stat().st_mtime_ns for path in packed.iterdir()} == before
    assert not list(tmp_path.iterdir())


def test_a_pattern_without_quotes_is_explained(raybench):
    said = raybench("run", "disc2021", "--queries", "x-000.tar", "x-001.tar")
    only_line(said, "a shell takes braces apart: put 'name-{000..009}.tar' in quotes")


def test_the_index_goes_with_the_stages(raybench, packed, tmp_path):
    run(raybench, tmp_path, *sets(packed), "--ray", "off", "--limit", "10", "--keep-stages", "no")
    assert not (tmp_path / "stages/indexes").exists()
