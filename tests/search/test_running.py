"""A search with running thresholds finds what exact arithmetic finds, in whatever precision its scores are."""

import numpy as np
import pytest
from exact_rows import FLOAT64_ROUNDING, PRODUCT_DISTANCES, ROUND, RUGGED, every_decided, every_exact, is_rounded, made
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.search import choice, running
from raybench.search.by_faiss import ByFaiss
from raybench.search.by_numpy import ByNumpy
from raybench.search.choice import chosen_scores
from raybench.search.coarse import CoarseScores, as_floats, reaches
from raybench.search.distances import row_distances
from raybench.search.running import References, nearest_along
from raybench.search.scores import FloatScores, Lengths, rounded_down, set_places

quick = settings(max_examples=40, deadline=None)  # no deadline: cores are shared
SEEDS = st.integers(0, 2**32)


class FloatsInSmallBlocks(FloatScores):
    block_references, tile_cells = 7, 40


class CoarseInSmallBlocks(CoarseScores):
    def __init__(self, queries):
        super().__init__(queries)
        self.block_references, self.tile_cells = 7, 40


SCORES = {
    "float32": FloatScores,
    "float32 in small blocks": FloatsInSmallBlocks,
    "bfloat16": CoarseScores,
    "bfloat16 in small blocks": CoarseInSmallBlocks,
}


def no_proposer():
    raise AssertionError("scores told too little apart")


def cut(references, places, edges):
    """A run of references in pieces that end at these edges."""
    return References(np.split(places, edges), np.split(references, edges))


def signs(rows):
    """Rows of one length of which float64 holds every sum exactly."""
    return np.where(rows > 0, 1, -1).astype(np.float32)


def units(rows):
    """Rows divided by their length, which float32 rounds."""
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@st.composite
def cases(draw, kinds, of_one_length):
    """Queries, a run of references in pieces, k, and the references as a whole with their places."""
    rng = np.random.default_rng(draw(SEEDS))
    dimension = draw(st.integers(1, 9))
    kind = draw(st.sampled_from(sorted(kinds)))
    references = made(rng, kind, (draw(st.integers(1, 90)), dimension), "ip")
    queries = made(rng, kind, (draw(st.integers(1, 25)), dimension), "ip")
    if draw(st.booleans()):  # as descriptors often are
        references, queries = of_one_length(references), of_one_length(queries)
    places = rng.permutation(len(references)) * 3
    edges = sorted(draw(st.lists(st.integers(1, len(references)), max_size=3, unique=True)))
    edges = [edge for edge in edges if edge < len(references)]
    return queries, references, places, cut(references, places, edges), draw(st.integers(1, len(references) + 2))


@pytest.mark.parametrize("name", SCORES)
@quick
@given(st.data())
def test_neighbours_are_those_of_exact_arithmetic_by_both_distances_at_once(name, data):
    queries, references, places, run, k = data.draw(cases(ROUND, signs))
    found = nearest_along(queries, run, k, PRODUCT_DISTANCES, SCORES[name], ByNumpy)
    for one, distance in zip(found, PRODUCT_DISTANCES, strict=True):
        distances = every_decided(queries, references, distance)
        order = np.lexsort((np.broadcast_to(places, distances.shape), distances), axis=1)[:, :k]
        assert one.place.tolist() == places[order].tolist()
        assert one.distance.tobytes() == np.take_along_axis(distances, order, axis=1).tobytes()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@quick
@given(st.data())
def test_where_float64_rounds_nothing_nearer_is_left_out(name, distance, data):
    queries, references, places, run, k = data.draw(cases(RUGGED, units))
    (found,) = nearest_along(queries, run, k, [distance], SCORES[name], ByNumpy)
    fractions, sizes = every_exact(queries, references, distance)
    row_of = {int(place): row for row, place in enumerate(places)}
    for query, (exact, size) in enumerate(zip(fractions, sizes, strict=True)):
        listed = list(zip(found.distance[query].tolist(), found.place[query].tolist(), strict=True))
        rows = [row_of[place] for _, place in listed]
        assert listed == sorted(listed)
        assert len(set(rows)) == len(rows) == min(k, len(references))
        for (value, _), row in zip(listed, rows, strict=True):
            assert is_rounded(value, exact[row], size[row], queries.shape[1], distance)
        for other in set(range(len(references))) - set(rows):
            spare = 4 * (queries.shape[1] + 4) * FLOAT64_ROUNDING * (size[other] + size[rows[-1]])
            assert exact[other] >= exact[rows[-1]] - spare


@pytest.mark.parametrize("kind", [FloatScores, CoarseScores])
@pytest.mark.parametrize("with_offsets", [False, True])
@quick
@given(seed=SEEDS, dimension=st.integers(1, 300))
def test_scores_are_off_by_no_more_than_they_say(kind, with_offsets, seed, dimension):
    rng = np.random.default_rng(seed)
    shift = rng.choice([0.0, 3.0, 100.0])
    queries, references = ((shift + rng.standard_normal((n, dimension))).astype(np.float32) for n in (9, 70))
    offsets = Lengths.of([references]).offsets(references) if with_offsets else None
    scores = kind(queries)
    errors = scores.put(references, offsets)
    exact = queries.astype(np.float64) @ references.astype(np.float64).T
    if with_offsets:
        halves = np.square(references.astype(np.float64)).sum(axis=1) / 2
        exact -= halves - Lengths.of([references]).origin
    stored = scores.values(slice(0, 9)).astype(np.float64)
    assert np.all(np.abs(stored - exact) <= errors[:, None] + scores.rounding * np.abs(stored))


@pytest.mark.parametrize("kind", [FloatScores, CoarseScores])
@pytest.mark.parametrize("long", [60.0, 6_000.0, 1e6])
@quick
@given(seed=SEEDS, dimension=st.integers(1, 40))
def test_short_references_of_a_run_with_a_long_one_are_off_by_no_more_than_is_said(kind, long, seed, dimension):
    rng = np.random.default_rng(seed)
    queries, short = (rng.standard_normal((n, dimension)).astype(np.float32) for n in (5, 30))
    lengths = Lengths.of([short, np.full((1, dimension), long, np.float32)])
    scores = kind(queries)
    errors = scores.put(short, lengths.offsets(short))
    halves = np.square(short.astype(np.float64)).sum(axis=1) / 2
    exact = queries.astype(np.float64) @ short.astype(np.float64).T - (halves - lengths.origin)
    stored = scores.values(slice(0, 5)).astype(np.float64)
    assert np.all(np.abs(stored - exact) <= errors[:, None] + scores.rounding * np.abs(stored))


@pytest.mark.parametrize("kind", [FloatScores, CoarseScores])
def test_one_long_reference_in_another_piece_changes_no_neighbour(kind):
    for seed in range(300):
        rng = np.random.default_rng(seed)
        references = np.concatenate([rng.standard_normal((100, 31)), np.full((1, 31), 4_000)]).astype(np.float32)
        query = rng.standard_normal((1, 31)).astype(np.float32)
        run = cut(references, np.arange(101), [100])
        (found,) = nearest_along(query, run, 3, ["squared_L2"], kind, ByNumpy)
        distances = row_distances(np.broadcast_to(query, references.shape), references, "squared_L2")
        assert found.place[0].tolist() == np.argsort(distances, kind="stable")[:3].tolist()


@pytest.mark.parametrize("kind", [FloatScores, CoarseScores])
@pytest.mark.parametrize("long", [2.0**35, 2.0**38])
def test_where_float64_can_t_tell_references_of_a_long_query_apart_the_lower_place_leads(kind, long):
    queries = np.float32([[long]])
    references = ((1 + np.arange(200) / 256)[:, None] * 2.0**-30).astype(np.float32)
    run = cut(references, np.arange(200), [])
    (found,) = nearest_along(queries, run, 5, ["squared_L2"], kind, ByNumpy)
    assert found.place.tolist() == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("kind", [FloatScores, CoarseScores])
def test_a_bound_that_is_too_small_is_found_out(monkeypatch, kind):
    """The rows of these tests are hard enough to tell: with a hundredth of the error neighbours are missed."""

    class Certain(kind):
        rounding = kind.rounding / 100

        def put(self, references, offsets):
            return super().put(references, offsets) / 100

    wrong = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        queries, references = ((1 + rng.standard_normal((n, 64)) * 1e-3).astype(np.float32) for n in (20, 400))
        if kind is CoarseScores:
            queries, references = (rng.standard_normal((n, 64)).astype(np.float32) for n in (20, 400))
        run = cut(references, np.arange(400), [])
        right = nearest_along(queries, run, 3, ["ip"], kind, ByNumpy)[0]
        wrong += right.place.tolist() != nearest_along(queries, run, 3, ["ip"], Certain, ByNumpy)[0].place.tolist()
    assert wrong


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("distances", [["ip"], ["squared_L2"], ["squared_L2", "ip"]], ids="+".join)
@pytest.mark.parametrize("length", [1.0, None], ids=["one length", "any length"])
def test_of_rows_well_apart_scores_tell_enough(name, distances, length):
    rng = np.random.default_rng(3)
    queries, references = (rng.standard_normal((n, 64)).astype(np.float32) for n in (30, 3_000))
    if length:
        queries, references = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, references))
    found = nearest_along(queries, cut(references, np.arange(3_000), [900]), 10, distances, SCORES[name], no_proposer)
    for one, distance in zip(found, distances, strict=True):
        by_query = [row_distances(np.broadcast_to(query, references.shape), references, distance) for query in queries]
        assert one.place.tolist() == np.argsort(by_query, axis=1)[:, :10].tolist()


def test_references_of_one_length_are_scored_once_for_both_distances():
    put = []

    class Counted(FloatScores):
        def put(self, references, offsets):
            put.append(len(references))
            return super().put(references, offsets)

    rng = np.random.default_rng(4)
    references = rng.standard_normal((500, 32)).astype(np.float32)
    unit = references / np.linalg.norm(references, axis=1, keepdims=True)
    nearest_along(unit[:9], cut(unit, np.arange(500), []), 5, PRODUCT_DISTANCES, Counted, no_proposer)
    assert put == [500]
    nearest_along(unit[:9], cut(references, np.arange(500), []), 5, PRODUCT_DISTANCES, Counted, no_proposer)
    assert put == [500, 500, 500]


def test_only_what_may_still_enter_a_list_is_measured(monkeypatch):
    measured = []

    def counted(queries, references, pairs, distances):
        measured.append(len(pairs[0]))
        return measured_by(queries, references, pairs, distances)

    measured_by = running.measured_by
    monkeypatch.setattr(running, "measured_by", counted)
    rng = np.random.default_rng(5)
    queries, references = (rng.standard_normal((n, 64)).astype(np.float32) for n in (40, 50_000))
    run = cut(references, np.arange(50_000), [20_000])
    for kind, most in ((FloatScores, 1.01), (CoarseScores, 2.5)):
        measured.clear()
        nearest_along(queries, run, 40, ["ip"], kind, no_proposer)
        assert 40 * 40 <= sum(measured) <= most * 40 * 40


@pytest.mark.parametrize("name", SCORES)
def test_where_all_rows_are_equal_another_proposer_decides(name):
    references = np.full((900, 8), 0.75, np.float32)
    asked = []

    def other():
        asked.append("FAISS")
        return ByFaiss(gpu=False)

    (found,) = nearest_along(references[:3], cut(references, np.arange(900)[::-1], []), 5, ["ip"], SCORES[name], other)
    assert found.place.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert asked == ["FAISS"]


@quick
@given(st.data())
def test_bits_of_bfloat16_are_compared_as_the_numbers_are(data):
    import torch

    rng = np.random.default_rng(data.draw(SEEDS))
    numbers = torch.from_numpy(rng.standard_normal((6, 50)).astype(np.float32)).to(torch.bfloat16)
    numbers[:, :4] = torch.tensor([0.0, -0.0, torch.inf, -torch.inf])
    limits = numbers[torch.arange(6), torch.from_numpy(rng.integers(0, 50, 6))]
    found = reaches(numbers.view(torch.int16).numpy(), limits.view(torch.int16).numpy())
    assert found.tolist() == (numbers >= limits[:, None]).tolist()
    assert as_floats(numbers.view(torch.int16).numpy()).tolist() == numbers.float().tolist()


@quick
@given(st.lists(st.lists(st.booleans(), min_size=13, max_size=13), min_size=1, max_size=9))
def test_set_places_are_those_of_nonzero(rows):
    mask = np.array(rows)
    assert [places.tolist() for places in set_places(mask)] == [places.tolist() for places in np.nonzero(mask)]


def test_a_limit_is_never_rounded_up():
    limits = np.random.default_rng(0).standard_normal(1_000)
    assert (rounded_down(limits) <= limits).all()
    assert (rounded_down(limits) > limits - 1e-6).all()


def test_small_searches_never_wait_for_torch_and_large_ones_take_what_is_faster(monkeypatch):
    assert chosen_scores(100, 1_000, 64, on_device=False) is FloatScores
    assert chosen_scores(100, 1_000, 64, on_device=True) is FloatScores  # no test machine has a GPU that torch sees
    seconds = {CoarseScores: 1.0, FloatScores: 2.0}
    monkeypatch.setattr(choice, "_seconds", lambda kind, rows: seconds[kind])
    monkeypatch.setattr(choice, "multiplies_coarsely", lambda: True)
    choice._faster_on_cpu.cache_clear()
    assert chosen_scores(10_000, 1_000_000, 64, on_device=False) is CoarseScores
    seconds[CoarseScores] = 3.0
    choice._faster_on_cpu.cache_clear()
    assert chosen_scores(10_000, 1_000_000, 64, on_device=False) is FloatScores
    monkeypatch.setattr(choice, "multiplies_coarsely", lambda: False)
    seconds[CoarseScores] = 1.0
    choice._faster_on_cpu.cache_clear()
    assert chosen_scores(10_000, 1_000_000, 64, on_device=False) is FloatScores
    choice._faster_on_cpu.cache_clear()
