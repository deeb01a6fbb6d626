"""The counters of a run appear on the node's Prometheus page, under the names that the board reads."""

import time
import urllib.request

from number_stages import Squares

from raybench.engine.run import Run
from raybench.engine.telemetry import Counters


def test_counters_of_a_run_appear_on_the_nodes_metrics_page(local_ray, tmp_path):
    from raybench.engine.ray_core import RayExecutor

    counters = Counters()
    executor = RayExecutor(counters, 1, 0, insist_on_gpus=False, owned=False)
    run = Run(str(tmp_path), str(tmp_path / "stages"), executor, counters)
    run.map(Squares(str(tmp_path), at=3, how="fail", times=1, name="counted"), 12, 3)
    run.map(Squares(str(tmp_path), at=3, how="fail", times=1, name="counted"), 12, 3)
    executor.close()
    targets = [f"{node['NodeManagerAddress']}:{node['MetricsExportPort']}" for node in local_ray.nodes()]
    wanted = [
        "ray_raybench_shards_total{",
        'outcome="computed"',
        'outcome="found"',
        'cause="error"',
        "ray_raybench_rows_total{",
        "ray_raybench_bytes_total{",
        "ray_raybench_shard_seconds_bucket{",
        'phase="publish"',
    ]
    deadline = time.monotonic() + 60
    while True:
        pages = "".join(_page(target) for target in targets)
        lines = "\n".join(line for line in pages.splitlines() if 'stage="counted"' in line)
        if all(word in lines for word in wanted):
            return
        assert time.monotonic() < deadline, lines
        time.sleep(1)


def _page(target):
    try:
        with urllib.request.urlopen(f"http://{target}/metrics", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""
