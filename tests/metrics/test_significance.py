"""P-values of paired draws, Holm's correction, and letters of groups."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.bootstrap import interval
from raybench.metrics.draws import sample_draws
from raybench.metrics.samples import FigureOf, MeanSample, RankedSample, Units
from raybench.metrics.significance import group_letters, holm, least_of_draws, paired_p

UNITS, PAIRS, DRAWS = 100, 200, 199
FIGURE = FigureOf("row", "figure")


def mean_sample(random, common):
    """A value for each unit: what is common to all methods, and as much of its own."""
    values = common[:UNITS, np.newaxis] + random.exponential(size=(UNITS, 1))
    return MeanSample((FIGURE,), UNITS_DRAWN, np.arange(UNITS, dtype=np.int32), values)


def ranked_sample(random, common):
    """One true item and two others for each unit, ranked in one pool by scores that methods share in part."""
    scores = common + random.normal(size=3 * UNITS) + np.repeat([1.0, 0.0, 0.0], UNITS)
    order = np.argsort(-scores)
    unit = np.tile(np.arange(UNITS, dtype=np.int32), 3)[order]
    return RankedSample((FIGURE,), ("step_ap",), UNITS_DRAWN, order < UNITS, unit, unit, np.zeros(UNITS, np.int64))


UNITS_DRAWN = Units.plain([str(number) for number in range(UNITS)])


@pytest.mark.parametrize("make", [mean_sample, ranked_sample])
def test_p_values_of_methods_that_are_alike_are_uniform(make):
    """Two methods of one population: a share x of the p-values is at most x, for every x (Kolmogorov and Smirnov)."""
    random = np.random.default_rng(1)
    found = []
    for seed in range(PAIRS):
        common = random.normal(size=3 * UNITS)
        one, other = (sample_draws(make(random, common), DRAWS, seed)[FIGURE] for _ in range(2))
        found.append(paired_p(one - other, UNITS))
    steps = np.arange(1, PAIRS + 1) / PAIRS
    distance = np.abs(np.sort(found) - steps).max()
    assert distance < 1.36 / math.sqrt(PAIRS)  # what chance exceeds in 5 of 100 tests


def test_methods_that_differ_are_told_apart():
    random = np.random.default_rng(0)
    one = mean_sample(random, random.normal(size=UNITS))
    better = MeanSample((FIGURE,), one.units, one.unit, one.values + 0.1 + 0.01 * random.normal(size=(UNITS, 1)))
    draws = [sample_draws(sample, DRAWS, 0)[FIGURE] for sample in (one, better)]
    assert paired_p(draws[1] - draws[0], UNITS) == least_of_draws(DRAWS) == 0.01
    assert interval(draws[1]).low < interval(draws[0]).high  # though their own intervals overlap: the pairing tells


def test_without_any_difference_p_is_one():
    assert paired_p(np.zeros(1000), 50) == 1.0
    assert paired_p(np.r_[np.zeros(999), 1.0], 50) == 1.0


def test_a_single_unit_tells_nothing_apart():
    assert paired_p(np.ones(999), 1) == 1.0
    assert paired_p(np.ones(999), 2) == 0.002


def test_draws_that_do_not_exist_do_not_count():
    assert paired_p(np.array([0.1, np.nan, 0.2, 0.3]), 50) == 0.5
    assert math.isnan(paired_p(np.array([np.nan]), 50))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=300))
@settings(max_examples=50, deadline=None)
def test_an_interval_leaves_out_zero_if_p_is_below_five_percent(values):
    draws = np.array(values)
    ends = interval(draws)
    if paired_p(draws, 50) < 0.05:
        assert ends.low > 0 or ends.high < 0


def test_holm_multiplies_the_smallest_most_and_keeps_the_order():
    assert holm([0.04, 0.01, 0.02]) == [0.04, 0.03, 0.04]
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_holm_leaves_out_what_has_no_p():
    first, none, last = holm([0.01, math.nan, 0.02])
    assert (first, last) == (0.02, 0.02) and math.isnan(none)


ALL = {count: list(combinations(range(count), 2)) for count in range(7)}
NONE = st.just(set())


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(ALL[n])) if ALL[n] else NONE)))
@settings(max_examples=100, deadline=None)
def test_two_share_a_letter_exactly_if_they_do_not_differ(case):
    count, different = case
    letters = group_letters(list(range(count)), sorted(different))
    for one, other in combinations(range(count), 2):
        assert bool(set(letters[one]) & set(letters[other])) == ((one, other) not in different)
    assert all(letters[one] for one in range(count))
    assert letters[0].startswith("a")


def test_the_best_has_the_first_letter():
    assert group_letters([2, 0, 1], [(2, 0), (2, 1)]) == {2: "a", 0: "b", 1: "b"}
