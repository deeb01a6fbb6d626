"""Files that are away while a run goes on end it, and are described once they are back: they are not broken."""

import json

import pytest
from archives import pack_tar
from conftest import only_line

from raybench import storage
from raybench.sources import archive_files

HOW = ("--descriptor", "thumbnail", "--codecs", "Flat", "--progress", "none", "--ray", "off", "--on-bad-input", "skip")


def gone(uri, *_):
    raise FileNotFoundError(uri)


def describes_all(raybench, command, out):
    said = raybench(*command)
    assert said.code == 0, said.err
    assert json.loads((out / "manifest.json").read_text())["skipped"] == []


@pytest.mark.parametrize("readers", [("read_start", "read"), ("read",)], ids=["as headers are read", "as pictures are"])
def test_a_file_that_is_away_for_a_while_is_neither_skipped_nor_held_to_be_broken(
    readers, raybench, copies, tmp_path, monkeypatch
):
    command = ("run", "disc2021", "--data", copies / "disc", "--out", tmp_path / "out", *HOW)
    with monkeypatch.context() as away:
        for name in readers:
            there = getattr(storage, name)
            away.setattr(storage, name, lambda uri, *at, there=there: (gone if "/Q00001." in uri else there)(uri, *at))
        only_line(raybench(*command), "Q00001.jpg: is gone since the folder was listed; run again")
    describes_all(raybench, command, tmp_path / "out")


def test_so_is_an_archive_that_is_replaced_while_a_run_goes_on(raybench, copies, tmp_path, monkeypatch):
    sets = ("--queries", pack_tar(copies / "disc/val_query", tmp_path / "queries.tar"))
    command = ("run", "disc2021", "--data", copies / "disc", *sets, "--out", tmp_path / "out", *HOW)
    with monkeypatch.context() as away:
        check = archive_files.check_unchanged
        away.setattr(archive_files, "check_unchanged", lambda archive: check(archive._replace(stamp="before")))
        only_line(raybench(*command), "queries.tar: was rewritten since it was listed; run again")
    describes_all(raybench, command, tmp_path / "out")
