"""For Ray's workers in tests of lost nodes: a gate before the computing of one stage's shards.

Python runs this at the start of every process that has this folder in PYTHONPATH. In the folder GATE_FOLDER a worker
leaves a file that says where it is, and waits while there is a file `closed`; then it takes its time.
"""

import os
import sys
import time
from pathlib import Path

FOLDER, STAGE = os.environ.get("GATE_FOLDER", ""), os.environ.get("GATE_STAGE", "")
PAUSE_SECONDS = 0.2

if FOLDER and any(argument.endswith("default_worker.py") for argument in sys.orig_argv):
    from raybench.engine import stations

    compute_shard = stations.compute_shard

    def gated(stage, loaded):
        if stage.name == STAGE:
            import ray

            inside = Path(FOLDER) / f"{ray.get_runtime_context().get_node_id()}-{os.getpid()}"
            inside.touch()
            while (Path(FOLDER) / "closed").exists():
                time.sleep(0.01)
            time.sleep(PAUSE_SECONDS)
            inside.unlink()
        return compute_shard(stage, loaded)

    stations.compute_shard = gated
