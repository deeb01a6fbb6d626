"""Worst and best cases are the extremes over every order of equal distances and every choice among equal targets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.matching import match_figures, match_ties
from raybench.metrics.ranking import found_ap, roc_auc, stable_order, trapezoid_ap, trec_ap
from raybench.metrics.retrieval import list_ties
from raybench.metrics.ties import OpenDecisions, found_ap_ranges, success_range, tied_ranking, trapezoid_range

few = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=5)
quick = settings(max_examples=60, deadline=None)


def orders(key):
    """Every order in which keys rise."""
    every = (np.array(order) for order in itertools.permutations(range(len(key))))
    return [order for order in every if (np.diff(key[order]) >= 0).all()]


def every_case(key, kind):
    """Flags in rank order for every order of ties and every choice among the open ones (kind 1; 0 is right)."""
    maybe = np.flatnonzero(kind == 1)
    for chosen in itertools.product((False, True), repeat=len(maybe)):
        right = kind == 0
        right[maybe] = chosen
        yield from (right[order] for order in orders(key))


def assert_extremes(found, values):
    assert found.worst == pytest.approx(min(values), abs=1e-12)
    assert found.best == pytest.approx(max(values), abs=1e-12)


@quick
@given(few)
def test_ranges_of_decisions_are_the_extremes_of_every_case(items):
    key, kind = np.array(items).T
    decisions = OpenDecisions(key, kind == 0, kind == 1)
    cases = list(every_case(key, kind))
    found = [float(found_ap(flags[None])[0]) for flags in cases]
    ap, ap_all = found_ap_ranges(decisions)
    assert_extremes(ap, found)
    assert_extremes(ap_all, [value * flags.mean() for value, flags in zip(found, cases, strict=True)])
    assert_extremes(trapezoid_range(decisions), [trapezoid_ap(flags, len(key)) for flags in cases])
    assert_extremes(success_range(decisions), [flags.mean() for flags in cases])
    if not decisions.tied:
        assert max(found) == min(found)


@quick
@given(few)
def test_ranked_pairs_in_their_extreme_orders(items):
    distances, kind = np.array(items, np.float64).T
    order = stable_order(distances)
    relevant = (kind == 0)[order]
    both = tied_ranking(distances[order], relevant)
    cases = [(kind == 0)[other] for other in orders(distances)]
    for figure in (trec_ap, roc_auc, trapezoid_ap):
        values = [figure(flags) for flags in cases]
        ends = figure(both.worst), figure(both.best)
        assert ends == pytest.approx((min(values), max(values)), nan_ok=True)
    assert (both.tied == 0) == (len({tuple(flags) for flags in cases}) == 1)


def test_only_what_is_equal_is_brought_into_the_order_of_the_file():
    rng = np.random.default_rng(0)
    for values in (rng.random(5_000), rng.integers(0, 40, 5_000) / 8, np.zeros(300), np.zeros(0)):
        assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))


@quick
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_matches_lie_between_their_cases(seed, k):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 3, (6, 6)).astype(np.float64)  # patches x targets
    order = np.argsort(table, axis=1, kind="stable")
    truth = rng.permutation(6)
    own = table[np.arange(6), truth, None]
    closer = (order == truth[:, None]).argmax(axis=1)
    fewest, most = (table < own).sum(axis=1), (table <= own).sum(axis=1) - 1
    distance = np.take_along_axis(table, order[:, :k], axis=1)
    figures = match_figures(distance, order[:, :k], truth, closer)
    ties = match_ties(distance, fewest, most)
    values = np.array(list(vars(figures).values()))
    there = ~np.isnan(values)
    assert there.all() == (k > 1)
    assert (ties.worst[there] <= values[there] + 1e-12).all() and (values[there] <= ties.best[there] + 1e-12).all()
    assert ((ties.tied > 0) | (np.abs(ties.best - ties.worst) < 1e-12))[there].all()


def test_a_collapsed_descriptor_can_be_all_right_or_all_wrong():
    zeros = np.zeros((5, 2))
    ties = match_ties(zeros, np.zeros(5, np.int64), np.full(5, 4))
    assert ties.worst.tolist() == [0.0, 0.0, 0.0, 0.2, 0.0]
    assert ties.best.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0]
    assert ties.tied.tolist() == [5, 5, 5, 5, 5]


@quick
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6), st.integers(1, 6))
def test_lists_in_their_extreme_orders(items, length):
    items = [*sorted(items, key=lambda item: item[0]), (3, False)]  # behind them a tie ends
    distance, relevant = np.array(items).T
    flags, length = relevant.astype(bool), min(length, len(items) - 1)
    found = list_ties(flags[None], distance[None].astype(float), length, np.array([9]))
    values = [float(found_ap(flags[order][None, :length])[0]) for order in orders(distance)]
    assert (found.worst[0], found.best[0]) == pytest.approx((min(values), max(values)))


def test_a_tie_that_reaches_beyond_what_is_known_may_bring_in_more():
    relevant, distance = np.array([[True, False, False, False]]), np.array([[0.0, 1.0, 1.0, 1.0]])
    none = list_ties(relevant, distance, 3, np.array([0]))
    assert (none.worst.tolist(), none.best.tolist()) == ([1.0], [1.0])
    one = list_ties(relevant, distance, 3, np.array([1]))
    assert one.best.tolist() == [1.0]
    assert one.worst.tolist() == [pytest.approx((1 + 2 / 3) / 2)]  # one more at the end
    lost = list_ties(np.array([[False, True, False]]), np.array([[1.0, 1.0, 1.0]]), 2, np.array([0]))
    assert (lost.worst.tolist(), lost.best.tolist()) == ([0.0], [1.0])


def test_padding_is_no_tie():
    found = list_ties(np.array([[True, False, False]]), np.array([[1.0, np.inf, np.inf]]), 2, np.array([5]))
    assert (found.worst.tolist(), found.best.tolist()) == ([1.0], [1.0])
