"""Executors on the session's Ray."""

import pytest
from engine_runs import Heard


@pytest.fixture
def executor(local_ray, monkeypatch):
    from raybench.engine import ray_nodes
    from raybench.engine.ray_core import RayExecutor

    monkeypatch.setattr(ray_nodes, "VERDICT_SECONDS", 1.0)  # the one node that there is stays
    made = []

    def make(cpus=2, gpus=0, heard=None):
        made.append(RayExecutor(heard or Heard(), cpus, gpus, insist_on_gpus=gpus > 0, owned=False))
        return made[-1]

    yield make
    for one in made:
        one.close()
