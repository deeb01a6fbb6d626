"""The Ray executor on a real local Ray: same bytes as inline, bounded loading, requeue, and failures that say why."""

import os
import signal
import threading
import time
from collections import Counter

import pytest
from engine_runs import Heard, files, new_run, receipts
from number_stages import Announcing, FaultySink, Gathering, Heavy, MeetingLoads, SlowLast, Squares, Travelling

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.shards import Shards
from raybench.engine.stages import Mapped
from raybench.errors import DataError, ShardFailed, Stalled
from raybench.metrics.partials import Rows


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_bytes_of_inline(executor, tmp_path, workers):
    for name, one in (("inline", InlineExecutor(Observer())), ("ray", executor(cpus=workers))):
        run = new_run(tmp_path / name, one)
        run.fold(run.map(Squares(), 100, 7), Rows)
    assert files(tmp_path / "inline") == files(tmp_path / "ray")
    assert len(files(tmp_path / "ray")) == 15 + 1


def test_with_gpus_loading_and_computing_are_in_different_processes(executor, tmp_path):
    heard = Heard()
    run = new_run(tmp_path, executor(gpus=4, heard=heard), heard)
    run.map(Squares(on_device=True, pause=0.02), 60, 1)
    found = receipts(tmp_path)
    assert len(found) == 60
    assert {receipt["loader"]["pid"] for receipt in found}.isdisjoint(receipt["worker"]["pid"] for receipt in found)
    assert len({receipt["worker"]["actor"] for receipt in found}) == 4
    assert all(receipt["worker"]["device"].startswith("gpu ") for receipt in found)
    assert all(receipt["loader"]["actor"] == "task" for receipt in found)
    assert 4 < heard.most_in_flight < 60


@pytest.mark.parametrize(("cpus", "at_once"), [(None, 5), (3, 3), (1, 1)])
def test_as_many_loads_run_at_once_as_there_are_cpus_or_as_are_asked_for(executor, tmp_path, cpus, at_once):
    new_run(tmp_path / "ray", executor(cpus=cpus, gpus=2)).map(MeetingLoads(str(tmp_path), at_once=at_once), 30, 1)
    assert max(int(file.name.removeprefix("saw-")) for file in tmp_path.glob("saw-*")) == at_once


def test_a_device_actor_that_holds_a_cpu_loads_on_it_while_it_has_nothing_else_to_do(executor, tmp_path, monkeypatch):
    from raybench.engine import ray_core

    monkeypatch.setattr(ray_core, "CPUS_PER_GPU_TO_HOLD", 0)
    run = new_run(tmp_path / "ray", executor(cpus=None, gpus=2))
    run.map(MeetingLoads(str(tmp_path), at_once=5), 30, 1)  # three tasks and two actors, on five CPUs
    found = receipts(tmp_path / "ray")
    workers = {receipt["worker"]["pid"] for receipt in found}
    assert workers == {receipt["loader"]["pid"] for receipt in found if receipt["loader"]["actor"] != "task"}
    assert all(receipt["loader"] == receipt["worker"] for receipt in found if receipt["loader"]["actor"] != "task")
    run.map(Squares(name="behind"), 16, 1)  # on the three CPUs that are left
    assert run.records[-1].workers <= 3


def test_payloads_that_wait_for_a_slow_device_are_bounded_by_their_bytes(executor, tmp_path, monkeypatch):
    from raybench.engine import ray_loads
    from raybench.engine.ray_loads import Machines

    there = Machines.there()
    monkeypatch.setattr(ray_loads, "STORE_SHARE", ray_loads.STORE_SHARE * 35e6 / there.room_bytes)
    assert Machines.there().room_bytes == pytest.approx(35e6)
    new_run(tmp_path / "ray", executor(cpus=5, gpus=1)).map(Heavy(str(tmp_path), pause=0.2), 12, 1)
    # Three payloads of 10 MB have room; the one that is being computed is one of them. Late loads fill less.
    assert 1 <= max(int(file.name.removeprefix("waiting-")) for file in tmp_path.glob("waiting-*")) <= 2


def test_a_stage_travels_once_to_each_process(executor, tmp_path):
    new_run(tmp_path / "ray", executor(cpus=3, gpus=2)).map(Travelling(str(tmp_path), on_device=True), 60, 1)
    arrivals = Counter((tmp_path / "arrivals").read_text().split())
    found = receipts(tmp_path / "ray")
    pids = {receipt[who]["pid"] for receipt in found for who in ("loader", "worker")}
    assert {int(pid) for pid in arrivals} == pids
    assert set(arrivals.values()) == {1}


def published(executor, folder, stage, how="", times=0):
    """Forty numbers in shards of three, through a sink that is faulty at shard 4; receipts, and the files' bytes."""
    shards = Shards(stage.name, 40, 3)
    sink = FaultySink(Mapped(str(folder / "stages"), stage.name, "digest", shards), str(folder.parent), 4, how, times)
    return {receipt.index: receipt for receipt in executor.map(stage, shards, sink)}, files(folder)


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_publish_that_fails_is_its_shards_own_failure_and_tried_again(executor, tmp_path, gpus):
    heard = Heard()
    stage = Squares(on_device=gpus > 0)
    found, written = published(executor(gpus=gpus, heard=heard), tmp_path / "ray", stage, "fail", times=2)
    assert {index: receipt.attempt for index, receipt in found.items() if receipt.attempt > 1} == {4: 3}
    assert heard.retries == {"error": 2}
    assert written == published(InlineExecutor(Observer()), tmp_path / "inline", stage)[1]


def test_a_publish_that_fails_three_times_names_its_shard(executor, tmp_path):
    with pytest.raises(ShardFailed, match=r"shard 4 \(numbers 12\.\.14\) failed 3 times.*OSError: the disk is full"):
        published(executor(), tmp_path / "ray", Squares(), "fail", times=99)


def test_an_actor_killed_while_it_publishes_changes_no_byte(executor, tmp_path):
    heard = Heard()
    thread = threading.Thread(target=kill_who_is_here, args=[tmp_path], daemon=True)
    thread.start()
    found, written = published(executor(heard=heard), tmp_path / "ray", Squares(), "wait")
    thread.join()
    assert int((tmp_path / "gone").read_text()) != found[4].worker.pid
    assert heard.retries["actor_died"] == 1
    assert written == published(InlineExecutor(Observer()), tmp_path / "inline", Squares())[1]


def kill_who_is_here(folder):
    """Wait until a process announces itself in a folder, and end it."""
    while not (folder / "here").exists():
        time.sleep(0.01)
    os.kill(int((folder / "here").read_text()), signal.SIGKILL)
    (folder / "here").rename(folder / "gone")


def test_without_gpus_load_is_fused_into_the_actor(executor, tmp_path):
    new_run(tmp_path, executor(cpus=2)).map(Squares(), 20, 1)
    found = receipts(tmp_path)
    assert all(receipt["loader"] == receipt["worker"] for receipt in found)
    assert {receipt["worker"]["device"] for receipt in found} == {"cpu"}
    assert all(receipt["worker"]["node"] and receipt["worker"]["pid"] for receipt in found)


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_worker_that_dies_once_costs_nothing_but_time(executor, tmp_path, gpus):
    heard = Heard()
    run = new_run(tmp_path / "ray", executor(cpus=2, gpus=gpus, heard=heard), heard)
    run.map(Squares(str(tmp_path), at=13, how="die", times=1, on_device=gpus > 0), 40, 3)
    undisturbed = new_run(tmp_path / "inline", InlineExecutor(Observer()))
    undisturbed.map(Squares(how="die", on_device=gpus > 0), 40, 3)
    assert (tmp_path / "die").read_text() == "xx", "the worker did not die"
    assert heard.retries["actor_died"] == 1
    assert files(tmp_path / "ray") == files(tmp_path / "inline")
    assert {receipt["index"]: receipt["attempt"] + receipt["lost"] for receipt in receipts(tmp_path / "ray")}[4] == 2
    assert run.records[-1].attempts == 14, "of shards that were together with others none is blamed"


def test_a_worker_that_always_dies_at_one_shard_fails_that_shard_and_no_other(executor, tmp_path):
    """Once among others, which makes suspects of them, and three times alone, though others wait for an actor, too."""
    run = new_run(tmp_path / "ray", executor(cpus=2))
    with pytest.raises(ShardFailed, match=r"shard 13 \(numbers 13\.\.13\) failed 3 times.*worker process died"):
        run.map(Squares(str(tmp_path), at=13, how="die", pause=0.05), 1000, 1)
    assert (tmp_path / "die").read_text() == "xxxx"
    assert len(files(tmp_path / "ray")) < 999, "it was found out before all others were done"


def test_a_stage_that_fails_three_times_names_its_keys_and_cause(executor, tmp_path):
    heard = Heard()
    run = new_run(tmp_path / "ray", executor(heard=heard), heard)
    with pytest.raises(
        ShardFailed, match=r"squares, shard 4 \(numbers 12\.\.14\).*RuntimeError: the network fell over"
    ):
        run.map(Squares(str(tmp_path), at=13, how="fail"), 40, 3)
    assert heard.retries["error"] == 2


def test_a_stage_that_fails_twice_succeeds_at_the_third_attempt(executor, tmp_path):
    run = new_run(tmp_path / "ray", executor())
    run.map(Squares(str(tmp_path), at=13, how="fail", times=2), 40, 3)
    assert {receipt["index"]: receipt["attempt"] for receipt in receipts(tmp_path / "ray")}[4] == 3


@pytest.mark.parametrize("gpus", [0, 2])
def test_bad_data_is_said_at_once_and_not_tried_again(executor, tmp_path, gpus):
    run = new_run(tmp_path / "ray", executor(gpus=gpus))
    with pytest.raises(DataError, match=r"item\.csv: line 3"):
        run.map(Squares(str(tmp_path), at=13, how="data", on_device=gpus > 0), 40, 3)
    assert (tmp_path / "data").read_text() == "x"


def test_a_broken_shard_found_by_an_actor_is_mapped_again(executor, tmp_path):
    run = new_run(tmp_path, executor())
    mapped = run.map(Squares(), 40, 3)
    before = files(tmp_path)
    broken = tmp_path / "stages" / mapped.digest / "000005.shard"
    broken.write_bytes(broken.read_bytes()[:-10])
    folded = run.fold(mapped, Rows)
    assert run.read(folded, 0)["values"].tolist() == [float(i * i) for i in range(40)]
    assert {name: data for name, data in files(tmp_path).items() if name in before} == before
    assert run.records[-1].repaired == 1


def test_an_actor_killed_from_outside_mid_shard_is_replaced(executor, tmp_path):
    """The kill is real: the test waits until a worker is inside a shard, then sends SIGKILL to that process."""
    heard = Heard()
    run = new_run(tmp_path / "ray", executor(cpus=2, heard=heard), heard)
    thread = threading.Thread(target=kill_who_is_here, args=[tmp_path], daemon=True)
    thread.start()
    run.map(Announcing(str(tmp_path)), 30, 2)
    thread.join()
    worked = {receipt["worker"]["pid"] for receipt in receipts(tmp_path / "ray") if receipt["index"] == 3}
    assert int((tmp_path / "gone").read_text()) not in worked
    assert heard.retries["actor_died"] == 1


def test_two_gpu_stages_and_cpu_stages_take_turns_without_a_stall(executor, tmp_path):
    run = new_run(tmp_path, executor(cpus=4, gpus=8))
    run.map(Squares(name="a"), 16, 1)
    run.map(Squares(name="b", on_device=True), 16, 1)
    run.map(Squares(name="c", how="other"), 16, 1)
    assert [record.computed for record in run.records] == [16, 16, 16]


def test_actors_that_died_while_idle_are_replaced_and_nobody_is_blamed(executor, tmp_path):
    run = new_run(tmp_path, executor(cpus=4))
    run.map(Squares(name="a", pause=0.05), 16, 1)
    for pid in {receipt["worker"]["pid"] for receipt in receipts(tmp_path)}:
        os.kill(pid, signal.SIGKILL)
    run.map(Squares(name="b", how="other"), 1, 1)
    assert run.records[-1].attempts == 1


def test_actors_that_a_stage_does_not_need_are_ended_once_they_were_idle(executor, tmp_path, monkeypatch):
    """So that a fold of one shard does not keep a whole cluster; where nodes do not go they are kept."""
    from raybench.engine import ray_flow

    monkeypatch.setattr(ray_flow, "LOOK_EVERY_SECONDS", 0.1)
    for idle_seconds, kept in ((0.2, 1), (float("inf"), 4)):
        by, folder = executor(cpus=4, idle_seconds=idle_seconds), tmp_path / str(kept)
        folder.mkdir()
        run = new_run(folder, by)
        run.map(Gathering(str(folder), name="wide", at_once=4), 16, 1)
        run.map(Squares(name="narrow", how="other", pause=3.0), 1, 1)
        assert len(by._cpu_pool.seats) == kept
        run.map(Gathering(str(folder), name="wide again", how="again", at_once=4), 16, 1)
        by.close()


def test_device_actors_are_ended_while_a_stage_of_cpus_goes_on(executor, tmp_path, monkeypatch):
    from raybench.engine import ray_flow

    monkeypatch.setattr(ray_flow, "LOOK_EVERY_SECONDS", 0.1)
    by = executor(cpus=2, gpus=4, idle_seconds=0.5)
    run = new_run(tmp_path, by)
    run.map(Gathering(str(tmp_path), name="describe", on_device=True, at_once=4), 16, 1)
    run.map(Squares(name="measure", pause=3.0), 1, 1)
    assert not by._gpu_pool.seats
    run.map(Gathering(str(tmp_path), name="describe again", how="again", on_device=True, at_once=4), 16, 1)


def test_an_actor_at_work_is_never_ended_and_at_the_tail_idle_ones_are(executor, tmp_path, monkeypatch):
    from raybench.engine import ray_flow

    monkeypatch.setattr(ray_flow, "LOOK_EVERY_SECONDS", 0.1)
    heard = Heard()
    by = executor(cpus=4, idle_seconds=0.3, heard=heard)
    run = new_run(tmp_path, by, heard)
    run.map(SlowLast(), 16, 1)
    # As many stay as shards are left: the last, and those that wait behind it in the same actor.
    assert len(by._cpu_pool.seats) < 4, "there were idle ones while the last shard was computed"
    assert run.records[-1].attempts == 16
    assert not heard.retries


def test_gpus_of_a_kind_that_no_node_has_are_waited_for_in_words(executor, tmp_path, monkeypatch):
    from raybench.engine import patience

    monkeypatch.setattr(patience, "SAY_EVERY_SECONDS", 2.0)
    heard = Heard()
    by = executor(gpus=1, heard=heard, accelerators=("T4", "L4"), patience_seconds=6.0)  # in which an actor would be up
    words = "GPUs: 0 of 1 are up; asked for T4 or L4, the cluster has a kind unknown to Ray"
    with pytest.raises(Stalled, match=words):
        new_run(tmp_path, by, heard).map(Squares(on_device=True), 4, 1)
    assert any(f"waiting for {words}" in message for message in heard.messages)


@pytest.mark.parametrize("insist", [True, False])
def test_an_actor_that_waits_in_vain_asks_for_another_kind_of_node(local_ray, tmp_path, monkeypatch, insist):
    from raybench.engine import ray_core, ray_flow, ray_pool

    monkeypatch.setattr(ray_core, "SAY_EVERY_SECONDS", 0.3)
    monkeypatch.setattr(ray_flow, "LOOK_EVERY_SECONDS", 0.3)
    monkeypatch.setattr(ray_pool, "ELSEWHERE_AFTER_SECONDS", 0.5)
    (here,) = {node["NodeID"] for node in local_ray.nodes() if node["Alive"]}
    elsewhere = [{"ray.io/market-type": "spot"}, {"ray.io/node-id": here}]
    by = ray_core.RayExecutor(Heard(), 2, 2, insist, owned=False, accelerators=("T4",), elsewhere=elsewhere)
    run = new_run(tmp_path, by)
    run.map(Squares(on_device=True), 8, 1)
    assert {seat.choice for seat in by._gpu_pool.seats if seat.given} == {2}
    by.close()
