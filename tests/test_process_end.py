"""How the command ends its process: what was registered for the end runs, and the exit code is the command's own."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys
from raybench.cli import main
atexit.register(lambda: print("ended in order"))
main(sys.argv[1:])
print("came back")
"""


@pytest.mark.parametrize(("arguments", "code"), [(["list"], 0), (["run", "nothing"], 2)])
def test_exit_functions_run_and_the_code_is_kept(arguments, code):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == code
    assert said.stdout.endswith("ended in order\n")
