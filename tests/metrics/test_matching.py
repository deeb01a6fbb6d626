"""Figures of an image pair, small enough to check on paper, and what lists of retrieved patches make of ties."""

import math

import numpy as np
import pytest

from raybench.metrics.matching import NOT_FOUND, by_ratio, closer_in_list, match_figures
from raybench.metrics.ranking import found_ap, trec_ap
from raybench.metrics.retrieval import query_first


def figures(distance, index, closer=None):
    distance, index = np.array(distance, float), np.array(index)
    truth = np.arange(len(index))
    return match_figures(distance, index, truth, closer_in_list(index, truth) if closer is None else np.array(closer))


def test_a_perfect_pair_scores_one_everywhere():
    found = figures([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    assert (found.ap, found.ap_2nnr, found.ap_all, found.ap_ranked, found.success_rate) == (1, 1, 1, 1, 1)


def test_a_pair_without_a_right_match_scores_zero():
    found = figures([[1, 2], [3, 4]], [[1, 0], [0, 1]])
    assert (found.ap, found.ap_2nnr, found.ap_all, found.success_rate) == (0, 0, 0, 0)
    assert found.ap_ranked == 0.5


def test_ap_is_over_the_right_ones_found_and_ap_all_over_all_patches():
    found = figures([[1, 9], [2, 9], [3, 9], [4, 9]], [[0, 1], [0, 1], [2, 1], [0, 1]])
    assert found.ap == (1 / 1 + 2 / 3) / 2
    assert found.ap_all == pytest.approx((1 / 1 + 2 / 3) / 4)
    assert found.success_rate == 0.5


def test_one_neighbour_leaves_the_ratio_undefined():
    found = figures([[1], [2]], [[0], [1]])
    assert math.isnan(found.ap_2nnr)
    assert found.ap == 1


def test_the_rank_of_the_true_target_counts_beyond_k():
    assert figures([[1, 2], [3, 4]], [[0, 1], [0, 0]], closer=[0, 3]).ap_ranked == (1 + 1 / 4) / 2
    assert figures([[1, 2], [3, 4]], [[0, 1], [0, 0]]).ap_ranked == 0.5


def test_matches_are_ordered_by_falling_ratio_of_second_to_first():
    distance = np.array([[4.0, 5.0], [1.0, 3.0], [2.0, 4.0]])  # 1.25, 3, 2
    places = np.array([by_ratio(distance, np.arange(3) == patch).argmax() for patch in range(3)])
    assert places.tolist() == [2, 0, 1]


def test_zero_over_zero_comes_first_then_infinite_ratios_then_the_rest():
    distance = np.array([[1.0, 8.0], [0.0, 5.0], [2.0, 2.0], [0.0, 0.0], [1.0, 8.0]])
    places = np.array([by_ratio(distance, np.arange(5) == patch).argmax() for patch in range(5)])
    assert places.tolist() == [2, 1, 4, 0, 3]


def test_targets_not_in_the_list_are_not_found():
    assert closer_in_list(np.array([[3, 1], [2, 0]]), np.array([1, 1])).tolist() == [1, NOT_FOUND]


def test_found_ap_of_a_row_is_trec_ap():
    flags = np.random.default_rng(0).random((20, 50)) < 0.3
    assert found_ap(flags) == pytest.approx([trec_ap(row) for row in flags])


def test_found_ap_of_a_row_with_one_relevant_item_is_its_precision():
    assert found_ap(np.array([[False, True, False], [True, False, False]])).tolist() == [0.5, 1.0]


def test_the_query_is_swapped_not_moved_into_the_first_place():
    assert query_first(np.array([[7, 8, 9, 5]]), np.array([9])).tolist() == [[9, 8, 7, 5]]
    assert query_first(np.array([[9, 8, 7]]), np.array([9])).tolist() == [[9, 8, 7]]
