"""Board and alert rules name only metrics that exist: ours as Ray exports them, and a few of Ray's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from raybench.engine.telemetry import METRICS

DASHBOARDS = Path(__file__).parent.parent / "dashboards"

# As Ray 2.60 exports ray.util.metrics on a node's page (seen there, not taken from its documentation).
COUNTERS = ("raybench_shards", "raybench_rows", "raybench_bytes", "raybench_retries")
HISTOGRAMS = ("raybench_shard_seconds",)
GAUGES = ("raybench_in_flight", "raybench_actors", "raybench_shards_left")

# GPU names are from Ray's source: a machine without a GPU does not export them.
RAY_OWN = {
    "ray_node_cpu_count",
    "ray_node_cpu_utilization",
    "ray_node_gpus_utilization",
    "ray_node_gram_used",
    "ray_node_mem_total",
    "ray_node_mem_used",
    "ray_object_store_memory",
    "ray_object_store_used_memory",
    "ray_resources",
}
# Labels that Ray adds to each of our series, and the bucket bound of a histogram.
RAY_LABELS = {"SessionName", "WorkerId", "le"}
METRIC = re.compile(r"\bray_\w+")


def exported() -> dict[str, set[str]]:
    """Every name of ours on a node's page, with its labels."""
    names = {f"ray_{name}_total": name for name in COUNTERS}
    names |= {f"ray_{name}": name for name in GAUGES}
    names |= {f"ray_{name}_{part}": name for name in HISTOGRAMS for part in ("bucket", "count", "sum")}
    return {seen: set(METRICS[name]) | RAY_LABELS for seen, name in names.items()}


def board() -> Any:
    return json.loads((DASHBOARDS / "raybench.json").read_text())


def rules() -> list[Any]:
    groups = yaml.safe_load((DASHBOARDS / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    panels = [target["expr"] for panel in board()["panels"] for target in panel.get("targets", [])]
    variables = [entry["definition"] for entry in board()["templating"]["list"] if entry["type"] == "query"]
    return panels + variables + [rule["expr"] for rule in rules()]


def labels_used(expression: str) -> set[str]:
    """Labels in matchers and `by` lists, for an expression on our metrics alone."""
    matched = set(re.findall(r"(\w+)\s*=~?\s*\"", expression))
    grouped = {label.strip() for inside in re.findall(r"\bby \(([^)]*)\)", expression) for label in inside.split(",")}
    return matched | grouped


def test_the_board_knows_every_metric_we_count() -> None:
    assert set(METRICS) == {*COUNTERS, *HISTOGRAMS, *GAUGES}


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_only_metrics_that_exist(expression: str) -> None:
    names = set(METRIC.findall(expression))
    assert names
    assert names <= set(exported()) | RAY_OWN


@pytest.mark.parametrize("expression", [text for text in expressions() if "ray_raybench_" in text])
def test_an_expression_uses_only_labels_its_metrics_have(expression: str) -> None:
    labels = [exported()[name] for name in METRIC.findall(expression)]
    assert labels_used(expression) <= set.union(*labels)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_is_on_the_board(name: str) -> None:
    shown = {name for text in expressions() for name in METRIC.findall(text)}
    assert shown & {seen for seen in exported() if seen.startswith(f"ray_{name}")}


def test_every_panel_reads_the_chosen_data_source() -> None:
    panels = [panel for panel in board()["panels"] if panel["type"] != "row"]
    sources = [panel["datasource"] for panel in panels]
    sources += [target["datasource"] for panel in panels for target in panel["targets"]]
    assert {source["uid"] for source in sources} == {"${datasource}"}
    assert "datasource" in {entry["name"] for entry in board()["templating"]["list"]}


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_every_panel_says_what_it_answers() -> None:
    assert all(panel["description"].endswith("?") for panel in board()["panels"] if panel["type"] != "row")


def test_stalls_and_retry_storms_raise_an_alert() -> None:
    assert {rule["alert"] for rule in rules()} == {"RaybenchStalledStage", "RaybenchRetryStorm"}


def test_the_provisioning_files_point_at_prometheus_and_the_board() -> None:
    provisioning = DASHBOARDS / "provisioning"
    source = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())
    provider = yaml.safe_load((provisioning / "dashboards" / "raybench.yaml").read_text())
    assert source["datasources"][0]["type"] == "prometheus"
    assert provider["providers"][0]["options"]["path"] == "$RAYBENCH_DASHBOARDS"
