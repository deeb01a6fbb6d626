"""One driver per output folder: a second is refused and told of the first, and a dead one is in nobody's way."""

import dataclasses
import json
import os
import signal
import socket
import threading
import time
import uuid
from contextlib import contextmanager

import pytest
from conftest import GOLDEN
from drivers import Driver, Stop, results, run

from raybench import storage
from raybench.errors import FolderInUse
from raybench.runs import driving as module
from raybench.runs.driving import FILE_NAME, driving
from raybench.runs.leases import Lease

HBENCH = GOLDEN / "hbench_classification/data"
GIVEN = ("run", "hbench-classification", "--benchmarks", HBENCH / "benchmarks", "--ray", "off", "--shard-size", "4")
GIVEN += ("--data", HBENCH / "hpatches", "--descriptor", "patch_descriptors:Block4")
MID_EXTRACT = Stop("raybench.engine.stages:publish_shard", "extract", 3)


@pytest.fixture
def said():
    return []


@pytest.fixture
def memory():
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def short_lease(monkeypatch):
    monkeypatch.setattr(module, "RENEWED_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(module, "DEAD_AFTER_SECONDS", 0.6)
    monkeypatch.setattr(module, "LOOK_EVERY_SECONDS", 0.02)


def elsewhere(**changes):
    """The lease of a driver on another machine."""
    return dataclasses.replace(Lease.of_this_process(), host="far", pid=7, machine="another", **changes)


@contextmanager
def renewed(uri, lease):
    """A driver on another machine that lives."""
    ended = threading.Event()

    def renew():
        while not ended.wait(0.05):
            storage.publish(uri, lease.again().to_bytes())

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.slow)])
def out(request, tmp_path):
    """An output folder on disk, and on an object store."""
    if request.param == "disk":
        return str(tmp_path / "out")
    return request.getfixturevalue("s3").bucket(f"driving-{uuid.uuid4().hex[:8]}") + "/out"


def test_a_second_driver_is_refused_and_told_of_the_first_which_goes_on(out, tmp_path):
    first = Driver((*GIVEN, "--out", out), tmp_path / "meeting", MID_EXTRACT)
    first.wait_until_stopped()
    code, errors = run((*GIVEN, "--out", out))
    assert code == 2
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert f"{out}: another driver is at work there (process {first.pid} on {socket.gethostname()}, since " in lines[0]
    assert ("waiting" in errors) == out.startswith("s3://")  # on disk the kernel knows at once
    first.go_on()
    assert first.ended()[0] == 0
    assert not storage.exists(storage.join(out, FILE_NAME))
    assert "done already" in run((*GIVEN, "--out", out))[1]


def test_a_killed_driver_of_this_machine_is_in_nobodys_way_not_even_for_a_second(out, tmp_path):
    first = Driver((*GIVEN, "--out", out), tmp_path / "meeting", MID_EXTRACT)
    first.wait_until_stopped()
    first.process.send_signal(signal.SIGKILL)
    first.ended()
    assert storage.exists(storage.join(out, FILE_NAME))
    code, errors = run((*GIVEN, "--out", out))
    assert code == 0
    assert "waiting" not in errors
    assert not storage.exists(storage.join(out, FILE_NAME))


def test_a_lease_that_another_host_renews_is_respected(memory, said, short_lease):
    lease = elsewhere()
    storage.publish(f"{memory}/{FILE_NAME}", lease.to_bytes())
    refused = pytest.raises(FolderInUse, match=r"\(process 7 on far, since 20")
    with renewed(f"{memory}/{FILE_NAME}", lease), refused, driving(memory, said.append):
        pytest.fail("two drivers at once")
    assert "waiting" in said[0]


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_lease_that_another_host_renews_no_longer_is_taken_over_and_said(
    on_disk, memory, tmp_path, said, short_lease
):
    out = str(tmp_path / "out") if on_disk else memory
    storage.publish(f"{out}/{FILE_NAME}", elsewhere().to_bytes())
    with driving(out, said.append):
        assert Lease.read(storage.read(f"{out}/{FILE_NAME}")).pid == os.getpid()
    assert [line.partition(": ")[2].split(" ")[0] for line in said] == ["waiting", "its"]
    assert "is gone (process 7 on far" in said[1]


def test_nobody_waits_for_a_driver_of_this_host_whose_lock_is_gone(tmp_path, said):
    lease = dataclasses.replace(elsewhere(), host=socket.gethostname())
    storage.publish(str(tmp_path / FILE_NAME), lease.to_bytes())
    with driving(str(tmp_path), said.append):
        assert said == []


def test_nobody_waits_for_an_old_lease(memory, said):
    then = time.time() - 2 * module.OLD_SECONDS
    storage.publish(f"{memory}/{FILE_NAME}", elsewhere(since=then, renewed=then).to_bytes())
    with driving(memory, said.append):
        assert len(said) == 1
        assert "this one takes over" in said[0]


def test_a_lease_is_renewed_while_its_driver_works(memory, said, short_lease):
    with driving(memory, said.append):
        first = Lease.read(storage.read(f"{memory}/{FILE_NAME}"))
        deadline = time.monotonic() + 20
        while Lease.read(storage.read(f"{memory}/{FILE_NAME}")).renewed == first.renewed:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not storage.exists(f"{memory}/{FILE_NAME}")


def test_a_driver_that_was_taken_over_says_so_and_leaves_the_others_lease(memory, said, short_lease):
    with driving(memory, said.append):
        storage.publish(f"{memory}/{FILE_NAME}", elsewhere().to_bytes())
        deadline = time.monotonic() + 20
        while not said:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert "another driver took it over (process 7 on far" in said[0]
    assert Lease.read(storage.read(f"{memory}/{FILE_NAME}")).pid == 7


def test_a_process_that_has_the_number_of_a_dead_driver_is_not_taken_for_it():
    lease = Lease.of_this_process()
    assert not lease.is_surely_dead
    assert dataclasses.replace(lease, started="1").is_surely_dead


NO_LEASES = [{"since": 1e300}, {"since": -1e18}, {"since": "today"}, {"renewed": None}, {"pid": "../1"}]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'{"host": 1}', b"\xff", b"[" * 9_999),
        *(dataclasses.replace(elsewhere(), **wrong).to_bytes() for wrong in NO_LEASES),
    ],
)
def test_a_lease_that_is_none_blocks_nobody(content, tmp_path, said):
    (tmp_path / FILE_NAME).write_bytes(content)
    with driving(str(tmp_path), said.append):
        assert said == []


def test_a_finished_run_is_found_done_while_somebody_drives(raybench, tmp_path, said):
    assert raybench(*GIVEN, "--out", tmp_path / "out").code == 0
    with driving(str(tmp_path / "out"), said.append):
        assert "done already" in raybench(*GIVEN, "--out", tmp_path / "out").err
        assert raybench(*GIVEN, "--out", tmp_path / "out", "--overwrite").code == 2


def test_a_folder_in_which_nothing_was_done_is_not_left(tmp_path, said):
    with driving(str(tmp_path / "new"), said.append):
        assert (tmp_path / "new" / FILE_NAME).exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("ray", ["off", pytest.param("local", marks=[pytest.mark.slow, pytest.mark.ray(own=True)])])
def test_two_drivers_over_one_store_are_both_right(ray, tmp_path):
    def given(out, store):
        return (*GIVEN, "--ray", ray, "--device", "cpu", "--out", tmp_path / out, "--store", tmp_path / store)

    assert run(given("alone", "own"))[0] == 0
    first = Driver(given("a", "store"), tmp_path / "at a", MID_EXTRACT)
    first.wait_until_stopped()  # it has published some shards of a stage that both need, and has one in its hands
    second = Driver(given("b", "store"), tmp_path / "at b", Stop(MID_EXTRACT.function, "pairs", 5))
    second.wait_until_stopped()
    first.go_on()
    first_code, first_said = first.ended()
    second.go_on()
    second_code, second_said = second.ended()
    assert (first_code, second_code) == (0, 0), first_said + second_said
    assert results(tmp_path / "a") == results(tmp_path / "b") == results(tmp_path / "alone")
    assert results(tmp_path / "store") == results(tmp_path / "own")
    shared = json.loads((tmp_path / "b/manifest.json").read_text())["stages"]
    assert any(stage["found"] for stage in shared), "they did not meet in the store"
