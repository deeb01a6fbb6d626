"""A driver on a cluster that an autoscaler grows: a wide stage, then a narrow one that takes long.

`python scaled_driver.py ADDRESS OUT cpu|gpu` prints, as JSON, the CPUs and GPUs that Ray has at the end of each stage.
Minutes that make sense for a cloud are seconds here.
"""

import json
import sys

import ray
from number_stages import Squares

from raybench.engine import demand, ray_core, ray_flow
from raybench.engine.progress import JsonLines
from raybench.engine.run import Run

NARROW_SECONDS = 25.0  # the idle time of actors, that of nodes, and some


def there():
    total = ray.cluster_resources()
    return [int(total.get("CPU", 0)), int(total.get("GPU", 0))]


def main(address, out, device):
    demand.WORTH_A_NODE_SECONDS = ray_flow.LOOK_EVERY_SECONDS = 0.5
    ray_core.IDLE_SECONDS = 2.0
    executor = ray_core.connect(address, cpus=None, gpus=None, device="auto", observer=JsonLines())
    run = Run(out, f"{out}/stages", executor, JsonLines())
    seen = {"begin": there(), "gpus": executor.gpus}
    run.map(Squares(name="wide", pause=0.5, on_device=device == "gpu"), 80, 1)
    seen["wide"] = there()
    run.map(Squares(name="narrow", how="narrow", pause=NARROW_SECONDS), 1, 1)
    seen["narrow"] = there()
    executor.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
