"""What a stage freed goes back to the system before the next one begins."""

import subprocess
import sys

import pytest

from raybench.engine.memory import give_back

# Blocks below the size from which malloc maps memory by itself; the last one stays, so that only a trim helps.
SCRIPT = """
from raybench.engine.memory import give_back

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

blocks = [bytes(100_000) for _ in range(2_000)]
del blocks[:-1]
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
def test_what_was_freed_is_given_back():
    said = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout
    assert int(said) > 100_000_000


def test_giving_back_twice_is_no_harm():
    give_back()
    give_back()
