"""Nodes come for a run, go while it does not need them, and are gone after it: a real autoscaler on one machine.

What the autoscaler sees are pending actors and tasks. The fake provider stands for a cloud, nothing else is fake.
"""

import json

import pytest
from autoscaled import autoscaled
from conftest import TESTS
from number_stages import Squares

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.ray(own=True), pytest.mark.timeout(600)]

TABLE = "hbench_classification.csv"
L4 = {"ray.io/accelerator-type": "L4"}
KINDS = {
    "loader": {"resources": {"CPU": 2}, "node_config": {}, "max_workers": 2},
    "gpu": {"resources": {"CPU": 2, "GPU": 1}, "node_config": {}, "max_workers": 2, "labels": L4},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with autoscaled(tmp_path_factory.mktemp("cluster"), KINDS) as one:
        yield one


def arguments(golden, out, *more):
    given = ("-m", "raybench", "run", "hbench-classification", "--data", golden / "hpatches", "--shard-size", "1")
    return (*given, "--benchmarks", golden / "benchmarks", "--descriptor", "meanstd", "--out", out, *more)


def files(folder):
    """What a run left, but for what says when and where."""
    kept = [*folder.glob("*.csv"), *folder.glob("results/*/*/*"), *folder.glob("tables/*")]
    return {path.relative_to(folder): path.read_bytes() for path in kept}


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        (("--cpus", "4", "--device", "cpu"), [[2, 0], [2, 0]]),
        (("--gpus", "2"), [[2, 1], [2, 1]]),
        (("--gpus", "1", "--accelerator-type", "T4,L4"), [[2, 1]]),
        (("--device", "cpu"), [[2, 0]]),
    ],
)
def test_nodes_come_for_a_run_and_leave_after_it(cluster, raybench, golden, tmp_path, asked, most):
    said, nodes = cluster.run(*arguments(golden, tmp_path / "out", "--ray", cluster.address, *asked))
    assert said.returncode == 0, said.stderr
    assert most in nodes, "the nodes that were asked for did not come"
    assert nodes[-1] == []
    assert raybench(*arguments(golden, tmp_path / "off", "--ray", "off")[2:]).code == 0
    assert files(tmp_path / "off") == files(tmp_path / "out")
    assert TABLE in map(str, files(tmp_path / "out"))


@pytest.mark.parametrize(("device", "grown", "left"), [("cpu", [4, 0], [2, 0]), ("gpu", [4, 2], [2, 0])])
def test_a_run_that_asks_for_nothing_grows_with_its_work_and_nodes_that_idle_go_while_it_lasts(
    cluster, tmp_path, device, grown, left
):
    """A stage of forty seconds takes every node that the autoscaler may add; one shard after it keeps one."""
    said, nodes = cluster.run(TESTS / "scaled_driver.py", cluster.address, tmp_path / "out", device)
    assert said.returncode == 0, said.stderr
    seen = json.loads(said.stdout.splitlines()[-1])
    assert seen["begin"] == [0, 0]
    assert [sum(one) for one in zip(*max(nodes, key=len), strict=True)] >= grown
    assert seen["wide"] >= grown
    assert seen["narrow"] == left
    run = Run(str(tmp_path / "off"), str(tmp_path / "off/stages"), InlineExecutor(Observer()), Observer())
    run.map(Squares(name="wide", on_device=device == "gpu"), 80, 1)
    wanted = {path.relative_to(tmp_path / "off"): path.read_bytes() for path in (tmp_path / "off").rglob("*.shard")}
    assert len(wanted) == 80
    assert wanted == {path: (tmp_path / "out" / path).read_bytes() for path in wanted}
