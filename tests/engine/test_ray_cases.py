"""Whose fault it is on a real local Ray: workers that die, do not answer, or never start; storage; and patience."""

import os
import signal
import time

import pytest
from engine_runs import Heard, files, new_run, receipts
from number_stages import DyingLoads, FaultySink, Squares, Unavailable

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.shards import Shards
from raybench.engine.stages import Mapped
from raybench.errors import ShardFailed, Stalled


@pytest.fixture
def judged(executor):
    """Cases over a pool of one actor that is up, the actor's seat, and a shard."""
    import ray

    from raybench.engine.ray_cases import Cases

    one = executor(cpus=1)
    one._cpu_pool.grow_to(1)
    (seat,) = one._cpu_pool.seats
    seat.node, place = ray.get(seat.ready)
    return Cases("squares", one._cpu_pool, one._nodes), seat, place, Shards("squares", 40, 3)


def closed(cases, seconds=30):
    """The verdict, once there is one."""
    deadline = time.monotonic() + seconds
    while not (found := list(cases.closed())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found[0]


def test_an_actor_that_was_only_unavailable_answers_again_and_keeps_its_seat(judged):
    import ray
    from ray.exceptions import ActorUnavailableError

    cases, seat, _, shards = judged
    cases.open_for(seat, shards[4], ActorUnavailableError("Socket closed", None))
    assert seat in cases
    assert not list(cases.closed()), "its fate is open until it answers"
    cases.ask()
    (question,) = cases.questions
    ray.wait([question], timeout=30)
    case = cases.hear_answer(question)
    assert case.shards == [shards[4]]
    assert seat not in cases
    assert cases._pool.seats == [seat]


def test_an_actor_that_does_not_answer_is_not_ended_as_idle(judged):
    from ray.exceptions import ActorUnavailableError

    cases, seat, _, shards = judged
    cases.open_for(seat, shards[4], ActorUnavailableError("Socket closed", None))
    cases._pool.shrink_to(0, idle_seconds=0.0)
    assert cases._pool.seats == [seat], "who ends it has it found dead, and the shard blamed"
    cases.ask()
    (question,) = cases.questions
    assert cases.hear_answer(question) is not None
    cases._pool.shrink_to(0, idle_seconds=0.0)
    assert cases._pool.seats == []


def test_an_actor_found_dead_after_it_was_unavailable_is_judged_as_any_other(judged):
    import ray
    from ray.exceptions import ActorUnavailableError

    from raybench.engine.blame import Fault

    cases, seat, place, shards = judged
    os.kill(place.pid, signal.SIGKILL)
    cases.open_for(seat, shards[4], ActorUnavailableError("Socket closed", None))
    deadline = time.monotonic() + 30
    while seat in cases._pool.seats:
        assert time.monotonic() < deadline
        cases.ask()
        ray.wait(cases.questions, timeout=30)
        for question in cases.questions:
            assert cases.hear_answer(question) is None
    case, fault = closed(cases)
    assert (case.shards, fault) == ([shards[4]], Fault.OWN)


@pytest.mark.parametrize("together", [1, 2])
def test_a_worker_killed_for_want_of_memory_is_replaced_and_its_shard_blamed_if_alone(judged, together):
    from ray.exceptions import OutOfMemoryError

    from raybench.engine.blame import Fault

    cases, seat, _, shards = judged
    for shard in range(together):
        cases.open_for(seat, shards[shard], OutOfMemoryError("Task was killed due to the node running low on memory"))
    assert seat not in cases._pool.seats
    case, fault = closed(cases, seconds=0)
    assert fault is (Fault.OWN if together == 1 else Fault.SUSPECTS)
    assert "OutOfMemoryError" in case.failure.cause


class Deadly(str):
    """Words that end the process in which they arrive."""

    def __reduce__(self):
        return os._exit, (1,)


def test_actors_that_die_as_they_start_on_a_node_that_stays_end_the_run(executor, tmp_path):
    one = executor(cpus=1)
    one._cpu_pool.device = Deadly("cpu")
    with pytest.raises(ShardFailed, match="stage squares: actors die as they start; the last: ActorDiedError"):
        new_run(tmp_path, one).map(Squares(), 40, 3)


def test_actors_that_die_as_they_start_are_not_counted_while_nodes_are_lost(judged):
    from ray.exceptions import ActorDiedError

    cases, seat, _, _ = judged
    cases._nodes._lost["another"] = time.monotonic()
    for _ in range(10):
        cases.failed_start(cases._pool.seats[0], ActorDiedError())
    assert seat not in cases._pool.seats
    assert cases._pool.seats[0].failed_starts == 0


def test_an_answer_given_before_its_actor_died_is_kept_though_it_is_heard_later(executor, tmp_path, monkeypatch):
    """One shard waits while it is published, another is done; the driver hears of kill and answer at once."""
    import ray

    from raybench.engine.ray_flow import Flow

    wait = Flow._wait

    def wait_for_both(flow):
        if len(flow._at_work) == 2 and not (tmp_path / "gone").exists():
            while not (tmp_path / "here").exists() or not (tmp_path / "ray/stages/digest/000001.shard").exists():
                time.sleep(0.01)
            ray.wait(list(flow._at_work), timeout=30)  # the answer is there
            os.kill(int((tmp_path / "here").read_text()), signal.SIGKILL)
            (tmp_path / "here").rename(tmp_path / "gone")
            done, _ = ray.wait(list(flow._at_work), num_returns=2, timeout=30)
            assert len(done) == 2
        return wait(flow)

    monkeypatch.setattr(Flow, "_wait", wait_for_both)
    shards = Shards("squares", 6, 1)
    sink = FaultySink(Mapped(str(tmp_path / "ray/stages"), "squares", "digest", shards), str(tmp_path), 0, "wait")
    found = {receipt.index: receipt for receipt in executor(cpus=1).map(Squares(), shards, sink)}
    assert (tmp_path / "gone").exists(), "nobody was killed"
    assert {index: (receipt.attempt, receipt.lost) for index, receipt in found.items()} == {
        0: (2, 0),  # it was alone: the other had its answer
        **dict.fromkeys(range(1, 6), (1, 0)),
    }
    assert found[1].worker.pid == int((tmp_path / "gone").read_text())


def test_a_load_that_ends_its_process_is_its_shards_own_failure(executor, tmp_path):
    run = new_run(tmp_path / "ray", executor(cpus=2, gpus=1))
    run.map(DyingLoads(str(tmp_path), at=13, times=2), 40, 3)
    assert {receipt["index"]: receipt["attempt"] for receipt in receipts(tmp_path / "ray")}[4] == 3
    assert run.records[-1].lost == 0
    assert (tmp_path / "load").read_text() == "xxx"


def test_a_load_that_always_ends_its_process_names_its_shard(executor, tmp_path):
    run = new_run(tmp_path / "ray", executor(cpus=2, gpus=1))
    with pytest.raises(ShardFailed, match=r"shard 4 \(numbers 12\.\.14\) failed 3 times.*process died"):
        run.map(DyingLoads(str(tmp_path), at=13), 40, 3)
    assert (tmp_path / "load").read_text() == "xxx"


@pytest.mark.parametrize("gpus", [0, 2])
def test_storage_that_comes_back_costs_nothing_but_time(executor, tmp_path, gpus):
    heard = Heard()
    run = new_run(tmp_path / "ray", executor(gpus=gpus, heard=heard), heard)
    run.map(Unavailable(str(tmp_path), at=13, times=3, on_device=gpus > 0), 40, 3)
    assert (run.records[-1].attempts, run.records[-1].lost) == (14, 0)
    assert heard.retries == {"storage": 3}
    assert any("waiting for storage: s3://bucket: no answer" in message for message in heard.messages)
    undisturbed = new_run(tmp_path / "inline", InlineExecutor(Observer()))
    undisturbed.map(Unavailable(on_device=gpus > 0), 40, 3)
    assert files(tmp_path / "ray") == files(tmp_path / "inline")


def test_storage_that_stays_away_ends_the_run_when_patience_does(executor, tmp_path):
    one = executor()
    one._patience_seconds = 4.0
    run = new_run(tmp_path, one)
    with pytest.raises(Stalled, match=r"nothing was published for 4 s.*storage: s3://bucket: no answer"):
        run.map(Unavailable(str(tmp_path), at=13), 40, 3)
    assert len(files(tmp_path)) == 13, "the others went on meanwhile"


def test_gpus_that_do_not_come_end_the_run_when_patience_does(executor, tmp_path, monkeypatch):
    from raybench.engine import patience

    monkeypatch.setattr(patience, "SAY_EVERY_SECONDS", 2.0)
    heard = Heard()
    one = executor(gpus=9, heard=heard)  # of eight
    one._patience_seconds = 12.0
    with pytest.raises(Stalled, match=r"nothing was published for 12 s.*GPUs: 8 of 9 are up"):
        new_run(tmp_path, one).map(Squares(on_device=True), 40, 3)
    assert any("waiting for GPUs: 8 of 9 are up (nothing published for" in message for message in heard.messages)
