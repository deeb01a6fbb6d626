"""Pairs within limits are all of them and no other, by exact arithmetic, whoever proposes."""

import numpy as np
import pytest
from exact_rows import ALL_DISTANCES, PRODUCT_DISTANCES, ROUND, RUGGED, every_decided, made
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.search.bound import Bound
from raybench.search.by_faiss import ByFaiss
from raybench.search.by_numpy import ByNumpy
from raybench.search.by_torch import ByTorch, multiplier
from raybench.search.distances import row_distances
from raybench.search.nearest import within

quick = settings(max_examples=25, deadline=None)  # no deadline: cores are shared
PROPOSERS = {
    "numpy": ByNumpy(),
    "numpy by tiles": ByNumpy(100),
    "FAISS": ByFaiss(gpu=False),
    "torch": ByTorch("cpu"),
    "torch by tiles": ByTorch("cpu", 100),
}


def found(queries, references, limits, distance, proposer):
    return {
        (query, reference): value
        for pairs, distances in within(queries, references, limits, distance, proposer)
        for query, reference, value in zip(*map(np.ndarray.tolist, (*pairs, distances)), strict=True)
    }


def expected(distances, limits):
    return {(q, r): distances[q, r] for q, r in zip(*np.nonzero(distances <= limits[:, None]), strict=True)}


@st.composite
def cases(draw, distance):
    """Rows, and limits that are exactly the distance of some pair, or the next number below."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind, dimension = draw(st.sampled_from(sorted(ROUND))), 2 * draw(st.integers(1, 4))
    queries, references = (made(rng, kind, (draw(st.integers(1, most)), dimension), distance) for most in (12, 40))
    distances = every_decided(queries, references, distance)
    limits = rng.permuted(distances, axis=1)[:, 0].copy()
    below = rng.random(len(limits)) < 0.3
    limits[below] = np.nextafter(limits[below], -np.inf)
    limits[rng.random(len(limits)) < 0.1] = np.inf
    return queries, references, limits, distances


@pytest.mark.parametrize("name", PROPOSERS)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@quick
@given(st.data())
def test_every_proposer_leads_to_all_pairs_within(distance, name, data):
    queries, references, limits, distances = data.draw(cases(distance))
    assert found(queries, references, limits, distance, PROPOSERS[name]) == expected(distances, limits)


@pytest.mark.parametrize("distance", ALL_DISTANCES)
@quick
@given(st.data())
def test_every_distance_leads_to_all_pairs_within(distance, data):
    queries, references, limits, distances = data.draw(cases(distance))
    assert found(queries, references, limits, distance, None) == expected(distances, limits)


@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@pytest.mark.parametrize("name", PROPOSERS)
@quick
@given(st.sampled_from(sorted(RUGGED)), st.integers(0, 2**32))
def test_where_float64_rounds_pairs_are_those_that_it_measures(distance, name, kind, seed):
    rng = np.random.default_rng(seed)
    queries, references = (made(rng, kind, (n, 7), distance) for n in (9, 40))
    rows = [row_distances(np.broadcast_to(query, references.shape), references, distance) for query in queries]
    limits = np.array([rng.choice(row) for row in rows])
    assert found(queries, references, limits, distance, PROPOSERS[name]) == expected(np.array(rows), limits)


@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_bound_that_is_too_small_is_found_out(monkeypatch, name, distance):
    monkeypatch.setattr(Bound, "share", 2.0**-31)
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        queries, references = (made(rng, "far floats", (n, 32), distance) for n in (20, 200))
        rows = np.array([row_distances(np.broadcast_to(q, references.shape), references, distance) for q in queries])
        limits = np.median(rows, axis=1)
        limits = np.array([row[np.abs(row - limit).argmin()] for row, limit in zip(rows, limits, strict=True)])
        wrong += found(queries, references, limits, distance, PROPOSERS[name]) != expected(rows, limits)
    assert wrong


def test_one_huge_reference_does_not_put_all_others_in_question():
    rng = np.random.default_rng(0)
    queries, references = (rng.standard_normal((n, 16)).astype(np.float32) for n in (5, 400))
    references[7] *= 1e12
    for distance in PRODUCT_DISTANCES:
        limits = np.full(5, 8.0 if distance == "squared_L2" else -8.0)
        (pairs,) = ByNumpy().within(queries, references, limits, distance)
        near = found(queries, references, limits, distance, None)
        assert len(near) <= len(pairs[0]) <= len(near) + 5


@pytest.mark.parametrize("proposer", [ByNumpy(), ByTorch("cpu")], ids=["numpy", "torch"])
def test_values_that_are_no_numbers_are_in_question(proposer):
    queries = np.full((2, 3), 2.0**127, np.float32)
    references = np.array([[1, -1, 1], [1, 1, 1], [2.0**-126, 0, 0]], np.float32)
    (found,) = proposer.within(queries, references, np.zeros(2), "squared_L2")
    assert [column.tolist() for column in found] == [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]


def test_without_a_gpu_numpy_multiplies():
    assert multiplier(gpu=False) == multiplier(gpu=True) == ByNumpy()  # no test machine has a GPU that torch sees


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="dimension 3, references 4"):
        list(within(np.zeros((1, 3)), np.zeros((1, 4)), np.zeros(1), "L2"))
