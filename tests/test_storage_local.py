"""Storage on this machine: disk and memory. Object stores have their own tests with a real server."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import pytest

from raybench import node_cache, remote, retries, storage
from raybench.errors import ConfigError, DataError, StorageError, StorageUnavailable
from raybench.parallel import ahead, ahead_if_they_wait, in_parallel

# Reads until the file holds nothing but 0xff; prints how many different contents it saw, and fails on a torn one.
READER = """
import sys
seen = set()
print("ready", flush=True)
while True:
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    if len(data) != int(sys.argv[2]) or len(set(data)) != 1:
        sys.exit(f"torn: {len(data)} bytes of {len(set(data))} kinds")
    seen.add(data[0])
    if data[0] == 255:
        break
print(len(seen))
"""


@pytest.fixture
def memory() -> str:
    """A folder in memory that no other test uses."""
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The node-local cache in a folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"raybench-cache-{os.getuid()}"


def test_another_process_never_sees_a_part_of_a_published_file(tmp_path):
    target, size = tmp_path / "x.shard", 300_000
    storage.publish(str(target), bytes(size))
    command = [sys.executable, "-c", READER, str(target), str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "ready\n"
        for turn in range(200):
            storage.publish(str(target), bytes([turn]) * size)
        storage.publish(str(target), b"\xff" * size)
        seen, error = reader.communicate(timeout=20)
    assert (reader.returncode, error) == (0, "")
    assert int(seen) > 1


def test_publishing_makes_the_folders_and_leaves_nothing_else(tmp_path):
    storage.publish(str(tmp_path / "a" / "b" / "x"), b"1")
    storage.publish(str(tmp_path / "a" / "b" / "x"), b"2")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["x"]
    assert storage.read(str(tmp_path / "a" / "b" / "x")) == b"2"


def test_a_failed_publish_leaves_the_old_file_and_no_temporary(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "kept").write_bytes(b"1")
    with pytest.raises(StorageError, match=r"x: can.t be written"):
        storage.publish(str(tmp_path / "x"), b"2")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_listing_is_in_name_order_with_sizes(tmp_path):
    for name in ("b/2", "a", "b/10", "c/d/e"):
        storage.publish(str(tmp_path / name), name.encode())
    found = [(entry.name, entry.size_bytes) for entry in storage.list_files(str(tmp_path))]
    assert found == [("a", 1), ("b/10", 4), ("b/2", 3), ("c/d/e", 5)]


def test_a_listing_leaves_out_what_is_being_written(tmp_path):
    (tmp_path / f".000001.shard.{uuid.uuid4().hex}.tmp").write_bytes(b"half")
    (tmp_path / "000000.shard").write_bytes(b"whole")
    assert [entry.name for entry in storage.list_files(str(tmp_path))] == ["000000.shard"]


def test_a_listing_leaves_out_what_is_no_file_but_for_links_to_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    (tmp_path / "file").write_bytes(b"1")
    assert [entry.name for entry in storage.list_files(str(tmp_path))] == ["file", "itself", "nowhere"]


@pytest.mark.parametrize("read", [storage.read, lambda uri: storage.read_start(uri, 4)])
def test_a_link_to_nothing_is_listed_so_that_reading_it_names_what_it_lacks(tmp_path, read):
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    with pytest.raises(DataError, match=rf"{tmp_path}/nowhere: is a link to {tmp_path}/none, which is not there"):
        read(f"{tmp_path}/nowhere")
    with pytest.raises(FileNotFoundError):
        read(f"{tmp_path}/none")


AS_NOBODY = """
import os
import sys
from raybench import storage
from raybench.errors import InputError
os.setuid(65534)  # from here on, since nobody may not read Python itself everywhere
for action in (storage.list_files, lambda uri: storage.read(uri + "/file"), storage.try_writing):
    try:
        action(sys.argv[1])
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_what_may_not_be_listed_read_or_written_is_said_in_one_line():
    closed = Path(tempfile.mkdtemp())  # below pytest's own folder, which is closed, too
    (closed / "file").write_bytes(b"1")
    closed.chmod(0o700)
    found = subprocess.run([sys.executable, "-c", AS_NOBODY, closed], capture_output=True, text=True, check=True)
    shutil.rmtree(closed)
    listed, read, written = found.stdout.splitlines()
    assert listed == f"{closed}: can't be listed (Permission denied); check its permissions"
    assert read == f"{closed}/file: can't be read (Permission denied); check its permissions"
    assert written.startswith(f"{closed}: can't be written (Permission denied)")


def test_what_keeps_a_file_from_being_written_is_said(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"\(a file has the name of a folder above it\); move that away"):
        storage.publish(str(tmp_path / "file/x"), b"2")
    with pytest.raises(StorageError, match=r"\(a folder has its name\); move that away"):
        storage.publish(str(tmp_path / "folder"), b"2")


def test_folders_are_moved_aside_under_names_that_are_free(tmp_path):
    for content in ("one", "two"):
        (tmp_path / "stage/x.shard").mkdir(parents=True)
        (tmp_path / "stage/x.shard/kept").write_text(content)
        storage.move_aside(str(tmp_path / "stage/x.shard"), str(tmp_path / "aside"))
    kept = sorted((tmp_path / "aside").rglob("kept"))
    assert [file.parent.name for file in kept] == ["stage-x.shard-0", "stage-x.shard-1"]
    assert [file.read_text() for file in kept] == ["one", "two"]


def test_the_stamp_changes_when_a_file_is_rewritten(tmp_path):
    target = tmp_path / "x"
    target.write_bytes(b"1")
    (before,) = storage.list_files(str(tmp_path))
    os.utime(target, ns=(0, target.stat().st_mtime_ns + 1))
    (after,) = storage.list_files(str(tmp_path))
    assert before.stamp != after.stamp


def test_a_missing_folder_lists_nothing(tmp_path, memory):
    assert storage.list_files(str(tmp_path / "none")) == []
    assert storage.list_files(memory) == []


@pytest.mark.parametrize(
    "uri",
    [
        "s3://KEYID:SECRET@bucket/path",
        "s3://SECRET@bucket",
        "https://user:SECRET@host/x",
        "nope://a:SECRET@b",
        "s3://KEYID:abc/SECRET@bucket/path",
    ],
)
def test_a_uri_with_credentials_is_refused_without_repeating_them(uri):
    with pytest.raises(ConfigError, match="environment") as caught:
        storage.checked(uri)
    assert "SECRET" not in str(caught.value)


def test_an_unknown_scheme_is_refused_by_name():
    with pytest.raises(ConfigError, match="'nope'"):
        storage.checked("nope://bucket/x")


@pytest.mark.parametrize("uri", ["s3://bucket/a", "memory://a"])
def test_a_known_scheme_is_left_as_it_is(uri):
    assert storage.checked(uri) == uri


def test_a_path_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert storage.checked("a/b") == str(tmp_path / "a" / "b")
    assert storage.checked(f"file://{tmp_path}/a") == str(tmp_path / "a")


def test_a_missing_file_says_so(tmp_path):
    for read in (storage.read, storage.read_mapped, lambda uri: storage.read_start(uri, 3)):
        with pytest.raises(FileNotFoundError):
            read(str(tmp_path / "none"))


def test_the_start_of_a_file_is_read_alone(tmp_path, memory):
    for folder in (str(tmp_path), memory):
        storage.publish(storage.join(folder, "x"), b"header and body")
        assert storage.read_start(storage.join(folder, "x"), 6) == b"header"
        assert storage.read_start(storage.join(folder, "x"), 99) == b"header and body"


@pytest.mark.parametrize("content", [b"", b"some content"])
def test_a_mapped_file_has_the_content(tmp_path, content):
    storage.publish(str(tmp_path / "x"), content)
    assert bytes(storage.read_mapped(str(tmp_path / "x"))) == content


def test_deleting_what_is_not_there_is_fine(tmp_path, memory):
    storage.delete(str(tmp_path / "none"))
    storage.delete(f"{memory}/none")
    storage.delete_folder(str(tmp_path / "none"))
    storage.delete_folder(memory)


def test_memory_publishes_lists_reads_and_deletes(memory, cache):
    storage.publish(f"{memory}/b/2", b"two")
    storage.publish(f"{memory}/a", b"one!")
    assert [(entry.name, entry.size_bytes) for entry in storage.list_files(memory)] == [("a", 4), ("b/2", 3)]
    assert storage.read(f"{memory}/a") == b"one!"
    assert bytes(storage.read_mapped(f"{memory}/b/2")) == b"two"
    assert storage.fetch(f"{memory}/a").read_bytes() == b"one!"
    storage.delete(f"{memory}/a")
    assert not storage.exists(f"{memory}/a")
    storage.delete_folder(memory)
    assert storage.list_files(memory) == []


def test_a_rewritten_file_is_not_served_from_the_cache(memory, cache):
    for content in (b"old", b"new"):
        storage.publish(f"{memory}/x", content)
        assert bytes(storage.read_mapped(f"{memory}/x")) == content


def test_the_cache_fetches_a_file_once(memory, cache):
    storage.publish(f"{memory}/x", b"content")
    first = storage.fetch(f"{memory}/x")
    inode = first.stat().st_ino
    assert (storage.fetch(f"{memory}/x"), first.stat().st_ino) == (first, inode)


@pytest.mark.parametrize("size", [999, 1_000, 1_001, 2_000, 2_500])
def test_a_large_file_is_fetched_in_pieces(memory, cache, monkeypatch, size):
    monkeypatch.setattr(remote, "PIECE_BYTES", 1_000)
    content = bytes(number % 251 for number in range(size))
    storage.publish(f"{memory}/large", content)
    assert storage.fetch(f"{memory}/large").read_bytes() == content
    assert len(list(cache.iterdir())) == 1


def test_the_cache_drops_what_was_used_least_recently(memory, cache, monkeypatch):
    monkeypatch.setattr(node_cache, "CACHE_BYTES", 250)
    for name in "abc":
        storage.publish(f"{memory}/{name}", name.encode() * 100)
    copies = {}
    for age, name in enumerate("ab"):
        copies[name] = storage.fetch(f"{memory}/{name}")
        os.utime(copies[name], (age, age))
    storage.fetch(f"{memory}/a")
    copies["c"] = storage.fetch(f"{memory}/c")
    assert {name: copy.exists() for name, copy in copies.items()} == {"a": True, "b": False, "c": True}


def test_a_mapped_file_outlives_its_eviction(memory, cache, monkeypatch):
    monkeypatch.setattr(node_cache, "CACHE_BYTES", 10)
    for name in "ab":
        storage.publish(f"{memory}/{name}", name.encode() * 100)
    mapped = storage.read_mapped(f"{memory}/a")
    storage.fetch(f"{memory}/b")
    assert bytes(mapped) == b"a" * 100


def test_readers_that_evict_each_others_copies_all_get_their_content(memory, cache, monkeypatch):
    monkeypatch.setattr(node_cache, "CACHE_BYTES", 2_000)
    names = [f"{number:03d}" for number in range(40)]
    for name in names:
        storage.publish(f"{memory}/{name}", name.encode() * 100)
    contents = in_parallel(lambda name: bytes(storage.read_mapped(f"{memory}/{name}")), names * 5)
    assert contents == [name.encode() * 100 for name in names * 5]


def stamped(folder, name="x", stamp="1"):
    return storage.Entry(name, (folder / name).stat().st_size, stamp)


def test_files_are_identified_by_name_size_and_stamp(tmp_path):
    for name in "xy":
        (tmp_path / name).write_bytes(b"12")
    before = storage.identity(str(tmp_path), [stamped(tmp_path)], by_content=False)
    (tmp_path / "x").write_bytes(b"34")
    assert storage.identity(str(tmp_path), [stamped(tmp_path)], by_content=False) == before
    assert storage.identity(str(tmp_path), [stamped(tmp_path, stamp="2")], by_content=False) != before
    assert storage.identity(str(tmp_path), [stamped(tmp_path, "y")], by_content=False) != before


@pytest.mark.parametrize(("stamp", "by_content"), [("1", True), ("", False)])
def test_files_without_a_stamp_are_identified_by_content(tmp_path, stamp, by_content):
    (tmp_path / "x").write_bytes(b"12")
    before = storage.identity(str(tmp_path), [stamped(tmp_path, stamp=stamp)], by_content)
    (tmp_path / "x").write_bytes(b"34")
    after = [stamped(tmp_path, stamp=stamp)]
    assert storage.identity(str(tmp_path), after, by_content) != before
    (tmp_path / "x").unlink()
    with pytest.raises(StorageError, match="is gone since the folder was listed"):
        storage.identity(str(tmp_path), after, by_content)


class Action:
    """Raises these errors one after the other, then returns; counts its calls."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)


def refused(code: str, status: int, kind=OSError) -> Exception:
    """An error as s3fs makes it of the answer of a store."""
    error = kind("in its words")
    error.__cause__ = RuntimeError()
    error.__cause__.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return error


class ResponseParserError(Exception):
    """botocore's name for an answer that it can't read, as one that was cut."""


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("slow"),
        ConnectionResetError("gone"),
        OSError("SlowDown"),
        OSError(121, "Internal Server Error"),
        OSError(errno.ESTALE, "Stale file handle"),
        ResponseParserError("no element found"),
        *(refused(str(status), status) for status in (408, 429, 500, 502, 503, 504)),
        refused("BadDigest", 400),
        refused("IncompleteBody", 400),
    ],
    ids=repr,
)
def test_what_may_pass_is_tried_again(error):
    action = Action(error, error)
    assert retries.with_retries("s3://b/x", action) == "done"
    assert action.calls == 3


def test_time_counts_and_not_the_number_of_tries(monkeypatch):
    monkeypatch.setattr(retries, "LONGEST_PAUSE_SECONDS", 0.002)
    action = Action(*[TimeoutError("slow")] * 50)
    assert retries.with_retries("s3://b/x", action) == "done"


def test_an_error_of_ours_is_final_whatever_it_says():
    action = Action(StorageError("/data/Timeout/x: no room"))
    with pytest.raises(StorageError, match="no room"):
        retries.with_retries("/data/Timeout/x", action)
    assert action.calls == 1


def test_what_does_not_pass_is_an_error_in_the_end(monkeypatch):
    monkeypatch.setattr(retries, "TRY_SECONDS", 1.0)
    monkeypatch.setattr(retries, "LONGEST_PAUSE_SECONDS", 0.1)
    action = Action(*[TimeoutError("slow")] * 9999)
    with pytest.raises(StorageUnavailable, match=r"s3://b/x: no good answer for 1 seconds \(the last: slow\)"):
        retries.with_retries("s3://b/x", action)
    assert 5 < action.calls < 9999


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError("Access Denied"), "permission denied"),
        (refused("ExpiredToken", 400, PermissionError), "credentials are refused"),
        (OSError("InvalidAccessKeyId"), "credentials are refused"),
        (OSError("NoSuchBucket"), "bucket does not exist"),
        (ConnectionError("SSL validation failed: CERTIFICATE_VERIFY_FAILED"), "certificate is not trusted"),
        (FileNotFoundError("The specified bucket does not exist"), "bucket does not exist"),
    ],
)
def test_what_will_not_pass_is_said_at_once(error, words):
    action = Action(error)
    with pytest.raises(StorageError, match=f"^s3://b/x: .*{words}"):
        retries.with_retries("s3://b/x", action)
    assert action.calls == 1


@pytest.mark.parametrize("error", [OSError(errno.EINVAL, "no such thing"), refused("NotImplemented", 501)], ids=repr)
def test_what_will_neither_pass_nor_can_be_explained_is_left_as_it_is(error):
    action = Action(error)
    with pytest.raises(OSError) as raised:
        retries.with_retries("s3://b/x", action)
    assert (raised.value, action.calls) == (error, 1)


def test_an_endpoint_that_carries_a_login_is_shown_without_it(monkeypatch):
    monkeypatch.setattr(retries, "TRY_SECONDS", 0.0)
    with pytest.raises(StorageUnavailable) as raised:
        retries.with_retries("s3://b/x", Action(ConnectionError("no answer from http://me:SECRET@host:9000/b")))
    assert "SECRET" not in str(raised.value) and "@host:9000/b" in str(raised.value)


def test_a_missing_file_in_a_folder_named_bucket_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.read(str(tmp_path / "bucket" / "none"))


def test_results_come_in_the_order_of_the_items():
    assert in_parallel(lambda item: item * item, range(50)) == [item * item for item in range(50)]


def test_what_is_asked_for_ahead_comes_in_order_and_is_bounded():
    started = []

    def square(item):
        started.append(item)
        return item * item

    results = ahead(square, range(50), most=8)
    for item in range(50):
        assert next(results) == item * item
        assert len(started) <= item + 8
    assert next(results, None) is None


def test_the_next_are_under_way_while_one_is_used():
    asked = threading.Event()

    def answer(item):
        if item == 1:
            asked.set()
        return item

    results = ahead(answer, range(4), most=2)
    assert next(results) == 0
    assert asked.wait(30)
    assert list(results) == [1, 2, 3]


def test_only_what_waits_is_asked_for_ahead_and_all_comes_in_order():
    names, waiting = [], threading.Event()

    def answer(item):
        names.append(threading.current_thread() is threading.main_thread())
        if item >= 10:
            time.sleep(0.02)
        if item == 12:
            waiting.set()
        return item

    results = ahead_if_they_wait(answer, range(40), most=4)
    assert [next(results) for _ in range(10)] == list(range(10))
    assert names == [True] * 10, "nothing waits: each is answered as it is asked for"
    assert [next(results), next(results)] == [10, 11]
    assert waiting.wait(30), "those behind one that waited are under way before they are asked for"
    assert list(results) == list(range(12, 40))
    assert True not in names[11:]


def test_an_error_of_one_comes_at_its_place():
    results = ahead(lambda item: 1 // (3 - item), range(9), most=4)
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_a_loop_that_was_left_may_be_closed_by_one_of_its_own_threads():
    left, closed = threading.Event(), list[Exception | None]()

    def close(item):
        if item == 1 and left.wait(30):
            try:
                results.close()
                closed.append(None)
            except RuntimeError as error:
                closed.append(error)
        return item

    results = ahead(close, range(9), most=2)
    assert next(results) == 0
    left.set()
    for _ in range(300):
        if closed:
            break
        time.sleep(0.1)
    assert closed == [None]


def test_no_folder_is_not_the_root_of_the_disk():
    assert storage.join("/", "stages") == "/stages"
    with pytest.raises(ConfigError, match="no folder is given for stages/x"):
        storage.join("", "stages", "x")
