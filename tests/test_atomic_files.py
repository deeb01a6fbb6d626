"""Files that are there as a whole or not at all, and the removal of what killed writers leave."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from raybench.atomic_files import make_folder, remove_leftovers, replacing

WRITER = """
import sys
from pathlib import Path
from raybench.atomic_files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
"""


@pytest.fixture
def writer(tmp_path):
    """A process that has written half of a file and goes on when it is told to."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "x")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        yield process
        process.kill()


def test_what_a_killed_writer_left_is_removed(tmp_path, writer):
    writer.kill()
    writer.wait()
    assert [path.name[:3] for path in tmp_path.iterdir()] == [".x."]
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_writer_has_under_way_stays(tmp_path, writer):
    remove_leftovers(tmp_path)
    writer.communicate("go on\n")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"half and half"


def test_only_temporary_files_of_ours_are_removed_and_not_in_the_folder_beside(tmp_path):
    kept = [".x.tmp", "x.tmp", f"x.{'0' * 32}.tmp", f".x.{'g' * 32}.tmp", f"store/.x.{'0' * 32}.tmp"]
    gone = [f".x.{'0' * 32}.tmp", f"deep/er/.x.{'1' * 32}.tmp"]
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, tmp_path / "store")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        kept
    )


def test_a_folder_that_is_not_there_has_no_leftovers(tmp_path):
    remove_leftovers(tmp_path / "nowhere")


def test_writers_and_removers_never_meet(tmp_path):
    """A remover may see a file between its making and its locking; its writer then makes another."""
    ended = threading.Event()

    def remove():
        while not ended.is_set():
            remove_leftovers(tmp_path)

    removers = [threading.Thread(target=remove) for _ in range(2)]
    for remover in removers:
        remover.start()
    try:
        for number in range(300):
            with replacing(tmp_path / "x") as file:
                file.write(str(number).encode())
    finally:
        ended.set()
        for remover in removers:
            remover.join()
    assert (tmp_path / "x").read_bytes() == b"299"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_folder_is_made_with_all_above_it_and_one_that_is_there_stays(tmp_path):
    make_folder(tmp_path / "a/b/c")
    (tmp_path / "a/b/c/x").touch()
    make_folder(Path(tmp_path / "a/b/c"))
    assert (tmp_path / "a/b/c/x").exists()
