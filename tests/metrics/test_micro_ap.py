"""Pooled predictions against true pairs: cases for paper, the plain loop, and how they are cut."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.micro_ap import (
    AtLeast,
    OperatingPoint,
    Predictions,
    TruePairs,
    count_blocks,
    found_scores,
    measure,
    pooled_curve,
    score_pooled,
)
from raybench.metrics.partials import Rows


def truth_of(*pairs):
    return TruePairs.of(*np.array(pairs, np.int64).reshape(-1, 2).T)


def predictions_of(*rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Predictions(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64))


def test_all_right_and_nothing_else_is_perfect():
    figures = score_pooled(truth_of((0, 5), (1, 6)), predictions_of((0, 5, 0.9), (1, 6, 0.8)))
    assert (figures.micro_ap, figures.accuracy_at_1, figures.recall_at_10) == (1.0, 1.0, 1.0)
    assert figures.at_precision == tuple(OperatingPoint(precision, 1.0, 0.8) for precision in (0.90, 0.95, 0.99))


def test_precision_is_taken_at_each_true_pair():
    rows = [(0, 5, 0.9), (0, 6, 0.8), (1, 6, 0.7), (1, 5, 0.6)]  # right, wrong, right, wrong
    figures = score_pooled(truth_of((0, 5), (1, 6)), predictions_of(*rows))
    assert figures.micro_ap == (1 / 1 + 2 / 3) / 2
    assert figures.at_precision[0] == OperatingPoint(0.90, 0.5, 0.9)


def test_right_ones_last_is_the_worst():
    rows = [(0, 1, 0.9), (0, 2, 0.8), (0, 5, 0.1)]
    figures = score_pooled(truth_of((0, 5)), predictions_of(*rows))
    assert figures.micro_ap == 1 / 3
    assert (figures.accuracy_at_1, figures.recall_at_10) == (0.0, 1.0)
    assert figures.at_precision[0] == OperatingPoint(0.90, 0.0, None)


@pytest.mark.parametrize(("before", "recall"), [(9, 1.0), (10, 0.0)])
def test_recall_at_10_counts_the_tenth_place_of_a_query_and_not_the_eleventh(before, recall):
    rows = [(0, wrong, 1.0 - wrong / 100) for wrong in range(before)] + [(0, 50, 0.1)]
    assert score_pooled(truth_of((0, 50)), predictions_of(*rows)).recall_at_10 == recall


def test_where_all_are_tied_the_wrong_stand_first():
    rows = [(0, 5, 0.5), (1, 6, 0.5), (0, 1, 0.5), (1, 2, 0.5)]  # wrong, wrong, right, right
    figures = score_pooled(truth_of((0, 5), (1, 6)), predictions_of(*rows))
    assert figures.micro_ap == (1 / 3 + 2 / 4) / 2
    assert figures.accuracy_at_1 == 0.0


def test_none_relevant_gives_nothing():
    figures = score_pooled(truth_of((0, 5)), predictions_of((0, 1, 0.9), (1, 5, 0.8)))
    assert (figures.micro_ap, figures.accuracy_at_1, figures.recall_at_10) == (0.0, 0.0, 0.0)
    assert figures.at_precision[0] == OperatingPoint(0.90, 0.0, None)


def test_no_prediction_at_all_gives_nothing():
    assert score_pooled(truth_of((0, 5)), predictions_of()).micro_ap == 0.0


def test_without_true_pairs_there_is_no_figure():
    assert math.isnan(score_pooled(truth_of(), predictions_of((0, 1, 0.9))).micro_ap)


def test_a_true_pair_that_nobody_predicted_counts_in_recall():
    figures = score_pooled(truth_of((0, 5), (7, 7)), predictions_of((0, 5, 0.9)))
    assert (figures.micro_ap, figures.accuracy_at_1) == (0.5, 0.5)
    assert figures.at_precision[0] == OperatingPoint(0.90, 0.5, 0.9)


def test_two_references_of_a_query_are_two_pairs_with_their_own_ranks():
    rows = [(3, 1, 0.9), (3, 2, 0.7), (3, 9, 0.8), (4, 1, 0.95)]
    figures = score_pooled(truth_of((3, 1), (3, 2)), predictions_of(*rows))
    assert figures.accuracy_at_1 == 0.5  # (3, 1) stands first in its list, (3, 2) third
    assert figures.micro_ap == (1 / 2 + 2 / 4) / 2


def test_the_threshold_is_that_of_the_last_point_that_is_precise_enough():
    # nine right, one wrong, one right (10 of 11: 0.909), one wrong, one right (11 of 13: 0.846)
    rows = [(i, i, 1.0 - i / 100) for i in range(9)] + [(0, 50, 0.8), (20, 20, 0.7), (1, 51, 0.6), (21, 21, 0.5)]
    truth = truth_of(*((query, query) for query in (*range(9), 20, 21)))
    figures = score_pooled(truth, predictions_of(*rows))
    assert figures.at_precision[0] == OperatingPoint(0.90, 10 / 11, 0.7)
    assert figures.at_precision[1] == OperatingPoint(0.95, 9 / 11, 0.92)


def test_a_true_pair_predicted_twice_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        score_pooled(truth_of((0, 5)), predictions_of((0, 5, 0.9), (0, 5, 0.8)))


def test_a_true_pair_listed_twice_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        truth_of((0, 5), (0, 5))
    with pytest.raises(ValueError, match="twice"):
        truth_of((0, 5), (1, 6), (2, 7), (2, 7))


def test_a_score_that_is_no_number_is_an_error():
    with pytest.raises(ValueError, match="NaN"):
        score_pooled(truth_of((0, 5)), predictions_of((0, 5, 0.9), (0, 4, math.nan)))


def test_a_thinned_curve_keeps_its_ends():
    truth = truth_of(*((i, i) for i in range(100)))
    rows = predictions_of(*((i, i, 1.0 - i / 100) for i in range(100)))
    curve = pooled_curve(truth, *count_blocks(truth, lambda: [rows]))
    thin = curve.thinned(10)
    assert len(curve.rank) == 100
    assert len(thin.rank) == 10
    assert (thin.rank[0], thin.rank[-1], thin.recall[-1]) == (1, 100, 1.0)
    assert len(curve.thinned().rank) == 100


def plainly(truth, rows):
    """Every figure item by item, as the protocol page words it."""
    pairs = set(zip(truth.query.tolist(), truth.reference.tolist(), strict=True))
    order = sorted(rows, key=lambda row: (-row[2], (row[0], row[1]) in pairs))
    found, area, best, threshold = 0, 0.0, 0.0, None
    for rank, (query, reference, score) in enumerate(order, 1):
        found += (query, reference) in pairs
        area += ((query, reference) in pairs) / len(pairs) * found / rank
        if found / rank >= 0.9 and found / len(pairs) > best:
            best, threshold = found / len(pairs), score
    ranks = [
        sum(other[0] == query and other[2] >= score for other in rows) - 1
        for query, reference, score in rows
        if (query, reference) in pairs
    ]
    return area, best, threshold, sum(r == 0 for r in ranks) / len(pairs), sum(r < 10 for r in ranks) / len(pairs)


PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 9))


@st.composite
def cases(draw):
    truth = draw(st.lists(PAIRS, min_size=1, max_size=12, unique=True))
    pairs = draw(st.lists(PAIRS, max_size=40, unique=True))
    scores = draw(st.lists(st.integers(-3, 3), min_size=len(pairs), max_size=len(pairs)))
    rows = [(*pair, score / 2) for pair, score in zip(pairs, scores, strict=True)]
    cuts = draw(st.lists(st.integers(0, len(rows)), max_size=4))
    return truth, rows, cuts, draw(st.randoms(use_true_random=False))


@settings(deadline=None, max_examples=300)
@given(cases())
def test_figures_are_those_of_a_plain_loop_however_blocks_are_cut_and_ordered(case):
    pairs, rows, cuts, random = case
    truth = truth_of(*pairs)
    shuffled = random.sample(rows, len(rows))
    edges = sorted([0, *cuts, len(rows)])
    blocks = [predictions_of(*shuffled[start:stop]) for start, stop in itertools.pairwise(edges)]
    random.shuffle(blocks)

    found = Rows.merged([found_scores(truth, block) for block in blocks])
    parts = [AtLeast.of(truth, found, block) for block in blocks]
    random.shuffle(parts)
    cut = measure(truth, found, AtLeast.merged([AtLeast.from_arrays(part.to_arrays()) for part in parts]))
    whole = score_pooled(truth, predictions_of(*rows))
    area, recall, threshold, first, ten = plainly(truth, rows)

    assert cut == whole
    assert whole.micro_ap == pytest.approx(area, abs=1e-12)
    assert whole.at_precision[0] == OperatingPoint(0.90, pytest.approx(recall), threshold)
    assert (whole.accuracy_at_1, whole.recall_at_10) == (first, ten)
