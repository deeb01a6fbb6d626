"""A driver on a cluster that an autoscaler grows: a wide stage, then a narrow one that takes long.

`python scaled_driver.py ADDRESS OUT cpu|gpu SECONDS` prints, as JSON, the CPUs and GPUs that Ray has at the end of each
stage; the narrow one takes so long. Minutes that make sense for a cloud are seconds here.
"""

import json
import sys

import ray
from number_stages import Squares

from raybench.engine import demand, ray_core, ray_flow, ray_pool
from raybench.engine.progress import JsonLines
from raybench.engine.run import Run


def there():
    total = ray.cluster_resources()
    return [int(total.get("CPU", 0)), int(total.get("GPU", 0))]


def main(address, out, device, narrow_seconds):
    demand.WORTH_A_NODE_SECONDS = ray_flow.LOOK_EVERY_SECONDS = 0.5
    ray_core.IDLE_SECONDS, ray_pool.ELSEWHERE_AFTER_SECONDS = 2.0, 5.0
    executor = ray_core.connect(address, cpus=None, gpus=None, device="auto", observer=JsonLines())
    run = Run(out, f"{out}/stages", executor, JsonLines())
    seen = {"begin": there(), "gpus": executor.gpus}
    run.map(Squares(name="wide", pause=0.5, on_device=device == "gpu"), 80, 1)
    seen["wide"] = there()
    run.map(Squares(name="narrow", how="narrow", pause=float(narrow_seconds)), 1, 1)
    seen["narrow"] = there()
    executor.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
