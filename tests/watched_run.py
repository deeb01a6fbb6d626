"""A run to be watched: `python watched_run.py FOLDER GOLDEN` starts a Ray whose files are below FOLDER, runs a
benchmark there twice, with a shard that fails once and then with all of them found, says so, and stays up until its
input ends.
"""

import os
import sys

import ray
from conftest import free_port

import raybench


def main(folder, golden):
    os.environ["FAILED_ONCE"] = folder
    ray.init(
        "local",
        num_cpus=2,
        num_gpus=1,  # a logical one, so that it is among the resources
        include_dashboard=True,  # which lists the nodes' pages for Prometheus
        dashboard_port=free_port(),
        log_to_driver=False,
        _temp_dir=f"{folder}/ray",
    )
    for name in ("first", "second"):
        raybench.run(
            "hbench-classification",
            out=f"{folder}/{name}",
            store=f"{folder}/store",
            benchmarks=f"{golden}/benchmarks",
            data=f"{golden}/hpatches",
            descriptor="patch_descriptors:FailingOnce",
            device="cpu",
            progress="none",
        )
    print("done", flush=True)
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
