"""Whether a run works on GPUs, from what a cluster has and what the file on its head says that it may add."""

import json

import pytest
from conftest import GOLDEN

from raybench.engine.progress import Observer
from raybench.engine.ray_devices import CLUSTER_FILE, devices_to_use, gpu_nodes_to_add
from raybench.engine.ray_loads import Machines
from raybench.errors import ConfigError

KINDS = {
    "head": {"resources": {"CPU": 0}},
    "loader": {"resources": {"CPU": 16}, "max_workers": 8},
    "spot": {"resources": {"CPU": 8, "GPU": 1}, "max_workers": 4, "labels": {"ray.io/accelerator-type": "A10G"}},
}


class Heard(Observer):
    def __init__(self):
        self.messages = []

    def said(self, message):
        self.messages.append(message)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def machines(gpus=(), groups=()):
    return Machines(cpus=8, room_bytes=1e9, cpus_per_gpu=8.0, gpus=dict(gpus), groups=frozenset(groups))


def use(there, asked=None, device="auto", kinds=(), own_machine=False, heard=None):
    return devices_to_use(asked, device, kinds, there, own_machine, heard or Heard())


def leave_cluster_file(home, kinds):
    (home / CLUSTER_FILE).write_text(json.dumps({"head_node_type": "head", "available_node_types": kinds}))


def test_all_gpus_that_are_there_of_the_kinds_that_will_do(home):
    there = machines({"A10G": 3, "L4": 2, "": 1})
    assert use(there) == 6
    assert use(there, kinds=("L4",)) == 2
    assert use(there, kinds=("L4", "A10G")) == 5
    assert use(there, device="cpu") == 0
    assert use(there, asked=9) == 9


def test_auto_means_gpu_on_the_head_of_a_cluster_whose_file_has_gpu_nodes(home):
    leave_cluster_file(home, KINDS)
    heard = Heard()
    assert use(machines(groups=["head"]), heard=heard) == 1
    assert "will ask the cluster's autoscaler" in heard.messages[0]
    assert use(machines(groups=["head"]), device="gpu") == 1
    assert use(machines(groups=["head"]), kinds=("A10G",)) == 1
    assert use(machines(groups=["other"])) == 0, "the file is of another cluster"


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", '{"head_node_type": "head", "available_node_types": [1]}'])
def test_a_cluster_file_that_is_none_is_passed_over(home, text):
    (home / CLUSTER_FILE).write_text(text)
    assert use(machines(groups=["head"])) == 0


def test_without_gpu_nodes_in_the_file_auto_means_cpu(home):
    leave_cluster_file(home, {"head": KINDS["head"], "loader": KINDS["loader"]})
    assert use(machines(groups=["head"])) == 0
    leave_cluster_file(home, KINDS)
    with pytest.raises(ConfigError, match=r"--accelerator-type L4: this Ray has no such GPU now \(found: none\)"):
        use(machines(groups=["head"]), kinds=("L4",))


def test_what_can_not_be_known_is_said(home):
    heard = Heard()
    assert use(machines(groups=["workers"]), heard=heard) == 0
    assert "Ray does not tell what its autoscaler may add: --gpus N asks for N" in heard.messages[0]
    heard = Heard()
    assert use(machines(), heard=heard) == 0
    assert not heard.messages, "a cluster without an autoscaler adds nothing"


def test_a_gpu_that_is_nowhere_is_an_error_that_names_those_that_are(home):
    with pytest.raises(ConfigError, match=r"--accelerator-type T4.*found: A10G, a kind unknown to Ray.*--gpus N"):
        use(machines({"A10G": 1, "": 2}), kinds=("T4",))
    with pytest.raises(ConfigError, match=r"--device gpu: this Ray has no GPU.*--gpus N"):
        use(machines(groups=["workers"]), device="gpu")
    with pytest.raises(ConfigError, match=r"--gpus 2: this machine has 0 \(T4\)"):
        use(machines({"A10G": 4}), asked=2, kinds=("T4",), own_machine=True)


def test_the_cluster_file_of_this_project_offers_spot_kinds_first_and_on_demand_last(home):
    (home / CLUSTER_FILE).write_text((GOLDEN.parent.parent / "cluster.yaml").read_text())
    kind, market = "ray.io/accelerator-type", "ray.io/market-type"
    assert gpu_nodes_to_add((), machines(groups=["head"])) == [
        {kind: "A10G", market: "spot"},
        {kind: "L4", market: "spot"},
        {kind: "T4", market: "spot"},
        {kind: "A10G", market: "on-demand"},
    ]
    assert gpu_nodes_to_add(("L4",), machines(groups=["head"])) == [{kind: "L4", market: "spot"}]
    assert gpu_nodes_to_add((), machines(groups=["other"])) == []
