"""FPR95 and FDR95 by hand, by the definition pair by pair, of a sample, and of each unit alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.metrics.error_rates import fdr95, fpr95, needed_matches
from raybench.metrics.samples import FigureOf, RankedSample, Units
from raybench.metrics.unit_figures import unit_figures

pair = st.tuples(st.integers(0, 9), st.booleans())


def by_definition(pairs):
    """As protocols/revisited.md words it."""
    near = sorted(distance for distance, match in pairs if match)
    needed = -(-95 * len(near) // 100)
    false_alarms = sum(not match and distance <= near[needed - 1] for distance, match in pairs)
    others = len(pairs) - len(near)
    return false_alarms / others, false_alarms / (false_alarms + needed)


def ranked(pairs):
    distances, positive = np.array([one[0] for one in pairs]), np.array([one[1] for one in pairs])
    return positive[np.lexsort((positive, distances))]


@given(st.lists(pair, min_size=2, max_size=60))
def test_both_follow_their_definition(pairs):
    if {match for _, match in pairs} == {True, False}:
        flags = ranked(pairs)
        assert (fpr95(flags), fdr95(flags)) == by_definition(pairs)


@given(st.integers(1, 10**9))
def test_needed_matches_are_the_ceiling_in_whole_numbers(count):
    assert needed_matches(count) == -(-95 * count // 100)


@pytest.mark.parametrize("flags", [[], [True, True], [False]])
def test_without_both_kinds_there_is_no_figure(flags):
    assert np.isnan(fpr95(np.array(flags, np.bool_)))
    assert np.isnan(fdr95(np.array(flags, np.bool_)))


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=40))
def test_a_sample_drawn_once_each_and_units_alone_have_the_same_figures(items):
    unit, positive = np.array([one[0] for one in items], np.int32), np.array([one[1] for one in items])
    figures = (FigureOf("a", "fpr95"), FigureOf("a", "fdr95"))
    sample = RankedSample(
        figures, ("fpr95", "fdr95"), Units.plain(list("wxyz")), positive, unit, unit, np.zeros(4, np.int64)
    )
    assert sample.draw(np.ones(4, np.int64)) == pytest.approx([fpr95(positive), fdr95(positive)], nan_ok=True)
    alone = [(fpr95(positive[unit == one]), fdr95(positive[unit == one])) for one in range(4)]
    assert pytest.approx(np.array(alone), nan_ok=True) == unit_figures(sample).T


def test_a_unit_drawn_twice_counts_twice():
    positive, unit = np.array([True, False, True, False]), np.array([0, 1, 2, 3], np.int32)
    sample = RankedSample(
        (FigureOf("a", "fpr95"),), ("fpr95",), Units.plain(list("wxyz")), positive, unit, unit, np.zeros(4, np.int64)
    )
    assert sample.draw(np.array([1, 2, 1, 1])).tolist() == [2 / 3]
