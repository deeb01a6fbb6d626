"""Average precision, ROC and curves: on paper, then against a loop that follows the definition word by word."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.ranking import (
    balanced,
    by_distance,
    curve,
    negatives_first,
    roc_auc,
    trapezoid_ap,
    trec_ap,
)

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

rankings = st.lists(st.booleans(), max_size=60)


def flags(letters: str) -> np.ndarray:
    """`+` is relevant, `-` is not."""
    return np.array([letter == "+" for letter in letters], bool)


def slow_ap(ranked: list[bool]) -> float:
    found, total = 0, 0.0
    for rank, relevant in enumerate(ranked, 1):
        if relevant:
            found += 1
            total += found / rank
    return total / found if found else math.nan


def slow_auc(ranked: list[bool]) -> float:
    """Trapezoids between the ROC points, from (0, 0) on, one point an item."""
    positives = sum(ranked)
    others = len(ranked) - positives
    if not positives or not others:
        return math.nan
    area, true_rate = 0.0, 0.0
    for relevant in ranked:
        before = true_rate
        true_rate += relevant / positives
        area += (not relevant) / others * (before + true_rate) / 2
    return area


@pytest.mark.parametrize(
    ("ranked", "ap", "auc"),
    [
        ("++--", 1.0, 1.0),
        ("--++", (1 / 3 + 2 / 4) / 2, 0.0),
        ("---+", 1 / 4, 0.0),
        ("+--+", (1 / 1 + 2 / 4) / 2, 0.5),
        ("-+-+", (1 / 2 + 2 / 4) / 2, 1 / 4),
        ("+-+-", (1 / 1 + 2 / 3) / 2, 3 / 4),
    ],
    ids=["perfect", "worst", "one relevant last", "first and last", "every second", "every first"],
)
def test_a_hand_worked_ranking_has_the_figures_from_paper(ranked, ap, auc):
    assert trec_ap(flags(ranked)) == pytest.approx(ap, rel=1e-15)
    assert roc_auc(flags(ranked)) == pytest.approx(auc, rel=1e-15)


@pytest.mark.parametrize("ranked", ["", "----"])
def test_without_a_relevant_item_both_figures_are_undefined(ranked):
    assert math.isnan(trec_ap(flags(ranked)))
    assert math.isnan(roc_auc(flags(ranked)))


def test_with_relevant_items_alone_the_ap_is_one_and_the_auc_undefined():
    assert trec_ap(flags("+++")) == 1.0
    assert math.isnan(roc_auc(flags("+++")))


@quick
@given(rankings)
def test_trec_ap_is_the_mean_precision_at_relevant_items(ranked):
    assert trec_ap(np.array(ranked, bool)) == pytest.approx(slow_ap(ranked), rel=1e-12, nan_ok=True)


@quick
@given(rankings)
def test_roc_auc_is_the_sum_of_trapezoids(ranked):
    assert roc_auc(np.array(ranked, bool)) == pytest.approx(slow_auc(ranked), rel=1e-9, abs=1e-12, nan_ok=True)


@quick
@given(rankings)
def test_a_far_distractor_never_raises_the_ap(ranked):
    near, far = np.array(ranked, bool), np.array([*ranked, False], bool)
    assert trec_ap(far) <= trec_ap(near) or math.isnan(trec_ap(near))


def test_ties_keep_the_order_of_the_file():
    distances = np.zeros(4)
    assert by_distance(distances, flags("-+-+")).tolist() == flags("-+-+").tolist()
    assert by_distance(distances, flags("+-+-")).tolist() == flags("+-+-").tolist()


@quick
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_by_distance_agrees_with_a_stable_sort(items):
    distances = np.array([distance for distance, _ in items], float)
    relevant = np.array([flag for _, flag in items], bool)
    assert by_distance(distances, relevant).tolist() == [flag for _, flag in sorted(items, key=lambda item: item[0])]


@quick
@given(st.lists(st.booleans(), max_size=30).flatmap(lambda f: st.tuples(st.just(f), st.permutations(range(len(f))))))
def test_permuting_items_with_distinct_distances_changes_nothing(drawn):
    relevant, order = np.array(drawn[0], bool), np.array(drawn[1], int)
    distances = np.arange(len(relevant), dtype=float)
    assert by_distance(distances[order], relevant[order]).tolist() == relevant.tolist()


def test_balanced_takes_all_positives_and_then_the_first_as_many_others():
    assert balanced(flags("-+--+-")).tolist() == [1, 4, 0, 2]


def test_balanced_with_fewer_others_than_positives_takes_them_all():
    assert balanced(flags("++-+")).tolist() == [0, 1, 3, 2]


def test_balanced_without_positives_is_empty():
    assert balanced(flags("---")).tolist() == []


def test_positives_come_first_among_equal_distances_when_balanced():
    relevant = flags("-+-+")
    chosen = balanced(relevant)
    assert trec_ap(by_distance(np.zeros(4)[chosen], relevant[chosen])) == 1.0


def test_a_curve_has_the_points_from_paper():
    points = curve(flags("+-+"))
    assert points.rank.tolist() == [0, 1, 2, 3]
    assert points.recall.tolist() == [0, 1 / 2, 1 / 2, 1]
    assert points.precision.tolist() == [1, 1, 1 / 2, 2 / 3]
    assert points.false_positive_rate.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_a_thinned_curve_keeps_its_first_and_last_point_and_is_no_longer_than_asked(most):
    ranked = np.arange(1_000) % 3 == 0
    points = curve(ranked, most)
    assert (points.rank[0], points.rank[-1]) == (0, 1_000)
    assert (points.recall[-1], points.false_positive_rate[-1]) == (1.0, 1.0)
    assert len(points.rank) == most + 1


@quick
@given(rankings, st.integers(1, 70))
def test_the_points_of_a_thinned_curve_lie_on_the_whole_one(ranked, most):
    whole, thinned = curve(np.array(ranked, bool)), curve(np.array(ranked, bool), most)
    assert whole.rank.tolist() == list(range(len(ranked) + 1))
    for name in ("recall", "precision", "false_positive_rate"):
        assert getattr(thinned, name).tolist() == getattr(whole, name)[thinned.rank].tolist()


def test_a_thinned_curve_is_spread_evenly_by_rank():
    steps = np.diff(curve(np.zeros(10_007, bool), 1_000).rank)
    assert steps.max() - steps.min() <= 1


def test_a_curve_has_no_more_than_5000_steps_unless_more_are_asked_for():
    ranked = np.random.default_rng(0).random(20_000) < 0.5
    assert len(curve(ranked).rank) == 5_001


def test_the_curve_of_nothing_is_the_point_before_the_first_item():
    points = curve(flags(""))
    assert (points.rank.tolist(), points.recall.tolist(), points.precision.tolist()) == ([0], [0.0], [1.0])


def slow_trapezoid_ap(ranked: list[bool], positives: int) -> float:
    """Points after each item from recall 0 and precision 1 on, and the trapezoids between them."""
    found, area, recall, precision = 0, 0.0, 0.0, 1.0
    for rank, relevant in enumerate(ranked, 1):
        found += relevant
        here = found / positives
        area += (here - recall) * (precision + found / rank) / 2
        recall, precision = here, found / rank
    return area


@pytest.mark.parametrize(
    ("ranked", "positives", "ap"),
    [
        ("++--", 2, 1.0),
        ("---+", 1, (0 / 3 + 1 / 4) / 2),
        ("--++", 2, ((0 + 1 / 3) / 2 + (1 / 3 + 2 / 4) / 2) / 2),
        ("+-", 4, 1 / 4),
        ("--", 2, 0.0),
    ],
    ids=["perfect", "one relevant last", "worst", "one of four found", "none found"],
)
def test_a_hand_worked_ranking_has_the_trapezoid_ap_from_paper(ranked, positives, ap):
    assert trapezoid_ap(flags(ranked), positives) == pytest.approx(ap, rel=1e-15)


@quick
@given(rankings, st.integers(0, 5))
def test_trapezoid_ap_follows_its_definition(ranked, missing):
    positives = sum(ranked) + missing
    if positives:
        expected = slow_trapezoid_ap(ranked, positives)
        assert trapezoid_ap(np.array(ranked, bool), positives) == pytest.approx(expected, abs=1e-12)


def test_trapezoid_ap_without_positives_is_undefined():
    assert math.isnan(trapezoid_ap(flags("--")))


tied = st.lists(st.integers(0, 5).map(float), max_size=20).map(np.array)


@quick
@given(tied, tied)
def test_negatives_lead_among_equal_distances_as_in_a_stable_sort(positives, negatives):
    labels = np.arange(len(negatives) + len(positives)) >= len(negatives)
    order = np.argsort(np.concatenate([negatives, positives]), kind="stable")
    assert negatives_first(positives, negatives).tolist() == labels[order].tolist()
