"""AP by trapezoids over the nearest results, by query and pooled: cases for paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.benchmarks.images.figures import overall_micro_ap, query_ap, relevant_results
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import NO_REFERENCE


def ap(row, positives):
    return float(query_ap(np.array([row], np.bool_), np.array([positives]))[0])


def test_all_positives_first_is_perfect():
    assert ap([1, 1, 0], 2) == 1.0


def test_one_positive_last():
    assert ap([0, 0, 0, 1], 1) == (0 / 3 + 1 / 4) / 2


def test_a_positive_beyond_the_nearest_counts_as_missed():
    assert ap([1, 0, 0], 2) == 0.5


def test_nothing_found_is_nothing():
    assert ap([0, 0, 0], 1) == 0.0


def test_relevance_goes_by_query_and_reference():
    truth = TruePairs.of(np.array([4, 4, 9]), np.array([0, 2, 1]))
    reference = np.array([[2, 1, 0], [1, NO_REFERENCE, NO_REFERENCE]])
    assert relevant_results(truth, np.array([4, 9]), reference).tolist() == [[True, False, True], [True, False, False]]


def overall(rows, queries):
    distance, relevant = (np.array([list(column)]) for column in zip(*rows, strict=True))
    return overall_micro_ap(relevant.astype(np.bool_), distance, np.zeros(distance.shape, np.int64), queries)


def test_pooled_results_are_ordered_by_distance():
    # right, wrong, right of two queries: (1 + 1)/2, (1/2 + 2/3)/2
    assert overall([(0.3, 1), (0.1, 1), (0.2, 0)], 2) == pytest.approx((1 + (1 / 2 + 2 / 3) / 2) / 2)


def test_wrong_results_stand_first_at_equal_distance():
    assert overall([(0.1, 1), (0.1, 0)], 1) == (0 / 1 + 1 / 2) / 2


def test_empty_places_do_not_count():
    relevant = np.array([[True, False]])
    distance, reference = np.array([[0.5, 0.1]]), np.array([[3, NO_REFERENCE]])
    assert overall_micro_ap(relevant, distance, reference, 1) == 1.0


def plain_ap(ranks, positives):
    """Trapezoids one by one, as the protocol page words it."""
    area = 0.0
    for n, rank in enumerate(ranks):
        area += ((n / rank if rank else 1.0) + (n + 1) / (rank + 1)) / 2 / positives
    return area


@settings(deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5))
def test_figures_are_those_of_a_plain_loop(rows):
    relevant = np.array(rows)
    positives = relevant.sum(axis=1) + 1
    expected = [plain_ap(np.flatnonzero(row).tolist(), count) for row, count in zip(rows, positives, strict=True)]
    assert query_ap(relevant, positives) == pytest.approx(expected)
    distance = np.arange(relevant.size).reshape(relevant.shape)[:, ::-1]
    reference = np.zeros(relevant.shape, np.int64)
    flat = relevant.reshape(-1)[np.argsort(distance.reshape(-1))]
    pooled = plain_ap(np.flatnonzero(flat).tolist(), len(rows))
    assert overall_micro_ap(relevant, distance, reference, len(rows)) == pytest.approx(pooled)
