"""Jobs as a cluster runs them: `ray job submit` against a real head on this machine, and as plain scripts."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import GOLDEN, free_port, wait_for_port

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("words", [(ROOT / "jobs/hpatches_eval.py",), ("-m", "raybench.jobs.hpatches_eval")])
def test_a_job_runs_as_a_script_and_from_the_installed_package(golden, tmp_path, words):
    given = ["--benchmarks", golden / "benchmarks", "--results", golden / "results/block4", "--out", tmp_path / "out"]
    command = [sys.executable, *words, *given, "--ray", "off"]
    said = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "out/hbench_classification.csv").exists()


def test_every_script_has_its_module_in_the_package_which_a_wheel_holds():
    scripts = {path.name for path in (ROOT / "jobs").glob("*.py")}
    assert len(scripts) == 4
    assert scripts == {path.name for path in (ROOT / "raybench/jobs").glob("*_eval.py")}


def test_the_flow_job_takes_the_arguments_of_the_kits_tool(tmp_path):
    import csv
    import json

    kit = GOLDEN / "tss"
    given = [
        "-resultsDir",
        kit / "data/Results",
        "-datasetDir",
        kit / "data/Dataset",
        "-autoFlip",
        "1",
        "-usePrec",
        "0",
    ]
    command = [sys.executable, ROOT / "jobs/tss_eval.py", *given, "--out", tmp_path / "out", "--ray", "off"]
    said = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    expected = json.loads((kit / "expected.json").read_text())["vc_autoflip_seg"]["Average"]
    (group, _) = csv.DictReader((tmp_path / "out/tss.csv").open())
    assert abs(float(group["SegIUR"]) - expected) < 1e-6


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_ray_job_submit_runs_the_job_on_a_head(golden, tmp_path):
    """The head gets a home of its own, with a token, so that it meets no other Ray of this machine."""
    home = tmp_path / "home"
    (home / ".ray").mkdir(parents=True)
    (home / ".ray/auth_token").write_text("0" * 64)
    gcs, dashboard = free_port(), free_port()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "AWS_"))}
    environment |= {"HOME": str(home), "RAY_AUTH_MODE": "token", "PYTHONPATH": ""}
    head = subprocess.Popen(
        [
            *(str(BIN / "ray"), "start", "--head", "--block", "--num-cpus", "2", "--port", str(gcs)),
            *("--dashboard-port", str(dashboard), "--temp-dir", f"/tmp/rb{os.getpid()}"),
            # The session's Ray has the usual ports of these.
            *("--dashboard-agent-listen-port", str(free_port()), "--ray-client-server-port", str(free_port())),
            *("--dashboard-agent-grpc-port", str(free_port()), "--metrics-export-port", str(free_port())),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(dashboard, 60)
        out = tmp_path / "out"
        given = ["--benchmarks", golden / "benchmarks", "--features", golden / "descriptors/block4", "--out", out]
        submit = [BIN / "ray", "job", "submit", "--address", f"http://127.0.0.1:{dashboard}", "--working-dir", ROOT]
        command = [*submit, "--", sys.executable, "jobs/hpatches_eval.py", "hbench-classification", *given]
        deadline = time.monotonic() + 90
        while True:  # the dashboard answers before the head's agent can take jobs
            said = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False)
            if "No available agent" not in said.stderr or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert said.returncode == 0, said.stdout + said.stderr
        assert (out / "hbench_classification.csv").exists()
        assert '"executor": "ray"' in (out / "manifest.json").read_text()
        assert '"event": "stages_ended"' in said.stdout
    finally:
        head.terminate()
        head.wait(30)
        shutil.rmtree(f"/tmp/rb{os.getpid()}", ignore_errors=True)
