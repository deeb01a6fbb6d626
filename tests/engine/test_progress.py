"""What a person sees: JSON lines in a log, a bar on a terminal, nothing if asked for nothing."""

import contextlib
import io
import json
import os
import sys
import threading
import time

import pytest

from raybench.engine import progress as module
from raybench.engine.progress import JsonLines, Observer, Observers, Pace, progress
from raybench.engine.progress_bar import Bar
from raybench.engine.stages import Place, Receipt


def receipt(index: int, items: int = 10) -> Receipt:
    here = Place.here()
    return Receipt("extract", index, items, items, 100, here, here, 0.0, 1.0, 0.1, 0.2, 0.3)


def told(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def terminal():
    """A real pseudo-terminal: a text file to write to, and a function that closes it and tells what it showed."""
    reading, writing = os.openpty()
    shown: list[bytes] = []

    def drain() -> None:
        # A terminal that nobody reads blocks its writer; when the writer's end is closed, reading it is an OSError.
        with contextlib.suppress(OSError):
            while data := os.read(reading, 4096):
                shown.append(data)

    reader = threading.Thread(target=drain)
    reader.start()
    stream = os.fdopen(writing, "w")

    def finish() -> str:
        stream.close()
        reader.join()
        return b"".join(shown).decode()

    yield stream, finish
    finish()
    os.close(reading)


def test_a_stage_is_told_when_it_starts_and_ends():
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.stage_started("extract", 4, 1)
    for index in range(3):
        lines.published(receipt(index))
    lines.stage_ended("extract")
    started, ended = told(stream)
    assert started == {"event": "stage_started", "stage": "extract", "shards": 4, "found": 1}
    assert (ended["event"], ended["done"], ended["shards"], ended["seconds_left"]) == ("stage_ended", 4, 4, 0.0)


def test_progress_is_told_with_rate_and_time_left(monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY_SECONDS", 0.0)
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.stage_started("extract", 4, 1)
    time.sleep(0.02)
    lines.published(receipt(1))
    (line,) = told(stream)[1:]
    assert (line["event"], line["stage"], line["done"]) == ("progress", "extract", 2)
    assert line["items_per_second"] == pytest.approx(10 / line["seconds"], rel=0.1)
    assert line["seconds_left"] == pytest.approx(2 * line["seconds"], abs=0.06)


def test_a_log_is_not_flooded_with_a_line_a_shard():
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.stage_started("extract", 100, 0)
    for index in range(100):
        lines.published(receipt(index))
    assert len(told(stream)) == 1


def test_retries_and_messages_are_told_at_once():
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.retried("extract", "actor_died")
    lines.said('a "quoted"\nmessage')
    assert told(stream) == [
        {"event": "retried", "stage": "extract", "cause": "actor_died"},
        {"event": "message", "message": 'a "quoted"\nmessage'},
    ]


def test_the_rate_is_items_a_second_since_the_stage_started():
    pace = Pace(10, 0)
    pace.add(receipt(0, 7))
    pace.add(receipt(1, 8))
    time.sleep(0.02)
    before, rate, after = pace.seconds, pace.rate, pace.seconds
    assert 15 / after <= rate <= 15 / before


def test_the_time_left_counts_only_shards_that_were_computed():
    pace = Pace(10, 6)
    pace.add(receipt(0))
    time.sleep(0.02)
    before, left, after = pace.seconds, pace.seconds_left, pace.seconds
    assert 3 * before <= left <= 3 * after


def test_the_time_left_is_unknown_before_the_first_shard():
    assert Pace(10, 6).seconds_left is None


def test_auto_is_a_bar_on_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal[0])
    assert isinstance(progress("auto"), Bar)


def test_auto_is_json_lines_elsewhere(tmp_path, monkeypatch):
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", log)
        assert isinstance(progress("auto"), JsonLines)


@pytest.mark.parametrize(("kind", "observer"), [("bar", Bar), ("json", JsonLines), ("none", Observer)])
def test_a_kind_that_was_asked_for_is_given(kind, observer):
    assert type(progress(kind)) is observer


def test_the_bar_shows_stage_count_and_retries_and_leaves_messages(terminal, monkeypatch):
    stream, finish = terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", stream)
    bar = Bar()
    bar.stage_started("extract", 4, 1)
    bar.retried("extract", "error")
    bar.said("[bold]a message[/bold]")
    bar.published(receipt(1))
    time.sleep(0.25)  # the bar draws itself ten times a second
    bar.stage_ended("extract")
    text = finish()
    assert "extract" in text
    assert "2/4" in text
    assert "1 retried" in text
    assert "[bold]a message[/bold]" in text


def test_a_bar_may_show_several_stages_one_after_the_other(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal[0])
    bar = Bar()
    for stage in ("extract", "pairs"):
        bar.stage_started(stage, 1, 0)
        bar.published(receipt(0))
        bar.stage_ended(stage)


def test_several_observers_hear_the_same():
    streams = [io.StringIO(), io.StringIO()]
    both = Observers([JsonLines(stream) for stream in streams])
    both.stage_started("extract", 1, 0)
    both.retried("extract", "error")
    both.in_flight("extract", 1, 1)
    both.published(receipt(0))
    both.said("hello")
    both.stage_ended("extract")
    events = [[line["event"] for line in told(stream)] for stream in streams]
    assert events == [["stage_started", "retried", "message", "stage_ended"]] * 2
