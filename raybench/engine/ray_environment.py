"""What Ray looks for when it is imported, and only then: environment variables, packages. Imports no Ray itself."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path

# 0 is Ray's own default on macOS and Windows: all of its processes then listen on loopback. `_node_ip_address` of
# `ray.init` can't do that: in the place of 127.0.0.1 Ray puts the machine's address in its network.
LOOPBACK_ONLY = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
# Ray's own handler answers SIGTERM with a stack dump of the driver, and takes the place of the command line's.
NO_STACK_DUMP = ("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")


@contextmanager
def for_the_driver(local: bool) -> Iterator[None]:
    """The environment in which a driver imports Ray; a `local` one is reached from this machine only.

    What is set for the driver alone is taken back, since workers inherit the environment.
    """
    if local:
        os.environ.setdefault(*LOOPBACK_ONLY)
    _import_packages_that_ray_brings()
    name, value = NO_STACK_DUMP
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def is_joined() -> bool:
    """Whether this process has joined or started a Ray already."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _import_packages_that_ray_brings() -> None:
    """Import psutil and what else Ray has in a folder of its own, which it puts into `sys.path` for them.

    OpenCV, if the main thread imports it meanwhile, puts back the path that it found, and Ray's import fails: seen in 5
    of 36 runs on a busy machine.
    """
    ray = importlib.util.find_spec("ray")
    if ray is None or ray.origin is None:
        return
    folder = Path(ray.origin).parent / "thirdparty_files"
    for package in folder.glob("*/__init__.py"):
        name = package.parent.name
        spec = PathFinder.find_spec(name, [str(folder)])
        if name not in sys.modules and spec and spec.loader:
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
