"""Nodes come for a run, go while it does not need them, and are gone after it: a real autoscaler on one machine.

What the autoscaler sees are pending actors and tasks. The fake provider stands for a cloud, nothing else is fake.
"""

import json

import pytest
import yaml
from autoscaled import autoscaled
from conftest import TESTS
from number_stages import Squares

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.ray(own=True), pytest.mark.timeout(600)]

NARROW_SECONDS = 25  # the idle time of actors, that of nodes, and some
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


@pytest.mark.parametrize(("device", "grown"), [("cpu", [4, 0]), ("gpu", [4, 2])])
def test_a_run_that_asks_for_nothing_grows_with_its_work_and_nodes_that_idle_go_while_it_lasts(
    cluster, tmp_path, device, grown
):
    """A stage of forty seconds takes every node that the autoscaler may add; one shard after it keeps one."""
    said, nodes = cluster.run(TESTS / "scaled_driver.py", cluster.address, tmp_path / "out", device, NARROW_SECONDS)
    assert said.returncode == 0, said.stderr
    seen = json.loads(said.stdout.splitlines()[-1])
    assert seen["begin"] == [0, 0]
    assert [sum(one) for one in zip(*max(nodes, key=len), strict=True)] >= grown
    assert seen["wide"] >= grown
    assert seen["narrow"][0] == 2, "one node of two CPUs is left, with the actor of the last shard on it"
    run = Run(str(tmp_path / "off"), str(tmp_path / "off/stages"), InlineExecutor(Observer()), Observer())
    run.map(Squares(name="wide", on_device=device == "gpu"), 80, 1)
    wanted = {path.relative_to(tmp_path / "off"): path.read_bytes() for path in (tmp_path / "off").rglob("*.shard")}
    assert len(wanted) == 80
    assert wanted == {path: (tmp_path / "out" / path).read_bytes() for path in wanted}


def test_an_on_demand_node_comes_where_no_spot_node_can_be_had(tmp_path):
    """Types, priorities and labels are those of cluster.yaml; CPUs are those of this machine."""
    described = yaml.safe_load((TESTS.parent / "cluster.yaml").read_text())["available_node_types"]
    kinds = {
        name: {key: kind[key] for key in ("priority", "labels", "max_workers")}
        | {"resources": {"CPU": 2, "GPU": 1}, "node_config": {}}
        for name, kind in described.items()
        if "GPU" in kind["resources"]
    }
    home = tmp_path / "home"
    home.mkdir()
    with autoscaled(home, kinds, "sold_out_provider.SoldOutSpot") as one:
        said, nodes = one.run(TESTS / "scaled_driver.py", one.address, tmp_path / "out", "gpu", 0)
    assert said.returncode == 0, said.stderr
    assert set((home / "made").read_text().split()) == {"gpu-a10g-on-demand"}
    assert len(set((home / "refused").read_text().split())) == 3, "not all spot types were tried"
    assert len(list((tmp_path / "out").rglob("*.shard"))) == 80 + 1
    assert [2, 1] in nodes[0]
