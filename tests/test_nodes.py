"""Nodes that are lost or taken away in the middle of a stage, on a real Ray of several nodes: the same bytes, no blame.

A gate holds the stage's workers while a node is taken from under them; see `gated/sitecustomize.py`.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
STEP_SECONDS = 90  # in which something must happen, on a machine that is busy with other tests


def classification(golden=GOLDEN / "hbench_classification/data"):
    return [
        *("hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks"),
        *("--descriptor", "patch_descriptors:Block4", "--shard-size", "1"),
    ]


def retrieval(golden=GOLDEN / "hbench_retrieval/data"):
    return [
        *("hbench-retrieval", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks"),
        *("--descriptor", "meanstd", "--shard-size", "1"),
    ]


def wait_until(what, condition, driver=None):
    deadline = time.monotonic() + STEP_SECONDS
    while not (found := condition()):
        assert driver is None or driver.poll() is None, f"the run ended before {what}: {driver.stderr_text()}"
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)
    return found


def has_ended(pid):
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


class Driver(subprocess.Popen):
    """`raybench run …` in a process of its own."""

    def __init__(self, arguments, out, environment=None):
        self.out, self._log = out, out.with_suffix(".err")
        command = [sys.executable, "-m", "raybench", "run", *map(str, arguments), "--out", str(out)]
        with self._log.open("w") as log:
            super().__init__(
                [*command, "--progress", "json"],
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **(environment or {})},
            )

    def stderr_text(self):
        return self._log.read_text()

    def events(self):
        return [json.loads(line) for line in self.stderr_text().splitlines() if line.startswith("{")]

    def retries(self):
        return Counter(event["cause"] for event in self.events() if event["event"] == "retried")

    def stages(self):
        return {
            stage["name"]: stage for stage in reversed(json.loads((self.out / "manifest.json").read_text())["stages"])
        }


class Gate:
    """The test's side of the gate: it is closed at first."""

    def __init__(self, folder, stage):
        folder.mkdir()
        self.folder, self.stage = folder, stage
        self.close()

    def close(self):
        (self.folder / "closed").touch()

    def open(self):
        (self.folder / "closed").unlink()

    def inside(self):
        """Workers that are inside and alive, as pairs of node and process."""
        found = [path.name.split("-") for path in self.folder.iterdir() if path.name != "closed"]
        return [(node, int(pid)) for node, pid in found if not has_ended(pid)]


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """A cluster whose head has no CPUs, made when it is asked for; all its processes are ended."""
    from ray.cluster_utils import Cluster

    made = []

    def make(gate, count=2, **each):
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS / "gated"), os.environ["PYTHONPATH"]]))
        monkeypatch.setenv("GATE_FOLDER", str(gate.folder))
        monkeypatch.setenv("GATE_STAGE", gate.stage)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        made.append(cluster)
        for _ in range(count):
            cluster.add_node(**each)
        return cluster

    yield make
    for cluster in made:
        cluster.shutdown()


def lose_one(cluster, gate, driver, **each):
    """Kill a node on which a worker is inside a shard, and let a new one come; return the node's id."""
    gate.close()
    inside = wait_until(
        "a worker inside", lambda: [found for found in gate.inside() if there(cluster, found[0])], driver
    )
    victim, pid = inside[0]
    there(cluster, victim).kill_raylet(check_alive=False)
    wait_until("the worker's end", lambda: has_ended(pid), driver)
    cluster.worker_nodes.remove(there(cluster, victim))
    cluster.add_node(wait=False, **each)
    gate.open()
    return victim


def there(cluster, node_id):
    return next((node for node in cluster.worker_nodes if node.node_id == node_id), None)


def published(out):
    return {path.relative_to(out): path.read_bytes() for path in sorted((out / "stages").rglob("*.shard"))}


def same_as_undisturbed(driver, arguments, tmp_path):
    """Every shard file and table has the bytes of a run in one process."""
    undisturbed = Driver([*arguments, "--ray", "off"], tmp_path / "undisturbed")
    assert undisturbed.wait(STEP_SECONDS) == 0, undisturbed.stderr_text()
    assert published(driver.out) == published(undisturbed.out)
    tables = [path.name for path in undisturbed.out.glob("*.csv")]
    assert tables
    for name in tables:
        assert (driver.out / name).read_bytes() == (undisturbed.out / name).read_bytes()


def receipts_of(out, stage):
    (file,) = sorted((out / "receipts").glob(f"*-{stage}.jsonl"))[:1]
    return [json.loads(line) for line in file.read_text().splitlines()]


def lose_nodes(nodes, tmp_path, arguments, stage, losses, more=(), **each):
    """A run during whose one stage nodes are lost; each time with a worker inside a shard."""
    gate = Gate(tmp_path / "gate", stage)
    cluster = nodes(gate, **each)
    driver = Driver([*arguments, "--ray", cluster.address, *more], tmp_path / "out")
    lost = [lose_one(cluster, gate, driver, **each) for _ in range(losses)]
    assert len(set(lost)) == losses
    assert driver.wait(2 * STEP_SECONDS) == 0, driver.stderr_text()
    return driver


def nobody_is_blamed(driver, stage, losses):
    """Every shard is computed and counted once; what was lost is counted apart, and is no attempt of theirs."""
    record, receipts = driver.stages()[stage], receipts_of(driver.out, stage)
    assert sorted(receipt["index"] for receipt in receipts) == list(range(record["shards"]))
    assert record["attempts"] == record["computed"] == record["shards"]
    assert record["lost"] == sum(receipt["lost"] for receipt in receipts) >= losses
    assert set(driver.retries()) <= {"node_lost", "unavailable"}
    assert driver.retries()["node_lost"] >= losses


@pytest.mark.ray(own=True)
@pytest.mark.seconds
def test_a_node_lost_in_the_middle_of_a_stage_changes_nothing_and_blames_nobody(nodes, tmp_path):
    driver = lose_nodes(nodes, tmp_path, classification(), "extract", 1, ("--device", "cpu"), num_cpus=1)
    nobody_is_blamed(driver, "extract", 1)
    same_as_undisturbed(driver, classification(), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.ray(own=True)
@pytest.mark.parametrize(
    ("arguments", "stage", "more", "each"),
    [
        pytest.param(classification(), "extract", ("--device", "cpu"), {"num_cpus": 1}, id="extraction on CPUs"),
        pytest.param(
            classification(), "extract", ("--gpus", "2"), {"num_cpus": 2, "num_gpus": 1}, id="extraction on GPUs"
        ),
        pytest.param(retrieval(), "neighbours", ("--device", "cpu"), {"num_cpus": 1}, id="search"),
        pytest.param(classification(), "pairs-fold", ("--device", "cpu"), {"num_cpus": 1}, id="fold"),
    ],
)
def test_six_nodes_lost_in_one_stage_change_nothing_and_blame_nobody(nodes, tmp_path, arguments, stage, more, each):
    driver = lose_nodes(nodes, tmp_path, arguments, stage, 6, more, **each)
    nobody_is_blamed(driver, stage, 6)
    same_as_undisturbed(driver, arguments, tmp_path)
