"""Nearest rows are those that brute force in float64 finds, ties and all, whatever is proposed, however it is cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.search.exact_search import (
    METRICS,
    References,
    below_by_numpy,
    nearest_places,
    pair_distances,
    pairs_within,
    row_distances,
)
from raybench.search.proposers import Proposer

quick = settings(max_examples=80, deadline=None)
PROPOSER = Proposer(gpu=False)


def every_distance(queries, references, metric):
    return np.stack([row_distances(np.broadcast_to(query, references.shape), references, metric) for query in queries])


def brute_force(queries, references, place, k, metric):
    distances = every_distance(queries, references, metric)
    order = np.lexsort((np.broadcast_to(place, distances.shape), distances), axis=1)[:, :k]
    found = np.full((len(queries), k), np.inf), np.full((len(queries), k), NO_REFERENCE)
    width = order.shape[1]
    found[0][:, :width], found[1][:, :width] = np.take_along_axis(distances, order, axis=1), place[order]
    return found


def assert_exact(queries, references, k, metric, margin=2, place=None):
    place = np.arange(len(references)) if place is None else place
    expected = brute_force(queries, references, place, k, metric)
    found = nearest_places(queries, References(place, references), k, margin, metric, PROPOSER.nearest)
    assert found[1].tolist() == expected[1].tolist()
    assert found[0].tobytes() == expected[0].tobytes()


@st.composite
def searches(draw, values):
    dimension = draw(st.integers(1, 9))
    rows = [
        draw(st.lists(st.lists(values, min_size=dimension, max_size=dimension), min_size=1, max_size=most))
        for most in (30, 60)
    ]
    queries, references = (np.array(side, np.float32) for side in rows)
    k = draw(st.integers(1, len(references) + 2))
    place = np.array(draw(st.permutations(range(len(references)))))
    return queries, references, k, draw(st.sampled_from(METRICS)), draw(st.integers(0, 9)), place


@quick
@given(searches(st.integers(-2, 2)))
def test_tied_whole_numbers_are_found_as_brute_force_finds_them(drawn):
    assert_exact(*drawn)


@quick
@given(searches(st.floats(-100, 100, width=32)))
def test_floats_are_found_as_brute_force_finds_them(drawn):
    assert_exact(*drawn)


@quick
@given(searches(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_numbers_whose_squares_vanish_or_overflow_in_float32_do_not_mislead(drawn):
    assert_exact(*drawn)


@pytest.mark.parametrize("metric", METRICS)
def test_near_ties_below_the_error_of_float32_are_told_apart(metric):
    rng = np.random.default_rng(1)
    centre = rng.uniform(100, 200, 32)
    references = (centre + rng.standard_normal((400, 32)) * 1e-4).astype(np.float32)
    queries = (centre + rng.standard_normal((40, 32)) * 1e-4).astype(np.float32)
    assert_exact(queries, references, 7, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_many_copies_of_one_descriptor_cost_no_more_than_k_of_them(metric):
    rng = np.random.default_rng(2)
    references = np.repeat(rng.standard_normal((5, 16)).astype(np.float32), 400, axis=0)
    queries = rng.standard_normal((30, 16)).astype(np.float32)
    assert_exact(queries, references, 6, metric, place=rng.permutation(len(references)))


@pytest.mark.parametrize("metric", METRICS)
def test_one_huge_row_does_not_spoil_the_others(metric):
    rng = np.random.default_rng(3)
    queries, references = (rng.standard_normal((n, 8)).astype(np.float32) for n in (40, 300))
    references[17] *= 1e15
    assert_exact(queries, references, 4, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_a_proposer_that_is_wrong_by_all_that_its_bound_allows_changes_nothing(metric):
    """As another BLAS or a GPU might be: values are shifted within the bound and proposals come in that order."""
    rng = np.random.default_rng(4)
    queries, references = (rng.integers(-3, 4, (n, 64)).astype(np.float32) for n in (50, 500))

    def shaky(queries, references, count, metric):
        sign = 1 if metric == "L2" else -1
        distances = every_distance(queries, references, metric)
        reach = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(references, axis=1)
        distances = distances + rng.uniform(-1, 1, distances.shape) * 64 * 2.0**-23 * reach
        rows = np.argsort(distances, axis=1)[:, :count]
        return (sign * np.take_along_axis(distances, rows, axis=1)).astype(np.float32), rows

    place = rng.permutation(500)
    found = nearest_places(queries, References(place, references), 10, 3, metric, shaky)
    expected = brute_force(queries, references, place, 10, metric)
    assert found[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dimension", [3, 256, 5_000])
def test_distances_of_pairs_do_not_depend_on_which_pairs_are_measured_together(metric, dimension):
    rng = np.random.default_rng(5)
    queries, references = (rng.standard_normal((n, dimension)).astype(np.float32) for n in (20, 50))
    pairs = rng.integers(20, size=300), rng.integers(50, size=300)
    together = pair_distances(queries, references, pairs, metric)
    alone = [
        pair_distances(queries, references, (pairs[0][i : i + 1], pairs[1][i : i + 1]), metric) for i in range(300)
    ]
    assert np.concatenate(alone).tobytes() == together.tobytes()


@quick
@given(searches(st.integers(-2, 2)), st.integers(-30, 40))
def test_pairs_within_a_limit_are_all_of_them_and_no_other(drawn, limit):
    queries, references, _, metric, _, _ = drawn
    limits = np.full(len(queries), float(limit))
    found = {
        (query, reference): distance
        for pairs, distances in pairs_within(queries, references, limits, metric, below_by_numpy)
        for query, reference, distance in zip(*map(np.ndarray.tolist, (*pairs, distances)), strict=True)
    }
    distances = every_distance(queries, references, metric)
    expected = {(q, r): distances[q, r] for q, r in zip(*np.nonzero(distances <= limit), strict=True)}
    assert found == expected


@quick
@given(searches(st.integers(-2, 2)), st.integers(1, 5))
def test_however_references_are_cut_their_merged_neighbours_are_the_same(drawn, parts):
    queries, references, k, metric, margin, place = drawn
    numbers = np.arange(len(queries))

    def found(rows):
        slice_ = References(place[rows], references[rows])
        return TopK.of(numbers, *nearest_places(queries, slice_, k, margin, metric, PROPOSER.nearest), k)

    whole = found(np.arange(len(references)))
    cut = TopK.merged([found(rows) for rows in np.array_split(np.arange(len(references)), parts)])
    assert {name: array.tobytes() for name, array in cut.to_arrays().items()} == {
        name: array.tobytes() for name, array in whole.to_arrays().items()
    }


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="dimension 3, references 4"):
        nearest_places(
            np.zeros((1, 3), np.float32),
            References(np.arange(1), np.zeros((1, 4), np.float32)),
            1,
            0,
            "L2",
            PROPOSER.nearest,
        )
