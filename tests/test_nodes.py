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
        command = [sys.executable, "-m", "small_shards", "1", "run", *map(str, arguments), "--out", str(out)]
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


def worker_inside(cluster, gate, driver):
    """Close the gate; the node and process of a worker that is inside a shard, and stays there."""
    gate.close()
    return wait_until("a worker inside", lambda: [one for one in gate.inside() if there(cluster, one[0])], driver)[0]


def lose(cluster, gate, driver, worker, **each):
    """Kill a worker's node, let a new one come, and open the gate; return the node's id."""
    node_id, pid = worker
    node = there(cluster, node_id)
    node.kill_raylet(check_alive=False)
    wait_until("the worker's end", lambda: has_ended(pid), driver)
    cluster.worker_nodes.remove(node)
    cluster.add_node(wait=False, **each)
    gate.open()
    return node_id


def there(cluster, node_id):
    return next((node for node in cluster.worker_nodes if node.node_id == node_id), None)


def published(out):
    return {path.relative_to(out): path.read_bytes() for path in sorted((out / "stages").rglob("*.shard"))}


def same_as_undisturbed(driver, arguments, tmp_path):
    """Every shard file and table has the bytes of a run in one process; without shards where they tell the device."""
    undisturbed = Driver([*arguments, "--ray", "off"], tmp_path / "undisturbed")
    assert undisturbed.wait(STEP_SECONDS) == 0, undisturbed.stderr_text()
    if "--gpus" not in driver.args:
        assert published(driver.out) == published(undisturbed.out)
    tables = {path.name: path.read_bytes() for path in undisturbed.out.glob("*.csv")}
    assert tables
    assert {path.name: path.read_bytes() for path in driver.out.glob("*.csv")} == tables


def receipts_of(out, stage):
    (file,) = sorted((out / "receipts").glob(f"*-{stage}.jsonl"))[:1]
    return [json.loads(line) for line in file.read_text().splitlines()]


def lose_nodes(nodes, tmp_path, arguments, stage, losses, more=(), **each):
    """A run during whose one stage nodes are lost; each time with a worker inside a shard."""
    gate = Gate(tmp_path / "gate", stage)
    cluster = nodes(gate, **each)
    driver = Driver([*arguments, "--ray", cluster.address, *more], tmp_path / "out")
    lost = [lose(cluster, gate, driver, worker_inside(cluster, gate, driver), **each) for _ in range(losses)]
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
@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.ray(own=True)
def test_what_was_loaded_ahead_on_a_lost_node_is_loaded_again(nodes, tmp_path):
    """The device's node has no CPU: all loading is elsewhere. Four strips are too large to travel in a message."""
    gate, notes = Gate(tmp_path / "gate", "extract"), tmp_path / "notes"
    notes.mkdir()
    cluster = nodes(gate, count=1, num_cpus=0, num_gpus=1)
    loader = cluster.add_node(num_cpus=2)
    given = [*classification(), "--shard-size", "4", "--descriptor", "patch_descriptors:NotingBlock4"]
    given += ["--descriptor-args", json.dumps({"folder": str(notes)})]
    driver = Driver([*given, "--gpus", "1", "--ray", cluster.address], tmp_path / "out")
    worker_inside(cluster, gate, driver)
    wait_until("loads ahead", lambda: len([*notes.iterdir()]) >= 16, driver)
    loader.kill_raylet(check_alive=False)
    cluster.worker_nodes.remove(loader)
    cluster.add_node(wait=False, num_cpus=2)
    gate.open()
    assert driver.wait(2 * STEP_SECONDS) == 0, driver.stderr_text()
    nobody_is_blamed(driver, "extract", 1)
    loaded = Counter(path.name.split("-")[0] for path in notes.iterdir())
    assert len(loaded) == 2, "a second node loaded"
    assert loaded.total() > 48, "something was loaded twice"
    same_as_undisturbed(driver, classification(), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.ray(own=True)
def test_actors_leave_a_node_that_is_to_be_taken_away_and_no_shard_is_lost(nodes, tmp_path):
    gate = Gate(tmp_path / "gate", "extract")
    cluster = nodes(gate, num_cpus=1)
    driver = Driver([*classification(), "--ray", cluster.address, "--device", "cpu"], tmp_path / "out")
    node_id, pid = wait_until("two workers inside", lambda: gate.inside() if len(gate.inside()) == 2 else [], driver)[0]
    drain(cluster, node_id)
    wait_until("the notice", lambda: f"node {node_id[:8]} is to be taken away" in driver.stderr_text(), driver)
    gate.open()
    wait_until("the actor's leave", lambda: has_ended(pid), driver)
    assert len([*driver.out.rglob("*.shard")]) < 48, "the actor stayed until all was done"
    raylet = there(cluster, node_id).all_processes["raylet"][0].process
    wait_until("the end of the node that nobody uses", lambda: raylet.poll() is not None)
    assert driver.wait(2 * STEP_SECONDS) == 0, driver.stderr_text()
    extract = driver.stages()["extract"]
    assert (extract["attempts"], extract["computed"], extract["lost"]) == (48, 48, 0)
    assert not driver.retries()
    same_as_undisturbed(driver, classification(), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.ray(own=True)
def test_a_node_taken_away_at_its_notices_end_with_work_on_it_blames_nobody(nodes, tmp_path):
    gate = Gate(tmp_path / "gate", "extract")
    cluster = nodes(gate, num_cpus=1)
    driver = Driver([*classification(), "--ray", cluster.address, "--device", "cpu"], tmp_path / "out")
    for _ in range(4):
        worker = worker_inside(cluster, gate, driver)
        drain(cluster, worker[0])
        lose(cluster, gate, driver, worker, num_cpus=1)
    assert driver.wait(2 * STEP_SECONDS) == 0, driver.stderr_text()
    nobody_is_blamed(driver, "extract", 4)


def drain(cluster, node_id):
    """What a cloud's notice of preemption becomes in Ray."""
    command = [Path(sys.executable).parent / "ray", "drain-node", "--address", cluster.address, "--node-id", node_id]
    reason = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "notice", "--deadline-remaining-seconds"]
    said = subprocess.run([*map(str, command), *reason, "120"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.ray(own=True)
@pytest.mark.parametrize("what", ["the head's server", "the head's node"])
def test_a_lost_head_ends_the_run_with_one_clear_line_and_a_new_cluster_resumes_it(nodes, tmp_path, what):
    gate = Gate(tmp_path / "gate", "extract")
    cluster = nodes(gate, num_cpus=1)
    given = [*classification(), "--device", "cpu", "--ray"]
    driver = Driver([*given, cluster.address], tmp_path / "out", {"RAY_gcs_rpc_server_reconnect_timeout_s": "10"})
    inside = wait_until("two workers inside", lambda: gate.inside() if len(gate.inside()) == 2 else [], driver)
    gate.open()
    wait_until("some shards", lambda: len([*driver.out.rglob("*.shard")]) >= 6, driver)
    gate.close()
    address, lost = cluster.address, time.monotonic()
    cluster.head_node.kill_gcs_server(check_alive=False)
    if what == "the head's node":
        cluster.head_node.kill_raylet(check_alive=False)
    assert driver.wait(STEP_SECONDS) == 3, driver.stderr_text()
    assert time.monotonic() - lost < 60
    lines = [line for line in driver.stderr_text().splitlines() if not line.startswith("{")]
    assert len(lines) == 2, lines
    assert lines[0].startswith(f"error: Ray's head at {address} has not answered for 1")
    assert "the same command goes on from there" in lines[1]
    for node in list(cluster.worker_nodes):
        node.kill_raylet(check_alive=False)
    for _, pid in inside:
        wait_until("the end of workers", lambda pid=pid: has_ended(pid))
    gate.open()
    before = len(published(driver.out))
    assert 6 <= before < 48
    again = Driver([*given, nodes(gate, num_cpus=1).address], tmp_path / "out")
    assert again.wait(2 * STEP_SECONDS) == 0, again.stderr_text()
    extract = again.stages()["extract"]
    assert (extract["found"], extract["computed"]) == (before, 48 - before)
    same_as_undisturbed(again, classification(), tmp_path)


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_a_run_without_nodes_says_what_it_waits_for_and_ends_with_its_patience(nodes, tmp_path):
    gate = Gate(tmp_path / "gate", "nothing")
    cluster = nodes(gate, count=0)
    given = [*classification(), "--device", "cpu", "--cpus", "2", "--patience", "40s", "--ray", cluster.address]
    driver = Driver(given, tmp_path / "out")
    assert driver.wait(2 * STEP_SECONDS) == 3, driver.stderr_text()
    said = [event["message"] for event in driver.events() if event["event"] == "message"]
    assert sum("waiting for cpu actors: 0 of 2 are up" in message for message in said) >= 2
    assert "extract: nothing was published for 40 s (--patience); it waited for cpu actors" in driver.stderr_text()
    assert "the same command goes on from there" in driver.stderr_text()
    cluster.add_node(num_cpus=2)
    again = Driver(given, tmp_path / "out")
    assert again.wait(2 * STEP_SECONDS) == 0, again.stderr_text()
    same_as_undisturbed(again, classification(), tmp_path)
