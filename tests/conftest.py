"""Real parts for tests: one local Ray for the session, a real S3 server, the command line in this process."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"

os.environ["PYTHONPATH"] = f"{TESTS}{os.pathsep}{TESTS.parent}"  # Ray's workers find the tests' descriptors
sys.path.insert(0, str(TESTS))


def pytest_collection_modifyitems(items):
    """Mark what uses the session's Ray. `make test` gives it a process of its own, `make test-fast` leaves it out."""
    for item in items:
        if "local_ray" in item.fixturenames:
            item.add_marker(pytest.mark.ray)


@dataclass(frozen=True)
class Said:
    """What one call of the command line left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line.removeprefix("error: ") for line in self.err.splitlines() if line.startswith("error: ")]


def only_line(said: Said, *words: object) -> None:
    """The user's input is wrong, which is said in one line that has these words."""
    assert said.code == 2
    assert len(said.errors) == 1, said.err
    for word in words:
        assert str(word) in said.errors[0]


def spoil(file: Path, change) -> None:
    """Put another text into a file, made from the one that is there."""
    file.write_text(change(file.read_text()))


def outputs_of_every_plan(run, folder: Path) -> set[tuple[bytes, ...]]:
    """Tables and results of one job by three shard sizes in this process and one on Ray; one member if all are equal.

    `run(out, *arguments)` runs the job into a folder.
    """
    plans = [("inline", "7"), ("inline", "100"), ("inline", "default"), ("ray", "7")]
    seen = set()
    for executor, size in plans:
        out = folder / executor / size
        where = ("--ray", "off") if executor == "inline" else ("--device", "cpu", "--cpus", "2")
        run(out, *(() if size == "default" else ("--shard-size", size)), *where)
        files = sorted([*out.glob("*.csv"), *out.glob("tables/*"), *out.glob("results/*/*/*"), *out.glob("samples/*")])
        seen.add(tuple(file.read_bytes() for file in files))
    return seen


@pytest.fixture
def raybench(capsys):
    """The command line, in this process; joins the session's Ray if that is up and `--ray off` is not given."""
    from raybench.cli.commands import exit_code

    def call(*arguments):
        capsys.readouterr()
        code = exit_code([str(argument) for argument in arguments])
        return Said(code, *capsys.readouterr())

    return call


@dataclass(frozen=True)
class S3Server:
    """An S3 server on loopback, whose buckets are folders in `folder`."""

    endpoint: str
    folder: Path

    def bucket(self, name: str) -> str:
        """A new bucket."""
        import s3fs

        s3fs.S3FileSystem().mkdir(name)
        return f"s3://{name}"

    def upload(self, folder: Path, uri: str) -> str:
        """A folder's files below a URI."""
        from raybench import storage
        from raybench.parallel import in_parallel

        def put(path: Path) -> None:
            storage.publish(storage.join(uri, path.relative_to(folder).as_posix()), path.read_bytes())

        in_parallel(put, [path for path in folder.rglob("*") if path.is_file()])
        return uri


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, seconds: float = 20, host: str = "127.0.0.1") -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """`rclone serve s3` with one key; the environment points at it, before Ray starts, so that workers have it too."""
    folder = tmp_path_factory.mktemp("s3")
    port = free_port()
    command = [Path(sys.executable).parent / "rclone", "serve", "s3", folder, "--addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        [*map(str, command), "--auth-key", "testkey,testsecret"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RCLONE_CONFIG": "/dev/null"},
    )
    wait_for_port(port)
    os.environ.update(
        AWS_ACCESS_KEY_ID="testkey",
        AWS_SECRET_ACCESS_KEY="testsecret",
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
        AWS_DEFAULT_REGION="us-east-1",
    )
    yield S3Server(f"http://127.0.0.1:{port}", folder)
    server.terminate()
    server.wait(10)


@pytest.fixture
def faulty(s3):
    """A proxy before that server, on a good day until a fault is set; this process goes through it."""
    from faulty_s3 import FaultyS3, connected_to

    proxy = FaultyS3(s3.endpoint)
    with connected_to(proxy.endpoint):
        yield proxy
    proxy.stop()


@pytest.fixture(scope="session")
def local_ray(s3, request):
    """One Ray for the session, with eight logical GPUs; a test that wants CPUs says `--device cpu`."""
    import ray

    if request.config.getoption("markexpr").startswith(("not ray", "(not ray")):
        pytest.fail("this test needs Ray: take `local_ray` as an argument, or mark its parameter with pytest.mark.ray")

    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (its name)
    ray.init("local", num_cpus=5, num_gpus=8, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture
def executor(local_ray, monkeypatch):
    """Executors on the session's Ray, closed at the end."""
    from engine_runs import Heard

    from raybench.engine import ray_nodes
    from raybench.engine.ray_core import RayExecutor

    monkeypatch.setattr(ray_nodes, "VERDICT_SECONDS", 1.0)  # the one node that there is stays
    made = []

    def make(cpus=2, gpus=0, heard=None, **how):
        made.append(RayExecutor(heard or Heard(), cpus, gpus, insist_on_gpus=gpus > 0, owned=False, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def copies(tmp_path_factory):
    """The demo's sets of copy detection, to be read only."""
    from raybench.demo.copies import make_copies

    folder = tmp_path_factory.mktemp("copies")
    make_copies(folder)
    return folder


@pytest.fixture(scope="session")
def landmarks(tmp_path_factory):
    """The demo's set in the layout of Revisited Oxford and Paris, to be read only."""
    from raybench.demo.landmarks import make_landmarks

    folder = tmp_path_factory.mktemp("landmarks")
    make_landmarks(folder)
    return folder


@pytest.fixture
def golden():
    """The inputs of the golden classification case, and its figures."""
    return GOLDEN / "hbench_classification" / "data"
