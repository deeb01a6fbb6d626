"""Counts of closer references are those of exact arithmetic, for every distance and tile."""

import numpy as np
import pytest
from exact_rows import ALL_DISTANCES, ROUND, ROUND_DOUBLES, RUGGED, every_decided, made
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.partials import Counts
from raybench.search.bound import Bound
from raybench.search.by_numpy import ByNumpy
from raybench.search.by_torch import PRODUCTS, ByTorch
from raybench.search.closer import closer_counts, nearest_and_closer
from raybench.search.distances import MASKED_DISTANCES, row_distances
from raybench.search.value_tiles import FEW

quick = settings(max_examples=30, deadline=None)  # no deadline: cores are shared


@st.composite
def searches(draw, distance):
    """Rows, their exact distances, thresholds that are distances of some pairs, cuts and groups."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(sorted(ROUND if distance == "masked_L1" else ROUND | ROUND_DOUBLES)))
    n, m = draw(st.integers(1, 70)), draw(st.integers(1, 80))
    queries, references = made(rng, kind, (n, 4), distance), made(rng, kind, (m, 4), distance)
    distances = every_decided(queries, references, distance)
    thresholds = np.take_along_axis(distances, rng.integers(0, m, (n, 3)), axis=1)
    thresholds[:, 2] = np.nextafter(thresholds[:, 2], rng.choice([-np.inf, np.inf], n))
    groups = rng.integers(0, 4, n).astype(np.int32), rng.integers(0, 4, m).astype(np.int32)
    return (queries, references, thresholds, rng.integers(0, m + 1, (n, 4)), groups), distances


def assert_counted(found, distances, thresholds, cuts, groups):
    usable = groups[0][:, None] != groups[1]
    within = np.arange(distances.shape[1]) < cuts[:, :, None]
    counted = usable[:, None, None] & within[:, None]
    for counts, compare in ((found.closer, np.less), (found.equal, np.equal)):
        chosen = compare(distances[:, None], thresholds[:, :, None])
        assert np.array_equal(counts, (chosen[:, :, None] & counted).sum(axis=3))


@pytest.mark.parametrize("distance", ALL_DISTANCES)
@quick
@given(st.data())
def test_counts_are_those_of_exact_distances(distance, data):
    asked, distances = data.draw(searches(distance))
    assert_counted(closer_counts(*asked, distance), distances, *asked[2:])


@pytest.mark.parametrize("cells", [150, 10**6])
@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip"])
@quick
@given(st.data())
def test_counts_on_a_device_are_those_of_exact_distances(distance, cells, data):
    asked, distances = data.draw(searches(distance))
    assert_counted(closer_counts(*asked, distance, ByTorch("cpu", cells)), distances, *asked[2:])


@pytest.mark.parametrize("distance", MASKED_DISTANCES)
@quick
@given(st.data(), st.integers(1, 80), st.integers(1, 100), st.randoms())
def test_counts_are_equal_for_every_tile_and_order_of_tiles(distance, data, tall, wide, random):
    (queries, references, thresholds, cuts, groups), _ = data.draw(searches(distance))
    parts = []
    for start in range(0, len(queries), tall):
        for low in range(0, len(references), wide):
            rows, columns = slice(start, start + tall), slice(low, low + wide)
            own = np.clip(cuts[rows] - low, 0, len(references[columns]))
            part = (thresholds[rows], own, (groups[0][rows], groups[1][columns]), distance)
            index = np.arange(start, start + len(queries[rows]))
            parts.append(Counts.of(index, closer_counts(queries[rows], references[columns], *part).closer))
    random.shuffle(parts)
    whole = closer_counts(queries, references, thresholds, cuts, groups, distance)
    assert np.array_equal(Counts.merged(parts).values, whole.closer)


def every_distance(queries, references, distance):
    return np.array([row_distances(np.broadcast_to(q, references.shape), references, distance) for q in queries])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.parametrize("distance", ["L2", "squared_L2", "L1"])
def test_neither_tiny_nor_huge_numbers_mislead(distance, scale):
    rng = np.random.default_rng(5)
    queries, references = rng.standard_normal((30, 7)), rng.standard_normal((150, 7)) * scale
    queries *= np.where(np.arange(30) % 3, scale, 1.0)[:, None]
    thresholds = np.stack([row_distances(queries, references[start : start + 30], distance) for start in (0, 60)], 1)
    groups = np.zeros(30, np.int32), np.ones(150, np.int32)
    distances = every_distance(queries, references, distance)
    found = closer_counts(queries, references, thresholds, np.full((30, 1), 150), groups, distance)
    assert found.closer[:, :, 0].tolist() == (distances[:, None] < thresholds[:, :, None]).sum(axis=2).tolist()
    _, found = nearest_and_closer(queries, references, np.arange(30), 3, distance, ByNumpy(700))
    true = distances[np.arange(30), np.arange(30), None]
    before = (distances < true) | ((distances == true) & (np.arange(150) < np.arange(30)[:, None]))
    assert found.closer.tolist() == before.sum(axis=1).tolist()


@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip", "L1"])
@quick
@given(st.sampled_from(sorted(RUGGED)), st.integers(0, 2**32))
def test_where_float64_rounds_counts_are_those_that_it_measures(distance, kind, seed):
    rng = np.random.default_rng(seed)
    queries, references = (made(rng, kind, (n, 7), distance) for n in (20, 90))
    distances = every_distance(queries, references, distance)
    thresholds = rng.permuted(distances, axis=1)[:, :4].copy()
    groups = np.zeros(20, np.int32), np.ones(90, np.int32)
    found = closer_counts(queries, references, thresholds, np.full((20, 1), 90), groups, distance)
    assert found.closer[:, :, 0].tolist() == (distances[:, None] < thresholds[:, :, None]).sum(axis=2).tolist()


TILERS = [
    *((ByNumpy(cells), distance) for cells in (1, 300, 10**6) for distance in ALL_DISTANCES),
    *((ByTorch("cpu", cells), distance) for cells in (300, 10**6) for distance in PRODUCTS),
]


@pytest.mark.parametrize(("tiler", "distance"), TILERS, ids=str)
@quick
@given(st.data())
def test_the_references_before_the_true_one_are_those_of_exact_distances(tiler, distance, data):
    (queries, references, *_), distances = data.draw(searches(distance))
    truth = np.array(
        data.draw(st.lists(st.integers(0, len(references) - 1), min_size=len(queries), max_size=len(queries)))
    )
    k = data.draw(st.integers(1, FEW + 2))
    order = np.argsort(distances, axis=1, kind="stable")
    found, before = nearest_and_closer(queries, references, truth, k, distance, tiler)
    assert found.place.tolist() == order[:, :k].tolist()
    assert found.distance.tobytes() == np.take_along_axis(distances, order[:, :k], axis=1).tobytes()
    assert before.closer.tolist() == (order == truth[:, None]).argmax(axis=1).tolist()
    own = np.take_along_axis(distances, truth[:, None], axis=1)
    assert before.fewest.tolist() == (distances < own).sum(axis=1).tolist()
    assert before.most.tolist() == ((distances <= own).sum(axis=1) - 1).tolist()


@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip"])
def test_a_bound_that_is_too_small_is_found_out(monkeypatch, distance):
    monkeypatch.setattr(Bound, "share", 2.0**-31)
    wrong = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        queries, references = (made(rng, "far floats", (n, 32), distance) for n in (20, 200))
        distances = every_distance(queries, references, distance)
        thresholds = np.sort(distances, axis=1)[:, 90:100].copy()
        groups = np.zeros(20, np.int32), np.ones(200, np.int32)
        found = closer_counts(queries, references, thresholds, np.full((20, 1), 200), groups, distance)
        wrong += found.closer[:, :, 0].tolist() != (distances[:, None] < thresholds[:, :, None]).sum(axis=2).tolist()
        _, before = nearest_and_closer(queries, references, np.arange(20), 1, distance)
        wrong += (
            before.closer.tolist() != (distances < distances[np.arange(20), np.arange(20), None]).sum(axis=1).tolist()
        )
    assert wrong


@pytest.mark.parametrize("distance", ["L2", "squared_L2", "L1"])
def test_values_that_overflow_are_measured(distance):
    queries, references = np.full((2, 3), 1e60), np.zeros((4, 3))
    thresholds = np.array([[1e50, 1e200], [1e200, 1e50]])
    groups = np.zeros(2, np.int32), np.ones(4, np.int32)
    found = closer_counts(queries, references, thresholds, np.full((2, 1), 4), groups, distance)
    assert found.closer[:, :, 0].tolist() == [[0, 4], [4, 0]]


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="dimension 3, references 4"):
        nearest_and_closer(np.zeros((1, 3)), np.zeros((1, 4)), np.zeros(1, np.int64), 1, "L2")
