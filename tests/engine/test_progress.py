"""What a person sees: a live line on a terminal, lines in a log, JSON for machines, nothing if asked for nothing."""

import contextlib
import dataclasses
import io
import json
import os
import re
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from raybench.engine import progress as module
from raybench.engine import progress_bar
from raybench.engine.course import Former
from raybench.engine.progress import IN_A_RAY_JOB, JsonLines, Observer, Observers, progress
from raybench.engine.progress_bar import Bar
from raybench.engine.progress_lines import Lines
from raybench.engine.stages import Place, Receipt


def receipt(index: int, items: int = 10) -> Receipt:
    here = Place.here()
    return Receipt("extract", index, items, items, 100, here, here, 0.0, 1.0, 0.1, 0.2, 0.3)


def told(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def terminal():
    """A real pseudo-terminal: a text file to write to, a function that closes it and tells what it showed, and one that
    tells what it shows so far."""
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

    def seen() -> str:
        return b"".join(shown).decode(errors="replace")

    def finish() -> str:
        stream.close()
        reader.join()
        return seen()

    yield stream, finish, seen
    finish()
    os.close(reading)


def test_a_run_is_told_by_its_first_stage_and_all_of_its_ends():
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.stage_started("extract", 4, 1)
    for index in range(3):
        lines.published(receipt(index))
    lines.stage_ended("extract")
    lines.run_ended()
    started, ended = told(stream)
    assert started == {"event": "stage_started", "stage": "extract", "shards": 4, "found": 1}
    (stage,) = ended["stages"]
    assert (ended["event"], stage["stage"], stage["done"], stage["shards"]) == ("stages_ended", "extract", 4, 4)
    assert stage["seconds_left"] == 0.0


def test_stages_that_are_over_at_once_share_a_line_of_json():
    stream = io.StringIO()
    lines = JsonLines(stream)
    for stage in ("extract", "pairs", "figures"):
        lines.stage_started(stage, 1, 0)
        lines.published(receipt(0))
        lines.stage_ended(stage)
    lines.closed()
    first, last = told(stream)
    assert first["stage"] == "extract"
    assert [one["stage"] for one in last["stages"]] == ["extract", "pairs", "figures"]


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


@pytest.mark.parametrize(("kind", "lines"), [(JsonLines, 1), (Lines, 0)])
def test_a_log_is_not_flooded_with_a_line_per_shard(kind, lines):
    stream = io.StringIO()
    log = kind(stream)
    log.stage_started("extract", 100, 0)
    for index in range(100):
        log.published(receipt(index))
    assert len(stream.getvalue().splitlines()) == lines


def test_retries_and_messages_are_told_at_once():
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines.retried("extract", "actor_died")
    lines.said('a "quoted"\nmessage')
    assert told(stream) == [
        {"event": "retried", "stage": "extract", "cause": "actor_died"},
        {"event": "message", "message": 'a "quoted"\nmessage'},
    ]


@pytest.mark.parametrize("kind", [JsonLines, Lines])
def test_a_log_tells_what_is_waited_for_where_that_is_news(kind):
    stream = io.StringIO()
    kind(stream).waiting("checking inputs")
    assert stream.getvalue() == ""
    kind(stream).waiting("starting Ray", is_news=True)
    assert "starting Ray" in stream.getvalue()


def test_lines_for_people_say_share_rate_time_left_and_what_takes_it(monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY_SECONDS", 0.0)
    stream = io.StringIO()
    lines = Lines(stream)
    lines.run_started(Former((("extract", 1.0), ("pairs", 600.0))))
    lines.stage_started("extract", 4, 0)
    lines.published(dataclasses.replace(receipt(0), load_seconds=9.0))
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("[0:00] extract: 1 of 4 shards (25%), ")
    assert re.search(r"/s, 0:\d\d left in this stage, about 10:\d\d in all, mostly loading", line)


def test_a_stage_leaves_a_line_in_a_log_only_if_it_took_a_second_or_failures(monkeypatch):
    stream = io.StringIO()
    lines = Lines(stream)
    for stage, retries in (("extract", 0), ("pairs", 2)):
        lines.stage_started(stage, 1, 0)
        for _ in range(retries):
            lines.retried(stage, "error")
        lines.published(receipt(0))
        lines.stage_ended(stage)
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("[0:00] pairs: 0.0 s, 10 items, ") and line.endswith(", 2 tried again")


def test_auto_is_a_bar_on_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal[0])
    assert isinstance(progress("auto"), Bar)


@pytest.mark.parametrize(("job", "kind"), [(False, Lines), (True, JsonLines)])
def test_auto_is_lines_for_people_elsewhere_and_json_in_a_ray_job(tmp_path, monkeypatch, job, kind):
    monkeypatch.delenv(IN_A_RAY_JOB, raising=False)
    if job:
        monkeypatch.setenv(IN_A_RAY_JOB, "{}")
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", log)
        assert isinstance(progress("auto"), kind)


@pytest.mark.parametrize(
    ("kind", "observer"), [("bar", Bar), ("lines", Lines), ("json", JsonLines), ("none", Observer)]
)
def test_a_kind_that_was_asked_for_is_given(kind, observer):
    assert type(progress(kind)) is observer


@pytest.fixture
def shown_bar(terminal, monkeypatch):
    """Makes a bar on a terminal of 100 columns, with a function that waits for a pattern, closes it and tells what was
    shown."""
    stream, finish, seen = terminal

    def make():
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setattr(sys, "stderr", stream)
        bar = Bar()

        def shown(pattern: str) -> str:
            deadline = time.monotonic() + 10
            while not re.search(pattern, plain(seen()), re.DOTALL) and time.monotonic() < deadline:
                time.sleep(0.02)
            bar.closed()
            text = plain(finish())
            assert re.search(pattern, text, re.DOTALL), text
            return text

        return bar, shown

    return make


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_the_bar_shows_stage_count_and_retries_and_leaves_messages(shown_bar):
    bar, shown = shown_bar()
    bar.stage_started("extract", 4, 1)
    bar.retried("extract", "error")
    bar.said("[bold]a message[/bold]")
    bar.published(receipt(1))
    text = shown(r"extract .* 2/4 ")
    assert "1 tried again" in text
    assert "[bold]a message[/bold]" in text


def test_the_bar_tells_time_left_of_stage_and_run_in_one_line(shown_bar):
    bar, shown = shown_bar()
    bar.run_started(Former((("extract", 1.0), ("pairs", 600.0))))
    bar.stage_started("extract", 2, 0)
    bar.published(receipt(0))
    shown(r"1/2 · 0:\d\d left · run: about 10:\d\d left · \d+")


def test_stages_that_are_behind_leave_their_times_and_short_ones_a_line_together(shown_bar, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("raybench.engine.course.time", SimpleNamespace(monotonic=lambda: now[0]))
    bar, shown = shown_bar()
    for stage, seconds in (("a", 0.4), ("b", 0.3), ("c", 0.4), ("long", 2.0)):
        bar.stage_started(stage, 1, 0)
        now[0] += seconds
        bar.published(receipt(0))
        bar.stage_ended(stage)
    shown(r"3 short stages +1\.1 s.*long +2\.0 s  10 items · 5\.0/s")


def test_a_stage_that_was_stopped_says_so(shown_bar, monkeypatch):
    monkeypatch.setattr(progress_bar, "OWN_LINE_SECONDS", 0.0)
    bar, shown = shown_bar()
    bar.stage_started("extract", 8, 1)
    bar.published(receipt(0))
    bar.stage_ended("extract")
    shown("stopped at 2 of 8 shards · 10 items")


def test_something_moves_with_its_seconds_while_ray_starts_and_its_time_stays(shown_bar, monkeypatch):
    monkeypatch.setattr(progress_bar, "OWN_LINE_SECONDS", 0.05)
    bar, shown = shown_bar()
    bar.waiting("starting Ray on this machine", is_news=True)
    text = shown(r"(\S) starting Ray on this machine \d+ s.*(?!\1)\S starting Ray on this machine \d+ s")
    assert re.search(r"starting Ray on this machine +\d+\.\d s", text)


def test_a_short_wait_is_not_shown_unless_it_is_news(shown_bar):
    bar, shown = shown_bar()
    bar.waiting("checking inputs")
    bar.said("done")
    assert "checking inputs" not in shown("done")


def test_the_cursor_is_back_when_nothing_more_is_told(terminal, monkeypatch):
    stream, finish, _ = terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    bar = Bar()
    bar.stage_started("extract", 1, 0)
    bar.closed()
    text = finish()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_several_observers_hear_the_same():
    streams = [io.StringIO(), io.StringIO()]
    both = Observers([JsonLines(stream) for stream in streams])
    both.stage_started("extract", 1, 0)
    both.retried("extract", "error")
    both.in_flight("extract", 1, 1)
    both.published(receipt(0))
    both.said("hello")
    both.waiting("Ray", is_news=True)
    both.stage_ended("extract")
    both.run_ended()
    both.closed()
    events = [[line["event"] for line in told(stream)] for stream in streams]
    assert events == [["stage_started", "retried", "message", "message", "stages_ended"]] * 2
