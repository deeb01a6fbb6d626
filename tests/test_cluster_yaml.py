"""The two cluster files, as far as they can be judged without a cloud: Ray's own validator, and what we rely on."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parent.parent
OBJECT_STORES = ("s3://", "gs://", "az://", "abfs://")


@pytest.fixture
def cluster() -> Any:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


@pytest.fixture
def rayjob() -> Any:
    return yaml.safe_load((ROOT / "jobs" / "rayjob.yaml").read_text())


def entrypoint(rayjob: Any) -> list[str]:
    return shlex.split(rayjob["spec"]["entrypoint"])


def containers(group: Any) -> list[Any]:
    found: list[Any] = group["template"]["spec"]["containers"]
    return found


def test_ray_accepts_the_cluster_file(cluster: Any) -> None:
    validate_config(prepare_config(cluster))


def test_the_head_offers_neither_cpus_nor_gpus(cluster: Any) -> None:
    resources = cluster["available_node_types"][cluster["head_node_type"]]["resources"]
    assert resources["CPU"] == 0
    assert resources.get("GPU", 0) == 0


def gpu_types(cluster: Any) -> dict[str, Any]:
    types = cluster["available_node_types"]
    return {name: kind for name, kind in types.items() if kind["resources"].get("GPU")}


def market(kind: Any) -> str:
    found: str = kind["node_config"].get("InstanceMarketOptions", {}).get("MarketType", "on-demand")
    return found


def test_several_kinds_of_spot_gpus_come_before_an_on_demand_one(cluster: Any) -> None:
    types = gpu_types(cluster).values()
    spot = [kind for kind in types if market(kind) == "spot"]
    other = [kind for kind in types if market(kind) != "spot"]
    assert len({kind["node_config"]["InstanceType"] for kind in spot}) == len(spot) >= 3
    assert other
    assert min(kind["priority"] for kind in spot) > max(kind["priority"] for kind in other)


def test_gpu_types_have_one_shape_so_that_priority_alone_decides(cluster: Any) -> None:
    """The autoscaler compares how well a node is filled before it looks at priorities."""
    shapes = {tuple(sorted(kind["resources"].items())) for kind in gpu_types(cluster).values()}
    assert shapes == {(("CPU", 8), ("GPU", 1))}


def test_labels_of_gpu_types_say_what_they_are(cluster: Any) -> None:
    kinds = {"g5.2xlarge": "A10G", "g6.2xlarge": "L4", "g4dn.2xlarge": "T4"}
    for kind in gpu_types(cluster).values():
        labels = kind["labels"]
        assert labels["ray.io/accelerator-type"] == kinds[kind["node_config"]["InstanceType"]]
        assert labels["ray.io/market-type"] == market(kind)


def test_no_worker_is_kept_when_there_is_no_work(cluster: Any) -> None:
    workers = {name: kind for name, kind in cluster["available_node_types"].items() if name != "head"}
    assert set(workers) == {"loader", *gpu_types(cluster)}
    assert {kind["min_workers"] for kind in workers.values()} == {0}


def test_gpu_nodes_end_with_faiss_gpu_alone(cluster: Any) -> None:
    for kind in gpu_types(cluster).values():
        commands = kind["worker_setup_commands"]
        extra, removal, last = (
            next(n for n, command in enumerate(commands) if wanted in command)
            for wanted in ("pip install -c constraints.txt '.[gpu]'", "uninstall -y faiss-cpu", "faiss-gpu")
        )
        assert extra < removal < last == len(commands) - 1


def test_what_gpu_nodes_install_is_pinned_in_one_place_and_fits_the_package() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {pin.name: pin.specifier for line in lines if not line.startswith("#") for pin in [Requirement(line)]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *project["optional-dependencies"]["gpu"]):
        wanted = Requirement(line)
        if wanted.name in ("torch", "faiss-gpu"):
            (pin,) = pins.pop(wanted.name)
            assert pin.operator == "==" and wanted.specifier.contains(pin.version)
    assert not pins.keys() & {"torch", "faiss-gpu"}


def test_environment_runs_and_data_stay_at_home(cluster: Any) -> None:
    assert {".venv", "runs", "data"} <= set(cluster["rsync_exclude"])


def test_every_node_is_started_with_the_token_on(cluster: Any) -> None:
    for role in ("head", "worker"):
        starts = [line for line in cluster[f"{role}_start_ray_commands"] if "ray start" in line]
        assert all("RAY_AUTH_MODE=token" in line for line in starts)
        assert starts


def test_the_rayjob_is_a_rayjob(rayjob: Any) -> None:
    assert (rayjob["apiVersion"], rayjob["kind"]) == ("ray.io/v1", "RayJob")


def test_the_rayjob_runs_a_script_that_exists(rayjob: Any) -> None:
    interpreter, script, *_ = entrypoint(rayjob)
    assert interpreter == "python"
    assert Path(script).parent == Path("jobs")
    assert (ROOT / script).is_file()


def test_the_script_knows_every_option_of_the_rayjob(rayjob: Any) -> None:
    _, script, benchmark, *rest = entrypoint(rayjob)
    command = [sys.executable, script, benchmark, "--help"]
    page = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {word for word in rest if word.startswith("--")} <= set(re.findall(r"--[\w-]+", page))


@pytest.mark.parametrize("option", ["--out", "--store"])
def test_what_the_rayjob_leaves_survives_its_cluster(rayjob: Any, option: str) -> None:
    words = entrypoint(rayjob)
    assert words[words.index(option) + 1].startswith(OBJECT_STORES)


def groups(rayjob: Any) -> dict[str, Any]:
    return {group["groupName"]: group for group in rayjob["spec"]["rayClusterSpec"]["workerGroupSpecs"]}


def test_only_the_gpu_groups_of_the_rayjob_have_gpus(rayjob: Any) -> None:
    every = groups(rayjob) | {"head": rayjob["spec"]["rayClusterSpec"]["headGroupSpec"]}
    with_gpus = {
        name for name, group in every.items() if "nvidia.com/gpu" in containers(group)[0]["resources"]["limits"]
    }
    assert set(every) == {"head", "loader", "gpu", "gpu-a10g"}
    assert with_gpus == {"gpu", "gpu-a10g"}


def test_the_autoscaler_reads_kinds_and_gpus_from_the_groups_of_the_rayjob(rayjob: Any) -> None:
    spec = rayjob["spec"]["rayClusterSpec"]
    cluster = {"metadata": {"name": "raybench", "namespace": "default"}, "spec": spec}
    types = _derive_autoscaling_config_from_ray_cr(cluster)["available_node_types"]
    assert {name for name, kind in types.items() if kind["resources"].get("GPU")} == {"gpu", "gpu-a10g"}
    assert types["gpu-a10g"]["labels"] == {"ray.io/accelerator-type": "A10G"}
    assert spec["autoscalerOptions"]["version"] == "v2", "the first autoscaler does not look at labels"


def test_gpu_pods_of_the_rayjob_prefer_spot_and_take_on_demand(rayjob: Any) -> None:
    for name in ("gpu", "gpu-a10g"):
        affinity = groups(rayjob)[name]["template"]["spec"]["affinity"]["nodeAffinity"]
        (preferred,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
        (expression,) = preferred["preference"]["matchExpressions"]
        assert (expression["key"], expression["values"]) == ("karpenter.sh/capacity-type", ["spot"])
        (required,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert all("capacity-type" not in one["key"] for one in required["matchExpressions"])


def test_the_rayjob_grows_from_nothing(rayjob: Any) -> None:
    spec = rayjob["spec"]["rayClusterSpec"]
    assert spec["enableInTreeAutoscaling"] is True
    assert all(group["minReplicas"] == 0 < group["maxReplicas"] for group in spec["workerGroupSpecs"])


def test_both_files_name_the_same_ray(cluster: Any, rayjob: Any) -> None:
    images = [cluster["docker"]["image"], *(kind["docker"]["worker_image"] for kind in gpu_types(cluster).values())]
    versions = {re.search(r":(\d+\.\d+\.\d+)-", image)[1] for image in images}  # type: ignore[index]
    assert versions == {rayjob["spec"]["rayClusterSpec"]["rayVersion"]}
