"""Which finished run tells how long another may take."""

import dataclasses
import os

from raybench.engine.course import Former
from raybench.runs.former import former_run
from raybench.runs.manifest import Manifest

DONE = Manifest("tss", {}, {}, {}, status="done", stages=[{"name": "flows", "seconds": 2.5, "found": 0}])
FLOWS = Former((("flows", 2.5),))


def leave(manifest: Manifest, folder, age_seconds: float = 0.0) -> None:
    manifest.publish(str(folder))
    then = (folder / "manifest.json").stat().st_mtime - age_seconds
    os.utime(folder / "manifest.json", (then, then))


def test_the_newest_finished_run_of_the_same_benchmark_beside_it_tells(tmp_path):
    leave(DONE, tmp_path / "a", 20)
    leave(dataclasses.replace(DONE, stages=[{"name": "flows", "seconds": 9.0, "found": 0}]), tmp_path / "b", 40)
    leave(dataclasses.replace(DONE, benchmark="disc2021"), tmp_path / "c")
    assert former_run("tss", str(tmp_path / "new")) == FLOWS


def test_a_run_that_is_not_done_or_found_parts_in_a_store_tells_nothing(tmp_path):
    leave(dataclasses.replace(DONE, status="running"), tmp_path / "a")
    leave(dataclasses.replace(DONE, stages=[{"name": "flows", "seconds": 0.1, "found": 3}]), tmp_path / "b")
    assert former_run("tss", str(tmp_path / "new")) == Former()


def test_broken_manifests_absent_folders_and_object_stores_tell_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/manifest.json").write_text('{"benchmark": "tss", "status": "done", "stages": 7}')
    for out in (tmp_path / "new", tmp_path / "nowhere/new", "s3://bucket/runs/new"):
        assert former_run("tss", str(out)) == Former()
