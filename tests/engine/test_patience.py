"""How long a run waits, what it says meanwhile, and how it stops; and the option that says so."""

import json

import pytest
from conftest import only_line
from number_stages import Unavailable

from raybench.engine import patience
from raybench.engine.inline import InlineExecutor
from raybench.engine.patience import Patience, pause_before
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.shards import Shards
from raybench.engine.waiting import Waiting
from raybench.errors import Stalled


class Heard(Observer):
    def __init__(self):
        self.messages, self.retries = [], []

    def said(self, message):
        self.messages.append(message)

    def retried(self, stage, cause):
        self.retries.append(cause)


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when the test, or a sleep, says so."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds

    made = Clock()
    monkeypatch.setattr(patience.time, "monotonic", made.monotonic)
    monkeypatch.setattr(patience.time, "sleep", made.sleep)
    return made


def test_what_is_waited_for_is_said_now_and_then_and_ends_the_run_at_last(clock):
    heard = Heard()
    waiting = Patience("extract", 60.0, heard)
    for _ in range(59):
        clock.now += 1.0
        waiting.wait_for("gpu actors: 0 of 2 are up")
    assert len(heard.messages) == 3
    assert heard.messages[0] == (
        "extract: waiting for gpu actors: 0 of 2 are up (nothing published for 15 s; --patience ends it after 60 s)"
    )
    clock.now += 1.0
    with pytest.raises(Stalled, match=r"stage extract: nothing was published for 60 s \(--patience\).*0 of 2 are up"):
        waiting.wait_for("gpu actors: 0 of 2 are up")


def test_a_published_shard_gives_all_the_time_again(clock):
    heard = Heard()
    waiting = Patience("extract", 60.0, heard)
    for _ in range(10):
        clock.now += 50.0
        waiting.progressed()
        clock.now += 10.0
        waiting.wait_for("storage")
    assert not heard.messages


def test_what_is_at_work_is_waited_for_in_silence(clock):
    heard = Heard()
    waiting = Patience("extract", 60.0, heard)
    clock.now += 59.0
    waiting.wait_for("2 shards", loud=False)
    assert not heard.messages
    clock.now += 1.0
    with pytest.raises(Stalled):
        waiting.wait_for("2 shards", loud=False)


def test_pauses_grow_up_to_a_minute():
    assert [pause_before(again) for again in (1, 2, 3, 7, 100)] == [1.0, 2.0, 4.0, 60.0, 60.0]


def test_a_shard_that_waits_for_storage_is_not_in_the_way_of_others(clock):
    shards = Shards("squares", 3, 1)
    waiting = Waiting(shards)
    first = waiting.take()
    waiting.after(10.0, first)
    assert (len(waiting), waiting.paused) == (2, 1)
    assert [waiting.take().index for _ in range(2)] == [1, 2]
    assert not waiting
    clock.now += 10.0
    assert (len(waiting), waiting.paused) == (1, 0)
    assert waiting.take().index == 0


def test_without_ray_storage_that_comes_back_costs_nothing_but_time(tmp_path, clock):
    heard = Heard()
    run = Run(str(tmp_path), str(tmp_path / "stages"), InlineExecutor(heard), heard)
    run.map(Unavailable(str(tmp_path), at=13, times=7), 40, 3)
    assert (run.records[-1].attempts, run.records[-1].computed) == (14, 14)
    assert heard.retries == ["storage"] * 7
    assert any("waiting for storage: s3://bucket: no answer" in message for message in heard.messages)


def test_without_ray_storage_that_stays_away_ends_the_run_when_patience_does(tmp_path, clock):
    run = Run(str(tmp_path), str(tmp_path / "stages"), InlineExecutor(Heard(), patience_seconds=300.0), Heard())
    began = clock.now
    with pytest.raises(Stalled, match=r"nothing was published for 5 min.*storage: s3://bucket: no answer"):
        run.map(Unavailable(str(tmp_path), at=13), 40, 3)
    assert clock.now - began == pytest.approx(300.0)


@pytest.mark.parametrize("value", ["soon", "0", "-5", "5 weeks", "", "1h30m", "inf"])
def test_a_patience_that_is_no_duration_is_one_clear_line_before_anything_starts(raybench, golden, tmp_path, value):
    given = ("check", "hbench-classification", "--results", golden / "results/block4", "--ray", "off")
    said = raybench(*given, "--benchmarks", golden / "benchmarks", "--out", tmp_path / "out", f"--patience={value}")
    only_line(said, f"--patience {value}", "90s, 15m or 1h")


def test_another_patience_resumes_the_same_run(raybench, golden, tmp_path):
    given = ("run", "hbench-classification", "--results", golden / "results/block4", "--ray", "off")
    given += ("--benchmarks", golden / "benchmarks", "--out", tmp_path / "out")
    assert raybench(*given, "--patience", "15m").code == 0
    assert json.loads((tmp_path / "out/manifest.json").read_text())["execution"]["patience"] == "15m"
    assert "done already" in raybench(*given, "--patience", "90").err


def test_help_says_what_patience_is(raybench):
    said = raybench("run", "hbench-classification", "--help")
    assert "--patience DURATION" in said.out
    assert "exit code 3" in " ".join(said.out.split())
