"""Nearest rows are those of a brute-force search that measures every pair, ties and all, for every size of a tile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_vectors import KINDS, every_distance, made

from raybench.search.distances import DISTANCES, MASKED_DISTANCES
from raybench.search.nearest import FEW, nearest, nearest_and_closer

quick = settings(max_examples=60, deadline=None)  # no deadline: cores are shared


def brute_force(queries, references, distance):
    distances = every_distance(queries, references, distance)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, axis=1), order


def assert_exact(queries, references, k, distance, tile_cells, truth):
    distances, order = brute_force(queries, references, distance)
    found, closer = nearest_and_closer(queries, references, truth, k, distance, tile_cells)
    assert found.index.tolist() == order[:, :k].tolist()
    assert found.distance.tobytes() == np.ascontiguousarray(distances[:, :k]).tobytes()
    assert closer.tolist() == (order == truth[:, None]).argmax(axis=1).tolist()
    alone = nearest(queries, references, k, distance, tile_cells)
    assert (alone.index.tobytes(), alone.distance.tobytes()) == (found.index.tobytes(), found.distance.tobytes())


@st.composite
def searches(draw, values):
    """Queries, references, k, distance, tile and truth; with values of few kinds most distances are tied."""
    distance = draw(st.sampled_from(DISTANCES))
    dimension = draw(st.integers(1, 9))
    rows = [
        draw(st.lists(st.lists(values, min_size=dimension, max_size=dimension), min_size=1, max_size=most))
        for most in (6, 70)
    ]
    kind = np.uint8 if distance == "hamming" else draw(st.sampled_from([np.float32, np.float64]))
    queries, references = (np.array(side).astype(kind) for side in rows)
    truth = np.array([draw(st.integers(0, len(references) - 1)) for _ in queries])
    k = draw(st.integers(1, len(references)))
    return queries, references, k, distance, draw(st.integers(1, 500)), truth


@quick
@given(searches(st.integers(0, 3)))
def test_tied_whole_numbers_are_found_as_brute_force_finds_them(drawn):
    assert_exact(*drawn)


@quick
@given(searches(st.floats(0, 200, width=32)))
def test_floats_are_found_as_brute_force_finds_them(drawn):
    assert_exact(*drawn)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.parametrize("distance", ["L2", "L1"])
def test_neither_tiny_nor_huge_numbers_mislead(distance, scale):
    rng = np.random.default_rng(0)
    queries, references = rng.standard_normal((20, 12)) * scale, rng.standard_normal((300, 12)) * scale
    assert_exact(queries, references, 5, distance, 700, rng.integers(300, size=20))


def test_near_ties_below_the_error_of_float32_are_told_apart():
    rng = np.random.default_rng(1)
    centre = rng.uniform(100, 200, 32)
    references = centre + rng.standard_normal((400, 32)) * 1e-7  # products of float32 see no difference at all
    queries = centre + rng.standard_normal((10, 32)) * 1e-7
    assert_exact(queries, references, 7, "L2", 2_000, rng.integers(400, size=10))


def test_one_huge_row_does_not_spoil_the_others():
    rng = np.random.default_rng(2)
    queries, references = rng.standard_normal((10, 8)), rng.standard_normal((200, 8))
    references[17] *= 1e200
    queries[3] *= 1e180
    assert_exact(queries, references, 4, "L2", 500, rng.integers(200, size=10))


def test_results_are_byte_equal_for_every_tile_and_cut():
    rng = np.random.default_rng(3)
    queries, references = rng.standard_normal((150, 64), np.float32), rng.standard_normal((900, 64), np.float32)
    whole = nearest(queries, references, 10, "L2")
    for cells in (1, 5_000, 10**7):
        assert nearest(queries, references, 10, "L2", cells).distance.tobytes() == whole.distance.tobytes()
    cut = [nearest(queries[at : at + 7], references, 10, "L2").distance for at in range(0, 150, 7)]
    assert np.concatenate(cut).tobytes() == whole.distance.tobytes()


def test_fewer_references_than_k_are_all_returned():
    assert nearest(np.zeros((2, 3)), np.ones((4, 3)), 9, "L2").index.tolist() == [[0, 1, 2, 3]] * 2


def test_no_queries_give_empty_rows():
    assert nearest(np.zeros((0, 3)), np.ones((4, 3)), 2, "L1").index.shape == (0, 2)


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="dimension 3, references 4"):
        nearest(np.zeros((1, 3)), np.zeros((1, 4)), 1, "L2")


@pytest.mark.parametrize("distance", MASKED_DISTANCES)
@quick
@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(1, 70), st.integers(1, 200), st.integers(1, FEW + 2))
def test_hard_vectors_are_found_as_brute_force_finds_them(distance, kind, seed, n, m, k):
    rng = np.random.default_rng(seed)
    queries, references = made(rng, kind, (n, 6), distance), made(rng, kind, (m, 6), distance)
    assert_exact(queries, references, k, distance, 3_000, rng.integers(m, size=n))


@pytest.mark.parametrize("k", [1, 2, FEW])
def test_a_query_that_overflows_does_not_spoil_the_others(k):
    rng = np.random.default_rng(6)
    queries, references = rng.standard_normal((12, 8)), rng.standard_normal((90, 8))
    queries[::3] *= 1e30  # squares are beyond float32
    queries[1] *= 1e200  # beyond float32 itself
    assert_exact(queries, references, k, "L2", 400, rng.integers(90, size=12))
