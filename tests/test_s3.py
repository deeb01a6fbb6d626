"""Object storage, against a real S3 server on loopback: same tables, clear errors, tries again what may pass."""

import os
import subprocess
import sys

import pytest
from faulty_s3 import bursts

from raybench import remote, storage
from raybench.errors import DataError, StorageError

TABLE = "hbench_classification.csv"


@pytest.mark.parametrize("ray", ["off", pytest.param("session", marks=pytest.mark.ray)])
def test_a_run_on_object_storage_gives_the_same_table(raybench, golden, tmp_path, s3, request, ray):
    bucket = s3.bucket(f"run-{ray}")
    s3.upload(golden / "hpatches", f"{bucket}/hpatches")
    s3.upload(golden / "benchmarks", f"{bucket}/benchmarks")
    executor = ("--ray", "off") if ray == "off" else ("--device", "cpu", "--cpus", "2")
    if ray == "session":
        request.getfixturevalue("local_ray")
    given = ("--descriptor", "patch_descriptors:Block4", "--shard-size", "16", *executor)
    remote = ("--data", f"{bucket}/hpatches", "--benchmarks", f"{bucket}/benchmarks", "--out", f"{bucket}/out")
    said = raybench("run", "hbench-classification", *remote, *given)
    assert said.code == 0, said.err
    local = ("--data", golden / "hpatches", "--benchmarks", golden / "benchmarks", "--out", tmp_path / "out")
    assert raybench("run", "hbench-classification", *local, *given).code == 0
    assert storage.read(f"{bucket}/out/{TABLE}") == (tmp_path / "out" / TABLE).read_bytes()
    names = {entry.name for entry in storage.list_files(f"{bucket}/out")}
    assert {"manifest.json", "report.html", TABLE, "results/classification/block4/mini_easy_pos.results"} <= names
    said = raybench("run", "hbench-classification", *remote, *given)
    assert said.code == 0
    assert "done already" in said.err


def test_publish_list_read_and_delete_on_object_storage(s3):
    folder = f"{s3.bucket('bytes')}/a"
    storage.publish(f"{folder}/b/one", b"1")
    storage.publish(f"{folder}/two", b"22")
    assert [(entry.name, entry.size_bytes) for entry in storage.list_files(folder)] == [("b/one", 1), ("two", 2)]
    assert storage.read_start(f"{folder}/two", 1) == b"2"
    stamp = storage.list_files(folder)[1].stamp
    storage.publish(f"{folder}/two", b"33")
    assert storage.list_files(folder)[1].stamp != stamp
    storage.delete(f"{folder}/two")
    storage.delete(f"{folder}/two")
    assert not storage.exists(f"{folder}/two")
    storage.delete_folder(folder)
    assert storage.list_files(folder) == []


def test_a_folder_is_there_but_can_not_be_read_as_a_file(s3):
    folder = f"{s3.bucket('folders')}/a"
    storage.publish(f"{folder}/b", b"1")
    assert storage.exists(folder)
    for action in (storage.read, storage.read_mapped, storage.fetch, lambda uri: storage.read_start(uri, 10)):
        with pytest.raises(FileNotFoundError):
            action(folder)


def test_the_node_local_cache_is_read_once_and_never_stale(s3):
    uri = f"{s3.bucket('cached')}/file"
    storage.publish(uri, b"old")
    assert bytes(storage.read_mapped(uri)) == b"old"
    copy = storage.fetch(uri)
    assert copy == storage.fetch(uri)
    storage.publish(uri, b"new")
    assert bytes(storage.read_mapped(uri)) == b"new"


def test_a_copy_is_never_made_of_two_versions(s3, monkeypatch):
    uri = f"{s3.bucket('versions')}/large.npy"
    storage.publish(uri, os.urandom(3_000))  # whose copies of earlier test runs are not this one's
    monkeypatch.setattr(remote, "PIECE_BYTES", 1_000)
    read_range = remote.read_range

    def replaced(*at):
        piece = read_range(*at)
        storage.publish(uri, b"2" * 3_000)
        return piece

    monkeypatch.setattr(remote, "read_range", replaced)
    with pytest.raises(DataError, match=r"large\.npy: was rewritten since it was listed; run again"):
        storage.fetch(uri)
    monkeypatch.undo()
    assert storage.fetch(uri).read_bytes() == b"2" * 3_000


def test_a_broken_node_local_copy_is_fetched_again(s3):
    import numpy as np

    from raybench.engine.shards import Shards
    from raybench.engine.stages import Mapped

    mapped = Mapped(f"{s3.bucket('copies')}/store", "x", "digest", Shards("x", 1, 1))
    mapped.publish(mapped.shards[0], {"values": np.arange(5)})
    copy = storage.fetch(mapped.uri(0))
    data = bytearray(copy.read_bytes())
    data[70] ^= 1
    copy.write_bytes(bytes(data))
    assert mapped.read(0)["values"].tolist() == [0, 1, 2, 3, 4]


def damaged(data: bytes, other: bytes) -> dict[str, bytes | None]:
    return {"deleted": None, "empty": b"", "cut": data[:-10], "zeroed": bytes(len(data)), "another's": other}


@pytest.mark.parametrize("how", damaged(b"", b""))
def test_a_damaged_shard_on_object_storage_is_mapped_again_and_said(s3, tmp_path, how):
    from number_stages import Squares

    from raybench.engine.inline import InlineExecutor
    from raybench.engine.progress import Observer
    from raybench.engine.run import Run
    from raybench.metrics.partials import Rows

    said = []
    observer = Observer()
    observer.said = said.append
    store = s3.bucket("damaged-" + how.replace("'", ""))
    run = Run(str(tmp_path), store, InlineExecutor(observer), observer)
    mapped = run.map(Squares(), 10, 3)
    whole, spoilt = storage.read(mapped.uri(1)), damaged(storage.read(mapped.uri(1)), storage.read(mapped.uri(2)))[how]
    if spoilt is None:
        storage.delete(mapped.uri(1))
    else:
        storage.publish(mapped.uri(1), spoilt)
    folded = run.fold(mapped, Rows)
    assert run.read(folded, 0)["values"].tolist() == [float(number**2) for number in range(10)]
    assert [line.split(" again: ")[0] for line in said] == ["mapping squares shard 1"]
    assert storage.read(mapped.uri(1)) == whole


def test_a_missing_bucket_is_said_in_one_line(raybench, golden, s3, tmp_path):
    given = ("--benchmarks", golden / "benchmarks", "--out", tmp_path / "out", "--ray", "off")
    said = raybench("run", "hbench-classification", *given, "--features", "s3://no-such-bucket/x")
    assert said.code == 2
    assert len(said.errors) == 1
    assert "s3://no-such-bucket/x" in said.errors[0]
    with pytest.raises(StorageError, match="bucket does not exist"):
        storage.publish("s3://no-such-bucket/x", b"1")


def test_wrong_credentials_are_said_in_one_line_without_repeating_them(golden, s3, tmp_path):
    s3.bucket("private")
    given = ["--benchmarks", golden / "benchmarks", "--out", tmp_path / "out", "--ray", "off"]
    command = [
        sys.executable,
        "-m",
        "raybench",
        "run",
        "hbench-classification",
        *given,
        "--features",
        "s3://private/x",
    ]
    environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": "wrongsecret"}
    said = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    errors = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "credentials" in errors[0] and "s3://private/x" in errors[0]
    assert "wrongsecret" not in said.stderr + said.stdout


def test_throttling_is_waited_out(s3, faulty):
    uri = f"{s3.bucket('busy')}/file"
    faulty.requests, faulty.fault = 0, bursts("slow down", of=3, every=1_000)
    storage.publish(uri, b"through")
    faulty.requests = 0
    assert storage.read(uri) == b"through"
    assert faulty.happened == {"slow down": 6}
