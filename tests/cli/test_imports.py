"""Help and lists are there at once: what a command does not need, it does not import."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
from raybench.cli.commands import exit_code
code = exit_code(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
HEAVY = {"PIL", "cv2", "faiss", "fsspec", "h5py", "pyarrow", "ray", "rich", "torch", "yaml"}


def imported(*arguments):
    """The exit code and the packages that were imported by a command in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    code, packages = json.loads(said.stdout.splitlines()[-1])
    return code, set(packages)


@pytest.mark.parametrize(
    "arguments", [("--help",), ("list",), ("datasets",), ("run", "--help"), ("check", "--help"), ("--version",)]
)
def test_help_and_lists_import_no_numpy_nor_anything_heavier(arguments):
    code, packages = imported(*arguments)
    assert code == 0
    assert not packages & (HEAVY | {"numpy", "xxhash"})


@pytest.mark.parametrize("benchmark", ["hpatches", "hbench"])
def test_the_options_of_patch_benchmarks_are_shown_without_what_reads_and_searches(benchmark):
    code, packages = imported("run", benchmark, "--help")
    assert code == 0
    assert not packages & (HEAVY - {"pyarrow"})  # which their lists are parsed by
