"""Ray comes up while inputs are checked, and only for a job that needs it; whatever happens, nothing of it is left."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# A command, and which of Ray's sessions it started: each has a folder, whose name ends with the process that made it.
PROGRAM = """
import json, os, sys
from pathlib import Path
from raybench.benchmarks import BENCHMARKS, Listed
from raybench.cli.commands import exit_code
BENCHMARKS["toy"] = Listed(sys.argv[1], "Vowels of words", "--words")
before = set(Path("/tmp/ray").glob(f"session_*_{os.getpid()}"))  # of an earlier process with the same number
code = exit_code(sys.argv[2:])
started = [path.name for path in set(Path("/tmp/ray").glob(f"session_*_{os.getpid()}")) - before]
print(json.dumps({"code": code, "imported": "ray" in sys.modules, "started": started}))
"""

# Inputs that are found bad once Ray is on its way.
LATE = """
import dataclasses, os, time
from pathlib import Path
import toy_benchmark
from raybench.errors import DataError

def sessions():
    return set(Path("/tmp/ray").glob(f"session_*_{os.getpid()}"))

BEFORE = sessions()  # of an earlier process with the same number

def prepare(job):
    while not sessions() - BEFORE:
        time.sleep(0.001)
    raise DataError("words.txt: line 1: spoiled")

BENCHMARK = dataclasses.replace(toy_benchmark.BENCHMARK, prepare=prepare)
"""

# Inputs that are read by a library which, as OpenCV does, puts back the path for modules that it found.
RACING = """
import dataclasses, sys, time
from pathlib import Path
import toy_benchmark

def prepare(job):
    found = list(sys.path)
    while "thirdparty_files" not in sys.path[0]:
        time.sleep(0)
    sys.path = found
    Path(job.out).with_name("put back").touch()
    return toy_benchmark.BENCHMARK.prepare(job)

BENCHMARK = dataclasses.replace(toy_benchmark.BENCHMARK, prepare=prepare)
"""


@pytest.fixture
def words(tmp_path):
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "fruit.txt").write_text("fig\n")
    return folder


def toy(folder, *arguments, where="toy_benchmark:BENCHMARK"):
    """What a run of the toy benchmark left, in a process of its own that finds modules in `folder`."""
    command = [sys.executable, "-c", PROGRAM, where, "run", "toy", *map(str, arguments)]
    environment = {"PYTHONPATH": f"{folder}:{TESTS}:{TESTS.parent}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(said.stdout.splitlines()[-1]), said.stderr


def processes_of(session):
    """The command lines of what still runs for one of Ray's sessions."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # ended meanwhile
                continue
            if session in line:
                found.append(line)
    return found


def test_a_finished_job_does_not_even_import_ray(words, tmp_path):
    given = ("--words", words, "--out", tmp_path / "out")
    assert toy(tmp_path, *given, "--ray", "off")[0]["code"] == 0
    left, said = toy(tmp_path, *given, "--ray", "local")
    assert "done already" in said
    assert left == {"code": 0, "imported": False, "started": []}


def test_other_arguments_into_a_finished_folder_are_refused_without_ray(words, tmp_path):
    given = ("--words", words, "--out", tmp_path / "out")
    toy(tmp_path, *given, "--ray", "off")
    left, said = toy(tmp_path, *given, "--vowels", "ae", "--ray", "local")
    assert "holds a run with other arguments" in said
    assert left == {"code": 2, "imported": False, "started": []}


def test_a_wrong_argument_starts_no_ray(tmp_path):
    left, said = toy(tmp_path, "--out", tmp_path / "out", "--ray", "local")
    assert "--words is missing" in said
    assert (left["code"], left["started"]) == (2, [])


def test_input_found_bad_at_once_starts_no_ray(words, tmp_path):
    (words / "empty.txt").write_text("\n")
    left, said = toy(tmp_path, "--words", words, "--out", tmp_path / "out", "--ray", "local")
    assert "empty.txt: empty" in said
    assert (left["code"], left["started"]) == (2, [])


@pytest.mark.ray(own=True)
def test_input_found_bad_while_ray_comes_up_leaves_no_process(tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    left, said = toy(tmp_path, "--out", tmp_path / "out", "--ray", "local", where="late:BENCHMARK")
    assert (left["code"], len(left["started"])) == (2, 1)
    assert [line for line in said.splitlines() if line.startswith("error: ")] == ["error: words.txt: line 1: spoiled"]
    assert processes_of(left["started"][0]) == []


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_a_library_that_puts_back_the_path_while_ray_is_imported_does_no_harm(words, tmp_path):
    (tmp_path / "racing.py").write_text(RACING)
    given = ("--words", words, "--out", tmp_path / "out", "--ray", "local")
    left, said = toy(tmp_path, *given, where="racing:BENCHMARK")
    assert left["code"] == 0, said
    assert (tmp_path / "put back").exists()


def test_problems_of_inputs_come_before_those_of_ray(words, tmp_path):
    nobody = ("--ray", "127.0.0.1:1", "--out", tmp_path / "out")
    left, said = toy(tmp_path, *nobody)
    assert (left["code"], said) == (2, "error: toy: --words is missing, the folder of word lists\n")
    left, said = toy(tmp_path, "--words", words, *nobody)
    assert left["code"] == 2
    assert "error: --ray 127.0.0.1:1: nobody listens there" in said
