"""A disk that fills up during a run: one clear line, nothing half-written, and the same command goes on once there is
room. The disk is real, if small: a tmpfs that the test mounts."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import only_line

from raybench import storage
from raybench.errors import StorageError
from raybench.formats import shardfile

TABLE = "hbench_classification.csv"
EXECUTORS = [
    pytest.param(("--ray", "off"), id="inline"),
    pytest.param(("--cpus", "2"), id="ray", marks=pytest.mark.ray),
]


class SmallDisk:
    """A file system of its own whose size can be changed."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self.folder = folder
        self._mount("-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder))

    def grow_to(self, size_bytes: int) -> None:
        self._mount("-o", f"remount,size={size_bytes}", str(self.folder))

    def _mount(self, *arguments: str) -> None:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"a disk that fills up can't be mounted here: {done.stderr.strip()}")

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def small_disk(tmp_path):
    made = []

    def make(size_bytes: int) -> SmallDisk:
        (tmp_path / "small").mkdir()
        made.append(SmallDisk(tmp_path / "small", size_bytes))
        return made[0]

    yield make
    for disk in made:
        subprocess.run(["umount", "--lazy", str(disk.folder)], check=True)


def arguments(golden, out):
    given = ("--data", golden / "hpatches", "--benchmarks", golden / "benchmarks", "--device", "cpu")
    return ("run", "hbench-classification", *given, "--descriptor", "meanstd", "--shard-size", "4", "--out", out)


def stages(out):
    return json.loads((out / "manifest.json").read_text())["stages"]


def assert_all_whole(disk):
    """No file is a part of one under its final name."""
    for path in disk.files():
        if path.suffix == ".shard":
            shardfile.decode(path.read_bytes(), f"{path.parent.name}/{path.name}")
        if path.name == "manifest.json":
            json.loads(path.read_text())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("option", "room_bytes"), [("--store", 100_000), ("--out", 100_000), ("--out", 0)])
def test_a_full_disk_is_one_clear_line_and_the_run_can_be_resumed(
    raybench, golden, tmp_path, small_disk, request, executor, option, room_bytes
):
    if "--cpus" in executor:
        request.getfixturevalue("local_ray")
    assert raybench(*arguments(golden, tmp_path / "undisturbed"), "--ray", "off").code == 0
    disk = small_disk(room_bytes or 4096)  # of which the folder itself takes a page
    out = tmp_path / "out" if option == "--store" else disk.folder / "out"
    more = ("--store", disk.folder / "store") if option == "--store" else ()
    said = raybench(*arguments(golden, out), *more, *executor)
    only_line(said, "no room on the disk at", disk.folder, "make room there and run the same command again")
    assert '"retried"' not in said.err
    assert_all_whole(disk)
    if executor == ("--ray", "off"):  # the end of a run kills its actors, perhaps while one writes
        assert not list(disk.folder.rglob("*.tmp"))
    published = len([path for path in disk.files() if path.suffix == ".shard"])
    assert (published > 0) == (room_bytes > 0), "it was full too early, or not at all"
    disk.grow_to(50_000_000)
    said = raybench(*arguments(golden, out), *more, *executor)
    assert said.code == 0, said.err
    assert sum(stage["found"] for stage in stages(out)) >= published
    assert not list(disk.folder.rglob("*.tmp"))
    assert (out / TABLE).read_bytes() == (tmp_path / "undisturbed" / TABLE).read_bytes()


def test_a_file_that_does_not_fit_leaves_the_one_before_it(small_disk):
    disk = small_disk(64 * 1024)
    uri = str(disk.folder / "file")
    storage.publish(uri, bytes(10_000))
    with pytest.raises(StorageError, match="no room on the disk at"):
        storage.publish(uri, bytes(60_000))
    assert disk.files() == [disk.folder / "file"]
    assert storage.read(uri) == bytes(10_000)


def test_a_node_without_room_for_copies_says_so(small_disk, s3, monkeypatch):
    import tempfile

    uri = f"{s3.bucket('copies-without-room')}/file"
    storage.publish(uri, bytes(100_000))
    disk = small_disk(64 * 1024)
    monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))
    with pytest.raises(StorageError, match="no room for its node-local copy on"):
        storage.fetch(uri)
    assert disk.files() == []
