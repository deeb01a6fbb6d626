"""A cluster that an autoscaler grows and shrinks, on this machine: Ray's own fake provider starts real nodes.

The head offers nothing. Ray's `AutoscalingCluster` is no use: its wheel lacks a file, and it ends every Ray there is.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conftest import TESTS, free_port, wait_for_port

BIN = Path(sys.executable).parent
PROVIDER = "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider"
HEAD, HEAD_ID = "ray.head.default", "f" * 51 + "00000"
IDLE_MINUTES = 0.1


@dataclass(frozen=True)
class Autoscaled:
    """A head with an autoscaler, and a watcher that writes a line whenever its worker nodes change."""

    address: str
    environment: dict
    seen: Path
    watcher: subprocess.Popen

    def nodes_seen(self):
        """The worker nodes at each change so far: a list of what each has."""
        assert self.watcher.poll() is None, "nobody watches"
        return [json.loads(line) for line in self.seen.read_text().splitlines()]

    def wait_until_empty(self, seconds=60):
        deadline = time.monotonic() + seconds
        while not (seen := self.nodes_seen()) or seen[-1]:
            assert time.monotonic() < deadline, f"nodes stay: {seen[-1:]}"
            time.sleep(0.2)
        return seen

    def run(self, *arguments, **more):
        """A driver's end: exit code, output, and how the worker nodes changed until they were gone."""
        before = len(self.wait_until_empty())
        command = [sys.executable, *map(str, arguments)]
        said = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=150, check=False, **more
        )
        return said, self.wait_until_empty()[before:]


@contextmanager
def autoscaled(folder, kinds, provider=PROVIDER):
    """Such a cluster, with these types of worker nodes; all its processes are ended."""
    import ray.util

    port, temporary = free_port(), f"/tmp/rbs{os.getpid()}"
    address = f"{ray.util.get_node_ip_address()}:{port}"
    commands = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
    config = {
        "cluster_name": "autoscaled",
        "max_workers": 8,
        "idle_timeout_minutes": IDLE_MINUTES,
        "upscaling_speed": 100.0,
        "provider": {
            "type": "external",
            "module": provider,
            "gcs_address": address,
            "head_node_id": HEAD_ID,
            "launch_multiple": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "head_node_type": HEAD,
        "available_node_types": {HEAD: {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0}, **kinds},
        **{f"{name}_commands": [] for name in commands},
        "auth": {},
        "docker": {},
        "file_mounts": {},
        "file_mounts_sync_continuously": False,
        "cluster_synced_files": [],
        "rsync_exclude": [],
        "rsync_filter": [],
    }
    # As `ray up` leaves it on a head, so that a driver there knows what may be added.
    (folder / "ray_bootstrap_config.yaml").write_text(json.dumps(config))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "AWS_"))}
    environment |= {"HOME": str(folder), "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    of_head = {
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_enable_autoscaler_v2": "1",
        "RAY_NODE_TYPE_NAME": HEAD,
        "RAY_CLOUD_INSTANCE_ID": HEAD_ID,
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID,
    }
    command = [BIN / "ray", "start", "--head", "--block", "--num-cpus", "0", "--num-gpus", "0", "--port", port]
    command += ["--autoscaling-config", folder / "ray_bootstrap_config.yaml", "--temp-dir", temporary]
    command += ["--include-dashboard", "false", "--object-store-memory", 200_000_000]
    command += ["--ray-client-server-port", free_port(), "--dashboard-agent-listen-port", free_port()]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = subprocess.Popen([*map(str, command)], env=environment | of_head, **quiet)
    watcher = None
    try:
        wait_for_port(port, 60, address.rpartition(":")[0])
        seen = folder / "nodes.jsonl"
        seen.touch()
        watch = [sys.executable, str(Path(__file__)), address, str(seen)]
        watcher = subprocess.Popen(watch, env=environment, **quiet)
        yield Autoscaled(address, environment, seen, watcher)
    finally:
        for process in (watcher, head):
            if process is not None:
                process.terminate()
                process.wait(30)
        end_all_with(temporary)
        shutil.rmtree(temporary, ignore_errors=True)


def end_all_with(word):
    """End the processes whose command line has this word: the raylets of fake nodes outlive their head."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if word.encode() in (folder / "cmdline").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue


def watch(address, file):
    """Write the resources of the worker nodes that are alive, whenever they change."""
    import ray

    ray.init(address, log_to_driver=False, logging_level="ERROR")
    last = None
    while True:
        alive = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["NodeID"] != HEAD_ID]
        now = sorted([node.get("CPU", 0), node.get("GPU", 0)] for node in alive)
        if now != last:
            with Path(file).open("a") as lines:
                lines.write(json.dumps(now) + "\n")
            last = now
        time.sleep(0.2)


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2])
