"""Kills of real processes in the middle of real runs: the table is that of an undisturbed run, byte for byte."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from drivers import has_ended, wait_until

TABLE = "hbench_classification.csv"


@pytest.fixture
def meeting(tmp_path):
    """A folder where a worker waits to be killed for as long as `wait` is there."""
    folder = tmp_path / "meeting"
    folder.mkdir()
    (folder / "wait").touch()
    return folder


def arguments(golden, out, meeting, call):
    return [
        *("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks"),
        *("--descriptor", "patch_descriptors:MeetingBlock4", "--out", out, "--shard-size", "4"),
        *("--descriptor-args", json.dumps({"folder": str(meeting), "call": call}), "--device", "cpu"),
    ]


def wait_for(path, process=None):
    wait_until(path.exists, process)
    return path.read_text()


def stages(out):
    return {stage["name"]: stage for stage in json.loads((out / "manifest.json").read_text())["stages"]}


def undisturbed(raybench, golden, tmp_path):
    out = tmp_path / "undisturbed"
    given = ("--data", golden / "hpatches", "--benchmarks", golden / "benchmarks", "--ray", "off")
    said = raybench("run", "hbench-classification", *given, "--descriptor", "patch_descriptors:Block4", "--out", out)
    assert said.code == 0, said.err
    return (out / TABLE).read_bytes()


def test_an_actor_killed_mid_run_changes_nothing(raybench, golden, tmp_path, meeting, local_ray):
    killed = []

    def kill():
        killed.append(int(wait_for(meeting / "here")))
        (meeting / "wait").unlink()
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    said = raybench(*arguments(golden, tmp_path / "out", meeting, call=6), "--cpus", "2")
    thread.join(10)
    assert said.code == 0, said.err
    assert killed, "nobody was killed"
    extract = stages(tmp_path / "out")["extract"]
    assert extract["attempts"] + extract["lost"] > extract["computed"] == 12
    assert (tmp_path / "out" / TABLE).read_bytes() == undisturbed(raybench, golden, tmp_path)


@pytest.mark.parametrize("ray", ["off", pytest.param("local", marks=[pytest.mark.ray(own=True), pytest.mark.slow])])
def test_a_killed_driver_run_again_computes_only_what_was_missing(raybench, golden, tmp_path, meeting, ray):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "raybench", *map(str, arguments(golden, out, meeting, call=14)), "--ray", ray]
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    worker = int(wait_for(meeting / "here", driver))
    driver.send_signal(signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    wait_until(lambda: has_ended(worker))  # else it goes on with the shards that it has
    (meeting / "wait").unlink()
    left = {path.parent.name: path for path in (out / "stages").rglob("*.shard")}
    assert left, "nothing was published before the kill"
    assert not (out / TABLE).exists()
    published = len(list((out / "stages").rglob("*.shard")))
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    extract = stages(out)["extract"]
    assert extract["shards"] == 12
    assert extract["found"] >= published, "what was published was computed again"
    assert extract["computed"] == 12 - extract["found"] > 0
    assert (out / TABLE).read_bytes() == undisturbed(raybench, golden, tmp_path)


def test_a_finished_run_is_a_no_op_and_missing_shards_alone_are_computed(raybench, golden, tmp_path, monkeypatch):
    monkeypatch.setattr("raybench.search.pairs.PAIRS_PER_SHARD", 10)
    out = tmp_path / "out"
    given = ("run", "hbench-classification", "--features", golden / "descriptors/block4", "--ray", "off")
    given += ("--benchmarks", golden / "benchmarks", "--out", out, "--shard-size", "10")
    assert raybench(*given).code == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    said = raybench(*given)
    assert said.code == 0
    assert "done already" in said.err
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    table = (out / TABLE).read_bytes()
    digest = stages(out)["pairs"]["digest"]
    for number in (0, 3, 64):
        (out / "stages" / digest / f"{number:06d}.shard").unlink()
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    assert raybench(*given).code == 0
    assert stages(out)["pairs"]["computed"] == 3
    assert stages(out)["read-vectors"]["computed"] == 0
    assert (out / TABLE).read_bytes() == table


def test_an_interrupt_exits_130_and_says_how_to_go_on(golden, tmp_path, meeting):
    given = [*map(str, arguments(golden, tmp_path / "out", meeting, call=3)), "--ray", "off"]
    driver = subprocess.Popen(
        [sys.executable, "-m", "raybench", *given],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores it
    )
    wait_for(meeting / "here", driver)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=30)
    assert driver.returncode == 130
    assert "resumes" in said
    assert "Traceback" not in said


def test_a_shard_that_always_kills_its_worker_ends_with_exit_code_3(raybench, golden, tmp_path, local_ray):
    given = ("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks")
    more = ("--out", tmp_path / "out", "--cpus", "2", "--device", "cpu")
    said = raybench(*given, "--descriptor", "patch_descriptors:Dying", *more)
    assert said.code == 3
    assert len(said.errors) == 1
    assert re.search(r"extract, shard \d \((i_pond|v_gate|v_loft)/e1 … .*\) failed 3 times.* died", said.errors[0])


@pytest.mark.parametrize("ray", [("--ray", "off"), ("--device", "gpu", "--gpus", "2")])
def test_a_descriptor_that_always_raises_ends_with_exit_code_3_and_its_cause(
    raybench, golden, tmp_path, local_ray, ray
):
    given = ("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks")
    said = raybench(*given, "--descriptor", "patch_descriptors:Failing", "--out", tmp_path / "out", *ray)
    assert said.code == 3
    assert "Unpicklable: no luck" in said.errors[0]


def test_runs_may_share_a_store_so_that_one_extraction_serves_many(raybench, golden, tmp_path):
    given = ("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks")
    given += ("--descriptor", "meanstd", "--store", tmp_path / "store", "--ray", "off")
    assert raybench(*given, "--out", tmp_path / "a").code == 0
    assert raybench(*given, "--out", tmp_path / "b", "--distance", "L1").code == 0
    assert stages(tmp_path / "b")["extract"]["computed"] == 0
    assert stages(tmp_path / "b")["pairs"]["computed"] == 1


def test_a_changed_input_is_never_answered_from_the_store(raybench, golden, tmp_path):
    import shutil

    vectors = Path(shutil.copytree(golden / "descriptors/block4", tmp_path / "block4"))
    given = ("run", "hbench-classification", "--features", vectors, "--benchmarks", golden / "benchmarks")
    given += ("--out", tmp_path / "out", "--ray", "off")
    assert raybench(*given).code == 0
    before = (tmp_path / "out" / TABLE).read_bytes()
    changed = vectors / "i_pond/e1.csv"
    info = changed.stat()
    lines = changed.read_text().splitlines()
    changed.write_text("\n".join(lines[::-1]) + "\n")
    os.utime(changed, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert raybench(*given).code == 0
    assert (tmp_path / "out" / TABLE).read_bytes() != before


def test_stages_are_removed_if_asked_and_the_run_stays_done(raybench, golden, tmp_path):
    given = ("run", "hbench-classification", "--results", golden / "results/block4", "--ray", "off")
    given += ("--benchmarks", golden / "benchmarks", "--out", tmp_path / "out", "--keep-stages", "no")
    assert raybench(*given).code == 0
    assert not list((tmp_path / "out").rglob("*.shard"))
    assert "done already" in raybench(*given).err


def test_overwriting_that_cannot_start_leaves_what_was_there(raybench, golden, tmp_path):
    given = ["run", "hbench-classification", "--results", golden / "results/block4", "--out", tmp_path / "out"]
    given += ["--benchmarks", golden / "benchmarks"]
    assert raybench(*given, "--ray", "off").code == 0
    before = (tmp_path / "out" / TABLE).read_bytes()
    command = [
        sys.executable,
        "-m",
        "raybench",
        *map(str, given),
        "--overwrite",
        "--limit",
        "5",
        "--ray",
        "127.0.0.1:1",
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, "nobody listens there" in said.stderr) == (2, True)
    assert (tmp_path / "out" / TABLE).read_bytes() == before
    assert "done already" in raybench(*given, "--ray", "off").err


def test_files_of_a_task_that_is_gone_do_not_survive(raybench, golden, tmp_path):
    import shutil

    tasks = Path(shutil.copytree(golden / "benchmarks", tmp_path / "benchmarks"))
    given = ("run", "hbench-classification", "--features", golden / "descriptors/block4", "--ray", "off")
    given += ("--benchmarks", tasks, "--out", tmp_path / "out")
    assert raybench(*given).code == 0
    assert (tmp_path / "out/curves/mini_sameseq_easy.parquet").exists()
    (tasks / "classification/mini_sameseq_easy.benchmark").unlink()
    assert raybench(*given).code == 0
    assert not (tmp_path / "out/curves/mini_sameseq_easy.parquet").exists()
    assert not (tmp_path / "out/results/classification/block4/mini_easy_pos.results").exists()


def test_a_manifest_that_names_files_elsewhere_deletes_nothing(raybench, golden, tmp_path):
    given = ("run", "hbench-classification", "--results", golden / "results/block4", "--ray", "off", "--overwrite")
    given += ("--benchmarks", golden / "benchmarks", "--out", tmp_path / "out")
    assert raybench(*given).code == 0
    (tmp_path / "precious").write_text("kept")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    (tmp_path / "out/manifest.json").write_text(json.dumps({**manifest, "files": ["../precious"]}))
    raybench(*given)
    assert (tmp_path / "precious").read_text() == "kept"
