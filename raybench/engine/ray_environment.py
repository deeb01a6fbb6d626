"""What Ray looks for in the environment when it is imported, and only then. Imports no Ray itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
