"""Object storage on a bad day: the same bytes and tables as on a good one, in bounded time, or one clear line."""

import logging
import os
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import pytest
import s3fs
from archives import pack_tar
from conftest import GOLDEN, Said, only_line
from faulty_s3 import bursts, none, once_published, sometimes

from raybench import remote, retries, storage
from raybench.engine.shards import Shards
from raybench.engine.stages import Mapped
from raybench.errors import OutOfReach, StorageError, StorageUnavailable
from raybench.sources.image_files import ImageFiles

CONTENT = bytes(number % 251 for number in range(100_000))


@pytest.fixture
def short_pauses(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(retries, "LONGEST_PAUSE_SECONDS", 0.1)


@pytest.fixture
def bucket(s3):
    """A bucket that no other test uses."""
    return s3.bucket(f"faulty-{time.time_ns()}")


def first(kind, times=2):
    """The first requests, as often as this; then none."""
    return bursts(kind, of=times, every=10**9)


def begin(faulty, fault):
    faulty.requests, faulty.fault = 0, fault


READS = {
    "whole": lambda uri: storage.read(uri) == CONTENT,
    "start": lambda uri: storage.read_start(uri, 5_000) == CONTENT[:5_000],
    "all that is there": lambda uri: storage.read_start(uri, 200_000) == CONTENT,
    "in pieces": lambda uri: storage.fetch(uri).read_bytes() == CONTENT,
    "pieces at once": lambda uri: storage.read(uri) == CONTENT,
    "mapped": lambda uri: bytes(storage.read_mapped(uri)) == CONTENT,
    "listed": lambda uri: [entry.size_bytes for entry in storage.list_files(uri.rpartition("/")[0])] == [len(CONTENT)],
    "exists": storage.exists,
}


REFUSED, DAMAGED = ("slow down", "error inside", "bad gateway"), ("reset", "cut", "cut in agreement")


@pytest.mark.parametrize("how", READS)
def test_what_is_read_is_what_was_published(bucket, faulty, short_pauses, monkeypatch, how):
    if "pieces" in how:
        monkeypatch.setattr(remote, "PIECE_BYTES", 30_000)
    kinds = REFUSED if how == "exists" else (*REFUSED, *DAMAGED)  # that asks for a header, which has no body
    for number, kind in enumerate(kinds):
        uri = f"{bucket}/{number}/file"
        faulty.fault = none
        storage.publish(uri, CONTENT)
        begin(faulty, first(kind))
        assert READS[how](uri), kind
        assert faulty.happened[kind] > 0, kind


def test_a_range_of_one_version_is_read_through_faults_and_of_another_never(bucket, faulty, short_pauses):
    uri = f"{bucket}/file"
    storage.publish(uri, CONTENT)
    stamp = storage.told(uri).stamp
    for kind in (*REFUSED, *DAMAGED):
        begin(faulty, first(kind))
        assert storage.read_range(uri, 10, 90_000, stamp) == CONTENT[10:90_000], kind
        assert faulty.happened[kind] > 0, kind
    faulty.fault = none
    storage.publish(uri, CONTENT[::-1])
    with pytest.raises(OutOfReach, match="file: was rewritten since it was listed; run again"):
        storage.read_range(uri, 10, 90_000, stamp)


def test_an_archive_is_listed_and_read_through_faults(bucket, faulty, short_pauses, tmp_path):
    for number in range(60):
        (tmp_path / f"{number:02d}.jpg").write_bytes(bytes([number]) * 30_000)
    storage.publish(f"{bucket}/x.tar", pack_tar(tmp_path, tmp_path / "x.tar").read_bytes())
    begin(faulty, sometimes(0.5, *REFUSED, *DAMAGED))
    for _ in range(4):
        images = ImageFiles.scan(f"{bucket}/x.tar", store=f"{bucket}/store")
        assert [data[:1] for data in images.files.read_each(range(60))] == [bytes([number]) for number in range(60)]
    faulty.fault = none
    assert sum(faulty.happened.values()) > 3


def test_what_is_published_arrives_whole(bucket, faulty, short_pauses):
    uri = f"{bucket}/file"
    for number, kind in enumerate((*REFUSED, "sent in part")):
        content = bytes([number]) + CONTENT
        begin(faulty, first(kind))
        storage.publish(uri, content)
        assert faulty.happened[kind] == 2, kind
        faulty.fault = none
        assert storage.read(uri) == content, kind


@pytest.mark.slow
def test_the_parts_of_a_large_file_are_tried_again_one_by_one(bucket, faulty, short_pauses):
    uri = f"{bucket}/large"
    content = os.urandom(remote.PARTS_FROM_BYTES + 1)
    begin(faulty, lambda request: "error inside" if request.number % 2 else None)
    storage.publish(uri, content)
    assert faulty.happened["error inside"] >= 3
    faulty.fault = none
    assert storage.read(uri) == content


def test_a_file_that_grew_since_its_size_was_told_is_read_anew(bucket, short_pauses, monkeypatch):
    uri = f"{bucket}/file"
    storage.publish(uri, CONTENT)
    told = iter([remote.Facts(len(CONTENT) - 10, "old")])
    real = remote._facts
    monkeypatch.setattr(remote, "_facts", lambda uri: next(told, None) or real(uri))
    assert storage.read(uri) == CONTENT


def test_an_empty_file_is_read_as_one(bucket):
    uri = f"{bucket}/file"
    storage.publish(uri, b"")
    assert (storage.read(uri), storage.read_start(uri, 10), bytes(storage.read_mapped(uri))) == (b"", b"", b"")


@pytest.mark.slow
def test_a_page_of_a_listing_that_fails_is_asked_for_again_alone(s3, bucket, faulty, short_pauses):
    folder = s3_folder(s3, bucket)
    for number in range(2_500):
        (folder / f"{number:05d}").write_bytes(b"x")
    begin(faulty, lambda request: "error inside" if request.number in (1, 3) else None)
    names = [entry.name for entry in storage.list_files(bucket)]
    assert names == [f"{number:05d}" for number in range(2_500)]
    assert (faulty.happened["error inside"], faulty.requests) == (2, 5)


def s3_folder(s3, bucket):
    """Where the server keeps a bucket."""
    return s3.folder / urlsplit(bucket).netloc


def test_a_store_that_stays_away_is_given_up_in_bounded_time_and_said_meanwhile(
    bucket, faulty, short_pauses, monkeypatch, caplog
):
    uri = f"{bucket}/file"
    monkeypatch.setattr(retries, "TRY_SECONDS", 2.0)
    monkeypatch.setattr(retries, "SAY_AFTER_SECONDS", 0.5)
    faulty.stop()
    started = time.monotonic()
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(StorageUnavailable, match=rf"^{uri}: no good answer for [12] seconds \(the last: .*\)"),
    ):
        storage.read(uri)
    assert time.monotonic() - started < 20
    assert 1 <= len([line for line in caplog.messages if line.startswith(f"{bucket}: no good answer yet")]) <= 3
    faulty.start()


def test_an_answer_that_never_comes_is_not_waited_for(bucket, faulty, short_pauses, monkeypatch):
    uri = f"{bucket}/file"
    monkeypatch.setattr(remote, "READ_SECONDS", 1)
    storage.publish(uri, CONTENT)
    remote._filesystem_of.cache_clear()
    begin(faulty, first("stall", times=1))
    started = time.monotonic()
    assert storage.read(uri) == CONTENT
    assert faulty.happened["stall"] == 1
    assert time.monotonic() - started < 2.9, "the stall was waited out"


def test_a_refusal_is_said_at_once_without_the_key(bucket, faulty):
    uri = f"{bucket}/file"
    storage.publish(uri, CONTENT)
    begin(faulty, lambda request: "forbidden")
    for action in (storage.read, storage.read_mapped, storage.list_files, storage.exists, storage.delete):
        with pytest.raises(StorageError, match=f"^{uri}: permission denied") as said:
            action(uri)
        assert "testkey" not in str(said.value)
    assert faulty.happened["forbidden"] <= 6


def test_a_vanished_bucket_is_said_at_once(bucket):
    mapped = Mapped(f"{bucket}/store", "x", "digest", Shards("x", 1, 1))
    storage.publish(mapped.uri(0), CONTENT)
    s3fs.S3FileSystem().rm(bucket, recursive=True)
    for action in (storage.read, storage.read_mapped, storage.list_files, lambda uri: storage.publish(uri, b"1")):
        with pytest.raises(StorageError, match="bucket does not exist"):
            action(mapped.uri(0))


# Whole runs: inputs, store and results on the faulty server.
HBENCH = GOLDEN / "hbench_classification" / "data"
DISC = GOLDEN / "disc" / "data" / "small"
TABLES = {"hbench-classification": "hbench_classification.csv", "disc2021": "disc_metrics.csv"}


def arguments(benchmark, data, out):
    if benchmark == "disc2021":
        return ("--features", f"{data}/disc", "--codecs", "Flat;PCAW8,L2norm,Flat", "--shard-size", "100", "--out", out)
    images = ("--data", f"{data}/hbench/hpatches", "--benchmarks", f"{data}/hbench/benchmarks")
    return (*images, "--descriptor", "patch_descriptors:Block4", "--shard-size", "16", "--out", out)


INLINE = ("--ray", "off", "--progress", "none")


@pytest.fixture
def inputs(s3, bucket):
    """A bucket with the inputs of both benchmarks."""
    s3.upload(HBENCH / "hpatches", f"{bucket}/hbench/hpatches")
    s3.upload(HBENCH / "benchmarks", f"{bucket}/hbench/benchmarks")
    for name in ("queries.npz", "refs.npz", "train.npz", "val_groundtruth_matches.csv"):
        storage.publish(f"{bucket}/disc/{name}", (DISC / name).read_bytes())
    return bucket


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The tables of runs on disk."""
    from raybench.cli.commands import exit_code

    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "hbench").symlink_to(HBENCH)
    (folder / "disc").symlink_to(DISC)
    tables = {}
    for benchmark, table in TABLES.items():
        given = arguments(benchmark, folder, folder / benchmark)
        assert exit_code(["run", benchmark, *map(str, given), "--ray", "off", "--progress", "none"]) == 0
        tables[benchmark] = (folder / benchmark / table).read_bytes()
    return tables


FAULTS = {
    "slow down": sometimes(0.2, "slow down"),
    "damaged bodies": sometimes(0.2, "reset", "cut", "cut in agreement", "sent in part"),
    "bursts of errors": bursts("error inside", of=8, every=40),
    "stalls": sometimes(0.02, "stall"),
    "everything": sometimes(0.2, "slow down", "error inside", "bad gateway", "reset", "cut", "cut in agreement"),
}
ONE_BY_ONE = [pytest.param(kind, marks=() if kind == "everything" else pytest.mark.slow) for kind in FAULTS]


@pytest.mark.seconds
@pytest.mark.parametrize(
    "benchmark", [pytest.param(name, marks=() if name.startswith("hbench") else pytest.mark.slow) for name in TABLES]
)
@pytest.mark.parametrize("kind", ONE_BY_ONE)
def test_a_run_through_faults_gives_the_same_table(
    raybench, faulty, inputs, undisturbed, short_pauses, kind, benchmark
):
    begin(faulty, FAULTS[kind])
    out = f"{inputs}/out"
    said = raybench("run", benchmark, *arguments(benchmark, inputs, out), *INLINE)
    assert said.code == 0, said.err
    assert faulty.happened.total() > 5, faulty.happened
    faulty.fault = none
    assert storage.read(f"{out}/{TABLES[benchmark]}") == undisturbed[benchmark]


def test_a_store_that_is_away_before_a_run_is_one_clear_line(raybench, faulty, inputs, short_pauses, monkeypatch):
    monkeypatch.setattr(retries, "TRY_SECONDS", 1.0)
    faulty.stop()
    said = raybench("run", "disc2021", *arguments("disc2021", inputs, f"{inputs}/out"), *INLINE)
    only_line(said, inputs, "no good answer for", "then run the same command again")
    faulty.start()


MOMENTS = {
    "a stage is listed": lambda request: "list-type=2" in request.path and "stages" in request.path,
    "receipts are written": lambda request: request.command == "PUT" and "/receipts/" in request.path,
    "tables are written": lambda request: request.command == "PUT" and TABLES["hbench-classification"] in request.path,
}


@pytest.mark.seconds
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_the_driver_itself_asks_of_a_silent_store_is_waited_for(
    raybench, faulty, inputs, undisturbed, short_pauses, monkeypatch, moment
):
    monkeypatch.setattr(retries, "TRY_SECONDS", 0.3)
    silent_from: list[float] = []

    def fault(request):
        if not silent_from and MOMENTS[moment](request):
            silent_from.append(time.monotonic())
        return "slow down" if silent_from and time.monotonic() - silent_from[0] < 1.0 else None

    begin(faulty, fault)
    out = f"{inputs}/silent"
    given = arguments("hbench-classification", inputs, out)
    said = raybench("run", "hbench-classification", *given, *INLINE, "--progress", "json")
    assert said.code == 0, said.err
    assert "waiting for storage" in said.err
    faulty.fault = none
    assert storage.read(f"{out}/hbench_classification.csv") == undisturbed["hbench-classification"]


def driver(benchmark, inputs, *more):
    """A run in a process of its own, which reaches S3 as this one does."""
    given = map(str, [*arguments(benchmark, inputs, f"{inputs}/out"), "--progress", "json", *more])
    command = [sys.executable, "-m", "raybench", "run", benchmark, *given]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


EXECUTORS = [
    pytest.param(("--ray", "off"), id="inline"),
    pytest.param(("--ray", "local", "--cpus", "2", "--device", "cpu"), id="ray", marks=pytest.mark.slow),
]


@pytest.mark.ray(own=True)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("kind", "words"), [("forbidden", "permission denied"), ("no bucket", "the bucket does not exist")]
)
def test_a_store_that_is_closed_mid_run_is_one_clear_line_at_once(faulty, inputs, executor, kind, words):
    begin(faulty, once_published(kind))
    process = driver("disc2021", inputs, *executor)
    _, text = process.communicate(timeout=120)
    only_line(Said(process.returncode, "", text), "s3://", words)
    assert faulty.happened[kind] > 0
    assert '"retried"' not in text
    assert "testkey" not in text and "testsecret" not in text


@pytest.mark.slow
@pytest.mark.ray(own=True)
@pytest.mark.parametrize("benchmark", TABLES)
@pytest.mark.parametrize("kind", ["everything", "stalls"])
def test_a_run_on_ray_through_faults_gives_the_same_table(faulty, inputs, undisturbed, kind, benchmark):
    begin(faulty, FAULTS[kind])
    process = driver(benchmark, inputs, *EXECUTORS[1].values[0])
    _, text = process.communicate(timeout=280)
    assert process.returncode == 0, text
    assert faulty.happened.total() > 5, faulty.happened
    faulty.fault = none
    assert storage.read(f"{inputs}/out/{TABLES[benchmark]}") == undisturbed[benchmark]


@pytest.mark.slow
@pytest.mark.ray(own=True)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_server_that_is_away_for_twenty_seconds_is_waited_for(faulty, inputs, undisturbed, executor):
    published = threading.Event()

    def watch(request):
        if request.command == "PUT" and request.path.endswith(".shard"):
            published.set()

    begin(faulty, watch)
    process = driver("hbench-classification", inputs, *executor)
    assert published.wait(60)
    back = faulty.away(20.0)
    _, text = process.communicate(timeout=200)
    assert not back.is_alive(), f"it ended while the server was away: {text}"
    assert process.returncode == 0, text
    faulty.fault = none
    assert storage.read(f"{inputs}/out/hbench_classification.csv") == undisturbed["hbench-classification"]
