"""Board and alert rules before a real Prometheus that scrapes a real run: every series that they ask for is there,
every expression is understood, and the alerts rise when they should."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import GOLDEN, TESTS, free_port, wait_for_port
from test_dashboards import DASHBOARDS, board, expressions, rules

GOLDEN_CASE = GOLDEN / "hbench_classification/data"
SELECTOR = re.compile(r"\bray_\w+(?:\{[^}]*\})?")
OF_GPUS = {"ray_node_gpus_utilization", "ray_node_gram_used"}  # a machine without a GPU does not export them
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: ray
    file_sd_configs:
      - files: [{targets}]
        refresh_interval: 1s
"""
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool (Debian's package prometheus)")


def selectors(expression):
    """The series that an expression asks for, with everything chosen in the board's menus."""
    return SELECTOR.findall(re.sub(r"\$(session|driver|stage)\b", ".*", expression))


def panels():
    """Expression and legend of everything that a panel shows."""
    targets = [target for panel in board()["panels"] for target in panel.get("targets", [])]
    return [(target["expr"], target["legendFormat"]) for target in targets]


class Prometheus:
    """A Prometheus on loopback, with its data below a folder."""

    def __init__(self, folder, targets):
        config = folder / "prometheus.yml"
        config.write_text(CONFIG.format(rules=DASHBOARDS / "alerts.yaml", targets=targets))
        self.port = free_port()
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
        listening = f"--web.listen-address=127.0.0.1:{self.port}"
        self.process = subprocess.Popen([*command, listening, "--log.level=error"])
        wait_for_port(self.port)
        deadline = time.monotonic() + 60
        while not self._is_ready():  # the port is open before it answers
            assert time.monotonic() < deadline, "prometheus does not come up"
            time.sleep(0.2)

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=10) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False

    def ask(self, what, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{what}?{query}", timeout=10) as answer:
            found = json.load(answer)
        assert found["status"] == "success"
        return found["data"]

    def series(self, selector):
        return self.ask("series", **{"match[]": selector})

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture(scope="module")
def watched():
    """A Prometheus that has seen a run with a retry and with shards that were found; its start in seconds."""
    if not shutil.which("prometheus"):
        pytest.skip("no prometheus (Debian's package of that name)")
    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as place:  # short: Ray's sockets are below it
        folder = Path(place)
        began = time.time()
        run = subprocess.Popen(
            [sys.executable, TESTS / "watched_run.py", folder, GOLDEN_CASE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert run.stdout.readline() == "done\n"
        prometheus = Prometheus(folder, folder / "ray/session_latest/prom_metrics_service_discovery.json")
        try:
            deadline = time.monotonic() + 60
            while not prometheus.series('ray_raybench_shards_total{outcome="found"}'):  # which is counted last
                assert time.monotonic() < deadline, "nothing of the run was scraped"
                time.sleep(1)
            time.sleep(2)  # a rate needs two samples
            yield prometheus, began
        finally:
            prometheus.stop()
            run.communicate("", timeout=60)


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_every_series_that_a_panel_menu_or_rule_asks_for_is_there(watched):
    prometheus, _ = watched
    wanted = {selector for expression in expressions() for selector in selectors(expression)}
    missing = {selector for selector in wanted if not prometheus.series(selector)}
    assert {selector.partition("{")[0] for selector in missing} <= OF_GPUS, missing


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_every_panel_has_something_to_show_under_the_names_in_its_legend(watched):
    prometheus, began = watched
    empty = []
    for expression, legend in panels():
        asked = re.sub(r"\$(session|driver|stage)\b", ".*", expression)
        found = prometheus.ask("query_range", query=asked, start=began, end=time.time(), step=1)["result"]
        for one in found:
            assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= set(one["metric"]), expression
        if not found and not OF_GPUS & set(re.findall(r"\bray_\w+", expression)):
            empty.append(expression)
    # A run of a second has no slope from which to tell what is left.
    assert [expression for expression in empty if "deriv(" not in expression] == []


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_every_rule_is_understood_and_none_rises_in_a_good_run(watched):
    prometheus, _ = watched
    for rule in rules():
        assert prometheus.ask("query", query=rule["expr"])["result"] == []
    (group,) = prometheus.ask("rules")["groups"]
    assert {rule["name"]: rule["state"] for rule in group["rules"]} == {
        "RaybenchStalledStage": "inactive",
        "RaybenchRetryStorm": "inactive",
    }


def test_names_that_only_gpus_export_are_those_of_ray():
    reporter = Path(find_spec("ray").origin).parent / "dashboard/modules/reporter/reporter_agent.py"
    exported = reporter.read_text()
    assert all(f'"{name.removeprefix("ray_")}"' in exported for name in OF_GPUS)
    assert all(f'"{label}"' in exported for label in ("GpuIndex", "ip"))


@needs_promtool
def test_promtool_finds_the_rules_good():
    said = subprocess.run(["promtool", "check", "rules", DASHBOARDS / "alerts.yaml"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "2 rules found" in said.stdout


LABELS = 'SessionName="s",WorkerId="w",stage="extract"'
QUIET_FOR_LONG = {"ray_raybench_in_flight": "2x40", 'ray_raybench_shards_total,outcome="computed"': "7x40"}


@needs_promtool
@pytest.mark.parametrize(
    ("series", "at", "raised"),
    [
        (QUIET_FOR_LONG, "12m", ["RaybenchStalledStage"]),
        (QUIET_FOR_LONG, "8m", []),  # too early to tell
        ({**QUIET_FOR_LONG, "ray_raybench_in_flight": "0x20 2x20"}, "25m", []),  # a stage that goes on after a pause
        ({**QUIET_FOR_LONG, 'ray_raybench_shards_total,outcome="computed"': "7+1x40"}, "12m", []),
        ({**QUIET_FOR_LONG, "ray_raybench_in_flight": "0x40"}, "12m", []),
        ({"ray_raybench_in_flight": "2x5 _x35"}, "30m", []),  # the driver is gone
        ({'ray_raybench_retries_total,cause="error"': "0+2x40"}, "15m", ["RaybenchRetryStorm"]),
        (
            {
                'ray_raybench_retries_total,cause="error"': "0+2x40",
                'ray_raybench_shards_total,outcome="computed"': "0+50x40",
            },
            "15m",
            [],  # among very many shards
        ),
    ],
)
def test_alerts_rise_when_a_run_needs_a_look_and_only_then(tmp_path, series, at, raised):
    given = [{"series": _named(name), "values": f"{values}"} for name, values in series.items()]
    labels = {"severity": "warning", "SessionName": "s", "WorkerId": "w", "stage": "extract"}
    checks = [
        {
            "eval_time": at,
            "alertname": rule["alert"],
            "exp_alerts": [{"exp_labels": labels}] * (rule["alert"] in raised),
        }
        for rule in rules()
    ]
    case = {
        "rule_files": ["alerts.yaml"],
        "evaluation_interval": "30s",
        "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": checks}],
    }
    # What is said beside an alert is no part of whether it rises.
    silent = [{key: value for key, value in rule.items() if key != "annotations"} for rule in rules()]
    (tmp_path / "alerts.yaml").write_text(json.dumps({"groups": [{"name": "raybench", "rules": silent}]}))
    (tmp_path / "case.json").write_text(json.dumps(case))
    said = subprocess.run(["promtool", "test", "rules", "case.json"], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def _named(name):
    """A series of one stage; the part behind a comma is a further label."""
    metric, _, further = name.partition(",")
    return f"{metric}{{{LABELS}{',' if further else ''}{further}}}"
