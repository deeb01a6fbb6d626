"""Whether a run works on GPUs and on how many to begin with: what there is, what was asked for, what may be added.

Ray has no public call for what its autoscaler may add (ray-project/ray issue 49501 wishes for one). A driver on the
head of a cluster that `ray up` made reads it in the cluster's file; elsewhere `--gpus` asks for what is not there yet.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from raybench.engine.progress import Observer
from raybench.engine.ray_loads import Machines
from raybench.engine.ray_pool import GPU_MODEL_LABEL
from raybench.errors import ConfigError

CLUSTER_FILE = "ray_bootstrap_config.yaml"  # `ray up` leaves it in the head's home folder
MARKET_LABEL = "ray.io/market-type"  # spot or on-demand


def devices_to_use(
    asked: int | None,
    device: str,
    kinds: Collection[str],
    there: Machines,
    own_machine: bool,
    observer: Observer,
) -> int:
    """The number of device actors to begin with, 0 for none; raises ConfigError. `own_machine`: nothing can join."""
    if device == "cpu":
        return 0
    count = there.gpus_of(kinds)
    if asked and own_machine and asked > count:
        kind = f" ({' or '.join(kinds)})" if kinds else ""
        raise ConfigError(f"--gpus {asked}: this machine has {count}{kind}; give at most that, or --ray ADDRESS")
    if asked is not None:
        return asked
    if count:
        return count
    if _types_to_add(kinds, there):
        observer.said("no GPU is up yet: stages that use one will ask the cluster's autoscaler")
        return 1
    if kinds:
        raise ConfigError(
            f"--accelerator-type {','.join(kinds)}: this Ray has no such GPU now (found: {kinds_there(there)}); "
            "name one of those, or ask for some by --gpus N"
        )
    if device == "gpu":
        more = ", or ask its autoscaler for some by --gpus N" if there.groups else ""
        raise ConfigError(
            f"--device gpu: this Ray has no GPU; give --device cpu, or --ray ADDRESS of one that has{more}"
        )
    if there.groups:
        observer.said(
            "no GPU is up, and Ray does not tell what its autoscaler may add: --gpus N asks for N; using CPUs"
        )
    return 0


def kinds_there(there: Machines) -> str:
    """The kinds of GPU that there are, in words."""
    return ", ".join(sorted(kind or "a kind unknown to Ray" for kind in there.gpus)) or "none"


def gpu_nodes_to_add(kinds: Collection[str], there: Machines) -> list[dict[str, str]]:
    """Labels of the nodes with such a GPU that the autoscaler can add, those of the highest priority first."""
    types = sorted(_types_to_add(kinds, there), key=lambda node: -node.get("priority", 0))
    found: list[dict[str, str]] = []
    for node in types:
        labels = {key: value for key, value in node.get("labels", {}).items() if key in (GPU_MODEL_LABEL, MARKET_LABEL)}
        if labels and labels not in found:
            found.append(labels)
    return found


def _types_to_add(kinds: Collection[str], there: Machines) -> list[dict[str, Any]]:
    """The types of node with such a GPU in the cluster's file, if this is its head."""
    try:
        config = yaml.safe_load((Path.home() / CLUSTER_FILE).read_text())
        if config["head_node_type"] not in there.groups:
            return []  # the file of another cluster
        types: list[dict[str, Any]] = [
            node
            for node in config["available_node_types"].values()
            if node.get("max_workers", 1) and node["resources"].get("GPU", 0)
        ]
        return [node for node in types if not kinds or node.get("labels", {}).get(GPU_MODEL_LABEL) in kinds]
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError):
        return []
