"""The pace of a stage, and how long a run may still take: nothing is told that can't be known."""

import dataclasses
import time

import pytest

from raybench.engine.course import Course, Former, Pace
from raybench.engine.stages import Place, Receipt


def receipt(index: int, items: int = 10) -> Receipt:
    here = Place.here()
    return Receipt("extract", index, items, items, 100, here, here, 0.0, 1.0, 0.1, 0.1, 0.1)


def test_the_rate_is_items_per_second_since_the_stage_started():
    pace = Pace("extract", 10, 0)
    pace.add(receipt(0, 7))
    pace.add(receipt(1, 8))
    time.sleep(0.02)
    before, rate, after = pace.seconds, pace.rate, pace.seconds
    assert 15 / after <= rate <= 15 / before


def test_the_time_left_counts_only_shards_that_were_computed():
    pace = Pace("extract", 10, 6)
    pace.add(receipt(0))
    time.sleep(0.02)
    before, left, after = pace.seconds, pace.seconds_left, pace.seconds
    assert 3 * before <= left <= 3 * after


def test_the_time_left_is_unknown_before_the_first_shard():
    assert Pace("extract", 10, 6).seconds_left is None


@pytest.mark.parametrize(
    ("part", "words"),
    [("load_seconds", "loading"), ("compute_seconds", "computing"), ("publish_seconds", "publishing")],
)
def test_what_takes_most_of_the_workers_time_holds_a_stage_up(part, words):
    pace = Pace("extract", 10, 0)
    pace.add(receipt(0))
    assert pace.held_up_by == ""
    pace.add(dataclasses.replace(receipt(1), **{part: 5.0}))
    assert pace.held_up_by == words


def on_the_way(former: tuple, *behind: tuple) -> float | None:
    """The seconds left of a run in its stage `pairs`, of which no time is left."""
    course = Course(Former(former))
    for stage, seconds in behind:
        course.passed(stage, seconds)
    pace = Pace("pairs", 1, 0)
    pace.add(receipt(0))
    return course.seconds_left(pace)


def test_the_run_takes_as_long_as_the_former_one_times_how_much_slower_it_was_so_far():
    former = (("extract", 10.0), ("pairs", 5.0), ("fold", 4.0), ("write", 2.0))
    assert on_the_way(former, ("extract", 30.0)) == pytest.approx(3 * 6.0)


def test_stages_of_no_length_do_not_scale_the_former_run():
    former = (("extract", 0.1), ("pairs", 5.0), ("fold", 4.0))
    assert on_the_way(former, ("extract", 30.0)) == pytest.approx(4.0)


@pytest.mark.parametrize("former", [(), (("read", 10.0), ("pairs", 5.0), ("fold", 4.0)), (("extract", 10.0),)])
def test_without_a_former_run_that_went_the_same_way_the_time_left_is_unknown(former):
    assert on_the_way(former, ("extract", 30.0)) is None
