"""Nearest rows are those of exact arithmetic, ties and all, whoever proposes and however queries are cut."""

from fractions import Fraction

import numpy as np
import pytest
from exact_rows import (
    ALL_DISTANCES,
    FLOAT64_ROUNDING,
    PRODUCT_DISTANCES,
    ROUND,
    ROUND_DOUBLES,
    RUGGED,
    decided,
    every_decided,
    every_exact,
    is_rounded,
    made,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.search.bound import Bound
from raybench.search.by_faiss import ByFaiss
from raybench.search.by_numpy import ByNumpy
from raybench.search.by_torch import ByTorch
from raybench.search.distances import row_distances
from raybench.search.nearest import Neighbours, nearest
from raybench.search.proposers import in_question
from raybench.search.value_tiles import FEW

quick = settings(max_examples=25, deadline=None)  # no deadline: cores are shared
SEEDS = st.integers(0, 2**32)
PROPOSERS = {
    "numpy": ByNumpy(),
    "numpy by tiles": ByNumpy(150),
    "FAISS": ByFaiss(gpu=False),
    "FAISS with none to spare": ByFaiss(gpu=False, more=0),
    "torch": ByTorch("cpu"),
    "torch by tiles": ByTorch("cpu", 150),
}


def assert_exact(queries, references, k, distance, proposer, places=None):
    """Distances to the bit and places, of ROUND rows."""
    places = np.arange(len(references)) if places is None else places
    distances = every_decided(queries, references, distance)
    order = np.lexsort((np.broadcast_to(places, distances.shape), distances), axis=1)[:, :k]
    found = nearest(queries, references, k, distance, proposer, places)
    assert found.place.tolist() == places[order].tolist()
    assert found.distance.tobytes() == np.take_along_axis(distances, order, axis=1).tobytes()


def assert_rounded(queries, references, k, distance, proposer):
    """Of RUGGED rows: what is found is in order and exact but for rounding, and nothing nearer was left out."""
    fractions, sizes = every_exact(queries, references, distance)
    found = nearest(queries, references, k, distance, proposer)
    dimension = queries.shape[1]
    for query, (row, size) in enumerate(zip(fractions, sizes, strict=True)):
        listed = list(zip(found.distance[query].tolist(), found.place[query].tolist(), strict=True))
        assert listed == sorted(listed)
        assert len({place for _, place in listed}) == len(listed) == min(k, len(references))
        assert all(is_rounded(value, row[place], size[place], dimension, distance) for value, place in listed)
        last = listed[-1][1]
        for other in set(range(len(references))) - {place for _, place in listed}:
            assert row[other] >= row[last] - 4 * (dimension + 4) * FLOAT64_ROUNDING * (size[other] + size[last])


@st.composite
def cases(draw, kinds, distance, most_queries=25, even=False):
    """Queries, references and k, of a kind."""
    rng = np.random.default_rng(draw(SEEDS))
    dimension = draw(st.integers(1, 4)) * 2 if even else draw(st.integers(1, 9))
    kind, shared = draw(st.sampled_from(sorted(kinds))), draw(st.booleans())
    references = made(rng, kind, (draw(st.integers(1, 60)), dimension), distance)
    queries = made(rng, kind, (draw(st.integers(1, most_queries)), dimension), distance)
    if shared:  # queries that stand among the references
        queries = references[rng.integers(len(references), size=len(queries))]
    return queries, references, draw(st.integers(1, len(references) + 2))


@pytest.mark.parametrize("name", PROPOSERS)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@quick
@given(st.data())
def test_every_proposer_leads_to_the_neighbours_of_exact_arithmetic(distance, name, data):
    queries, references, k = data.draw(cases(ROUND, distance))
    places = np.array(data.draw(st.permutations(range(len(references))))) * 3
    assert_exact(queries, references, k, distance, PROPOSERS[name], places)


@pytest.mark.parametrize("cells", [1, 150, 10**6])
@pytest.mark.parametrize("distance", ALL_DISTANCES)
@quick
@given(st.data())
def test_every_distance_and_tile_leads_to_the_neighbours_of_exact_arithmetic(distance, cells, data):
    kinds = ROUND if distance == "masked_L1" else ROUND | ROUND_DOUBLES
    queries, references, k = data.draw(cases(kinds, distance, even=True))
    places = np.array(data.draw(st.permutations(range(len(references)))))
    assert_exact(queries, references, k, distance, ByNumpy(cells), places)


@pytest.mark.parametrize("name", PROPOSERS)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@quick
@given(st.data())
def test_where_float64_rounds_nothing_nearer_is_left_out(distance, name, data):
    assert_rounded(*data.draw(cases(RUGGED, distance)), distance, PROPOSERS[name])


@pytest.mark.parametrize("distance", ["L2", "L1"])
@quick
@given(st.data())
def test_rooted_and_absolute_distances_leave_nothing_nearer_out(distance, data):
    assert_rounded(*data.draw(cases(RUGGED, distance)), distance, ByNumpy(200))


@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@pytest.mark.parametrize("name", ["numpy", "FAISS", "torch"])
def test_a_bound_that_is_too_small_is_found_out(monkeypatch, name, distance):
    """The rows of these tests are hard enough to tell: without the share, or with a hundredth of it, they fail."""
    monkeypatch.setattr(Bound, "share", 2.0**-31)
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        queries, references = (made(rng, "far floats", (n, 32), distance) for n in (30, 200))
        distances = np.stack(
            [row_distances(np.broadcast_to(q, references.shape), references, distance) for q in queries]
        )
        found = nearest(queries, references, 3, distance, ByFaiss(False, 0) if name == "FAISS" else PROPOSERS[name])
        wrong += found.place.tolist() != np.argsort(distances, axis=1, kind="stable")[:, :3].tolist()
    assert wrong


@pytest.mark.parametrize("kind", ["far floats", "far tiny floats", "far huge floats"])
@pytest.mark.parametrize("name", PROPOSERS)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
def test_near_ties_below_the_error_of_float32_are_told_apart(distance, name, kind):
    rng = np.random.default_rng(1)
    references, queries = (made(rng, kind, (n, 32), distance) for n in (300, 12))
    assert_rounded(queries, references, 7, distance, PROPOSERS[name])


@pytest.mark.parametrize("name", PROPOSERS)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
def test_many_copies_of_one_descriptor_cost_no_more_than_k_of_them(distance, name):
    rng = np.random.default_rng(2)
    references = np.repeat(rng.integers(-9, 9, (5, 16)).astype(np.float32), 80, axis=0)
    queries = rng.integers(-9, 9, (12, 16)).astype(np.float32)
    assert_exact(queries, references, 6, distance, PROPOSERS[name], rng.permutation(len(references)))


def test_widening_asks_for_no_more_than_k_copies(monkeypatch):
    from raybench.search import nearest as module

    asked = []

    def counted(queries, references, limits, distance):
        asked.append(len(references))
        return within(queries, references, limits, distance)

    within = module.within
    monkeypatch.setattr(module, "within", counted)
    references = np.repeat(np.eye(4, dtype=np.float32), 50, axis=0)
    assert_exact(references[:2], references, 3, "squared_L2", ByFaiss(False, 0), np.arange(200)[::-1])
    assert asked == [4 * 3]


@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
def test_a_proposer_that_is_wrong_by_all_that_its_bound_allows_changes_nothing(distance):
    """As another BLAS or a GPU might be: values are shifted within the bound and proposals come in that order."""
    rng = np.random.default_rng(4)
    queries, references = (rng.integers(-3, 4, (n, 64)).astype(np.float32) for n in (30, 200))
    distances = every_decided(queries, references, distance)
    errors = Bound(distance, 64).errors(
        np.linalg.norm(queries, axis=1), float(np.linalg.norm(references, axis=1).max())
    )

    class Shaky(ByFaiss):
        def lists(self, queries, references, count, distance):
            shift = rng.choice([-0.99, 0.99], distances.shape) * errors[:, None]
            rows = np.argsort(distances + shift, axis=1)[:, :count]
            return np.take_along_axis(distances + shift, rows, axis=1), rows

    assert_exact(queries, references, 10, distance, Shaky(gpu=False, more=3), rng.permutation(200))


@pytest.mark.parametrize("k", [1, FEW, 10])
@pytest.mark.parametrize("name", ["numpy", "numpy by tiles", "FAISS", "torch", "torch by tiles"])
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
def test_of_rows_well_apart_little_is_proposed_and_nothing_left_unsettled(distance, name, k):
    rng = np.random.default_rng(7)
    queries, references = (rng.standard_normal((n, 16)).astype(np.float32) for n in (20, 3_000))
    proposed = list(PROPOSERS[name].near(queries, references, k, distance))
    assert sum(len(left) for _, left in proposed) == 0
    assert 20 * k <= sum(len(pairs[0]) for pairs, _ in proposed) <= 20 * k * 1.2


def listed(values, rows, k, width, is_all=False):
    (query, reference), left = in_question(np.array(values, np.float32), np.array(rows), k, np.array(width), is_all)
    return list(zip(query.tolist(), reference.tolist(), strict=True)), left.tolist()


def test_lists_that_end_beyond_the_width_are_settled_and_cut_there():
    assert listed([[1, 2, 4, 5]], [[7, 3, 9, 1]], 2, [2.0]) == ([(0, 7), (0, 3), (0, 9)], [])


def test_lists_that_end_within_the_width_are_unsettled_and_measured_whole():
    assert listed([[1, 2, 3, 4]], [[7, 3, 9, 1]], 2, [2.0]) == ([(0, 7), (0, 3), (0, 9), (0, 1)], [0])
    assert listed([[1, 2, 3, 4]], [[7, 3, 9, 1]], 2, [2.0], is_all=True)[1] == []


def test_lists_with_empty_places_or_of_unknown_error_are_unsettled():
    assert listed([[1, 9], [1, 9]], [[4, 5], [4, -1]], 1, [1.0, 1.0]) == ([(0, 4), (1, 4)], [1])
    assert listed([[1, 9]], [[4, 5]], 1, [np.inf], is_all=True) == ([(0, 4), (0, 5)], [0])
    assert listed([[np.nan, 9]], [[4, 5]], 1, [0.0], is_all=True) == ([(0, 4), (0, 5)], [0])


@quick
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=60), st.integers(1, 4))
def test_rows_are_filled_by_distance_then_place_whatever_their_number(drawn, k):
    drawn = sorted(drawn, key=lambda pair: pair[0])
    query, distance = (np.array([pair[i] for pair in drawn], np.int64) for i in (0, 1))
    place = np.random.default_rng(len(drawn)).permutation(len(drawn))
    found = Neighbours.unknown(7, k)
    found.fill(query, place, distance.astype(np.float64))
    for row in range(7):
        own = sorted(zip(distance[query == row].tolist(), place[query == row].tolist(), strict=True))[:k]
        expected = own + [(np.inf, NO_REFERENCE)] * (k - len(own))
        assert list(zip(found.distance[row].tolist(), found.place[row].tolist(), strict=True)) == expected


@quick
@given(st.data(), st.integers(1, 5))
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
def test_however_references_are_cut_their_merged_neighbours_are_the_same(distance, data, parts):
    queries, references, k = data.draw(cases(ROUND, distance))
    places = np.array(data.draw(st.permutations(range(len(references)))))

    def found(rows):
        own = nearest(queries, references[rows], k, distance, PROPOSERS["FAISS"], places[rows])
        return TopK.of(np.arange(len(queries)), own.distance, own.place, k)

    whole = found(np.arange(len(references)))
    cut = TopK.merged([found(rows) for rows in np.array_split(np.arange(len(references)), parts)])
    assert {name: array.tobytes() for name, array in cut.to_arrays().items()} == {
        name: array.tobytes() for name, array in whole.to_arrays().items()
    }


def brute_force(queries, references, distance):
    rows = [row_distances(np.broadcast_to(query, references.shape), references, distance) for query in queries]
    order = np.argsort(rows, axis=1, kind="stable")
    return np.take_along_axis(np.array(rows), order, axis=1), order


def assert_measured(queries, references, k, distance, proposer):
    """Rows of which float64 itself loses or overflows: as if every pair had been measured."""
    distances, order = brute_force(queries, references, distance)
    found = nearest(queries, references, k, distance, proposer)
    assert found.place.tolist() == order[:, :k].tolist()
    assert found.distance.tobytes() == np.ascontiguousarray(distances[:, :k]).tobytes()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.parametrize("distance", ["L2", "squared_L2", "L1"])
def test_neither_tiny_nor_huge_numbers_mislead(distance, scale):
    rng = np.random.default_rng(0)
    queries, references = rng.standard_normal((20, 12)) * scale, rng.standard_normal((300, 12)) * scale
    assert_measured(queries, references, 5, distance, ByNumpy(700))


@pytest.mark.parametrize("k", [1, 2, FEW, FEW + 1])
def test_a_query_or_row_that_overflows_does_not_spoil_the_others(k):
    rng = np.random.default_rng(6)
    queries, references = rng.standard_normal((12, 8)), rng.standard_normal((90, 8))
    queries[::3] *= 1e30  # squares are beyond float32
    queries[1] *= 1e200  # beyond float32 itself
    assert_measured(queries, references, k, "L2", ByNumpy(400))
    references[17] *= 1e200
    assert_measured(queries, references, k, "L2", ByNumpy(400))


@pytest.mark.parametrize("name", PROPOSERS)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
def test_results_are_byte_equal_for_every_proposer_and_cut(distance, name):
    rng = np.random.default_rng(3)
    queries, references = rng.standard_normal((60, 64), np.float32), rng.standard_normal((500, 64), np.float32)
    whole = nearest(queries, references, 10, distance)
    cut = [nearest(queries[at : at + 7], references, 10, distance, PROPOSERS[name]) for at in range(0, 60, 7)]
    assert np.concatenate([part.distance for part in cut]).tobytes() == whole.distance.tobytes()
    assert np.concatenate([part.place for part in cut]).tobytes() == whole.place.tobytes()


@pytest.mark.parametrize("name", PROPOSERS)
def test_fewer_references_than_k_are_all_returned(name):
    queries, references = np.zeros((2, 3), np.float32), np.ones((4, 3), np.float32)
    assert nearest(queries, references, 9, "squared_L2", PROPOSERS[name]).place.tolist() == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("name", PROPOSERS)
def test_no_queries_or_no_references_give_empty_rows(name):
    rows = np.ones((4, 3), np.float32)
    assert nearest(rows[:0], rows, 2, "ip", PROPOSERS[name]).place.shape == (0, 2)
    assert nearest(rows, rows[:0], 2, "ip", PROPOSERS[name]).place.shape == (4, 0)


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="dimension 3, references 4"):
        nearest(np.zeros((1, 3)), np.zeros((1, 4)), 1, "L2")


def test_the_distance_of_a_known_pair_is_on_paper():
    found = nearest(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]), 2, "L2")
    assert (found.distance.tolist(), found.place.tolist()) == ([[1.0, 5.0]], [[1, 0]])
    assert decided(Fraction(25), "L2") == 5.0
