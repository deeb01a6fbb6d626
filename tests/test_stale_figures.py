"""Runs over one store, between which code or weights of the user's own class change: every table is that of a new run.

In one process, where Python keeps old modules, and on a Ray whose workers serve one run after the other.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import GOLDEN

SOURCE = """
import numpy as np
import part


class Mine:
    name = "mine"

    def __init__(self, weights):
        self.weights = np.load(weights)

    def prepare(self, pixels):
        return part.prepared(pixels)

    def describe(self, prepared):
        rows = prepared.reshape(len(prepared), -1)[:, :64].astype(np.float64)
        return np.round(rows * self.weights[: rows.shape[1]], 4)

    def flow(self, image1, image2):
        return np.full((*image1.shape[:2], 2), self.weights[0] + part.SHIFT, np.float32)
"""
PART = """
SHIFT = 0.0


def prepared(pixels):
    return pixels[..., ::8, ::8] if pixels.shape[-1] != 3 else pixels[:4, :4]
"""
INPUTS = {
    "hbench-classification": lambda copies: (
        *("--data", GOLDEN / "hbench_classification/data/hpatches"),
        *("--benchmarks", GOLDEN / "hbench_classification/data/benchmarks"),
    ),
    "copydays": lambda copies: (
        *("--data", copies / "copydays", "--distractors", copies / "distractors", "--codecs", "Flat", "--limit", "40"),
    ),
    "tss": lambda copies: ("--data", GOLDEN / "tss/data/Dataset"),
}
MAIN = {"hbench-classification": "hbench_classification.csv", "copydays": "copydays_metrics.csv", "tss": "tss.csv"}
FIRST_STAGE = {"hbench-classification": "extract", "copydays": "describe-images", "tss": "dense-flow"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder with the user's modules and weights."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "part.py").write_text(PART)
    np.save(tmp_path / "w.npy", np.linspace(1, 2, 64))
    yield tmp_path
    for name in ("mine", "part"):
        sys.modules.pop(name, None)


def computed(here, name, stage):
    manifest = json.loads((here / name / "manifest.json").read_text())
    return {one["name"]: one["computed"] for one in manifest["stages"]}[stage]


@pytest.mark.parametrize(
    ("benchmark", "where"),
    [
        *((benchmark, "inline") for benchmark in INPUTS),
        pytest.param("hbench-classification", "ray", marks=[pytest.mark.ray, pytest.mark.slow]),
    ],
)
def test_no_table_is_made_from_what_was_there_before_a_change(raybench, here, copies, request, benchmark, where):
    if where == "ray":  # logical GPUs: load tasks run in worker processes that stay for the next run
        request.getfixturevalue("local_ray")
    place = ("--ray", "off") if where == "inline" else ("--device", "gpu", "--cpus", "2")
    given = (*INPUTS[benchmark](copies), *place, "--descriptor", "mine:Mine")

    def run(name, store):
        arguments = ("--descriptor-args", '{"weights": "w.npy"}', "--store", here / store, "--out", here / name)
        said = raybench("run", benchmark, *given, *arguments)
        assert said.code == 0, said.err
        return (here / name / MAIN[benchmark]).read_bytes()

    stage = FIRST_STAGE[benchmark]
    first = run("first", "store")
    assert run("again", "store") == first and computed(here, "again", stage) == 0
    np.save(here / "w.npy", np.linspace(-1, 9, 64))
    weights = run("other weights", "store")
    assert computed(here, "other weights", stage) > 0 and weights == run("a", "new") != first
    (here / "part.py").write_text(
        PART.replace("0.0", "0.4").replace("::8, ::8", "1::9, 1::9").replace(":4, :4", "4:, 4:")
    )
    code = run("other code", "store")
    assert computed(here, "other code", stage) > 0 and code == run("b", "new") != weights
    (here / "part.py").write_text(PART)
    np.save(here / "w.npy", np.linspace(1, 2, 64))
    assert run("as before", "store") == first and computed(here, "as before", stage) == 0


def test_what_the_digest_does_not_cover_is_said_in_the_run_its_table_and_its_manifest(raybench, here):
    (here / "part.py").write_text(f"import os\nLEVEL = os.environ.get('LEVEL')\n{PART}")
    given = (*INPUTS["tss"](None), "--ray", "off", "--descriptor", "mine:Mine", "--progress", "json")
    said = raybench("run", "tss", *given, "--descriptor-args", '{"weights": "w.npy"}', "--out", here / "out")
    note = (
        "DIGEST: part.py reads environment variables (line 2): what that brings is no part of the digest of mine:Mine"
    )
    assert note in said.out and note in said.err
    assert any(note in line for line in json.loads((here / "out/manifest.json").read_text())["notes"])
    assert note in (here / "out/report.html").read_text()


@pytest.mark.ray(own=True)
@pytest.mark.slow
def test_a_ray_that_stays_up_between_two_drivers_keeps_nothing_of_the_first(here):
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    given = [*INPUTS["tss"](None), "--descriptor", "mine:Mine", "--descriptor-args", '{"weights": "w.npy"}']

    def run(name, ray):
        command = [sys.executable, "-m", "raybench", "run", "tss", *map(str, given), "--device", "cpu", "--ray", ray]
        command += ["--store", str(here / f"store {ray[:3]}"), "--out", str(here / name)]
        said = subprocess.run(command, capture_output=True, text=True, cwd=here)
        assert said.returncode == 0, said.stderr
        return (here / name / MAIN["tss"]).read_bytes()

    try:
        first = run("first", cluster.address)
        (here / "part.py").write_text(PART.replace("0.0", "0.4"))
        second = run("second", cluster.address)
    finally:
        cluster.shutdown()
    assert computed(here, "second", "dense-flow") > 0 and second != first
    assert second == run("inline", "off")
