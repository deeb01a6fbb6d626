"""Nearest references and counts of closer ones: what the row-wise routine alone gives, for every distance and tile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.distances import MASKED_DISTANCES, row_distances
from raybench.metrics.hpatches_counts import closer_counts
from raybench.metrics.hpatches_nearest import nearest
from raybench.metrics.hpatches_proposals import proposer
from raybench.metrics.partials import Counts

quick = settings(max_examples=30, deadline=None)  # no deadline: cores are shared

KINDS = ("small integers", "floats", "float32", "far from the origin", "tiny", "huge", "all equal")


def made(rng, kind, shape, distance):
    """Vectors that are hard for a product: ties, large offsets, sizes at the ends of float32."""
    if distance == "hamming":
        return rng.integers(0, 2 if kind == "small integers" else 256, shape, dtype=np.uint8)
    values = {
        "small integers": lambda: rng.integers(0, 3, shape).astype(np.float32),
        "floats": lambda: rng.standard_normal(shape),
        "float32": lambda: rng.standard_normal(shape).astype(np.float32),
        "far from the origin": lambda: 1e6 + rng.integers(0, 3, shape) / 64,
        "tiny": lambda: rng.standard_normal(shape) * 1e-30,
        "huge": lambda: rng.standard_normal(shape) * 1e30,
        "all equal": lambda: np.full(shape, 0.1, np.float32),
    }
    return values[kind]()


def all_distances(queries, references, distance):
    return np.stack([row_distances(query[None].repeat(len(references), 0), references, distance) for query in queries])


cases = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(1, 70), st.integers(1, 200))


@pytest.mark.parametrize("distance", MASKED_DISTANCES)
@quick
@given(cases)
def test_the_nearest_is_the_first_of_the_smallest_distances(distance, case):
    kind, seed, n, m = case
    rng = np.random.default_rng(seed)
    queries, references = made(rng, kind, (n, 6), distance), made(rng, kind, (m, 6), distance)
    index, distances = nearest(queries, references, distance)
    every = all_distances(queries, references, distance)
    assert index.tolist() == every.argmin(axis=1).tolist()
    assert distances.tobytes() == every.min(axis=1).tobytes()


@st.composite
def searches(draw, distance):
    kind, seed, n, m = draw(cases)
    rng = np.random.default_rng(seed)
    queries, references = made(rng, kind, (n, 6), distance), made(rng, kind, (m, 6), distance)
    views = references[rng.integers(0, m, (n, 3))] if rng.random() < 0.5 else made(rng, kind, (n, 3, 6), distance)
    thresholds = np.stack([row_distances(queries, views[:, i], distance) for i in range(3)], axis=1)
    groups = rng.integers(0, 4, n).astype(np.int32), rng.integers(0, 4, m).astype(np.int32)
    return queries, references, thresholds, rng.integers(0, m + 1, (n, 4)), groups


@pytest.mark.parametrize("distance", MASKED_DISTANCES)
@quick
@given(st.data())
def test_counts_are_those_of_the_row_wise_distances(distance, data):
    queries, references, thresholds, cuts, groups = data.draw(searches(distance))
    closer = all_distances(queries, references, distance)[:, None] < thresholds[:, :, None]
    usable = groups[0][:, None] != groups[1]
    within = np.arange(len(references)) < cuts[:, :, None]
    expected = (closer[:, :, None] & usable[:, None, None] & within[:, None]).sum(axis=3)
    assert np.array_equal(closer_counts(queries, references, thresholds, cuts, groups, distance), expected)


@pytest.mark.parametrize("distance", MASKED_DISTANCES)
@quick
@given(st.data(), st.integers(1, 80), st.integers(1, 100), st.randoms())
def test_counts_are_equal_for_every_tile_and_order_of_tiles(distance, data, tall, wide, random):
    queries, references, thresholds, cuts, groups = data.draw(searches(distance))
    parts = []
    for start in range(0, len(queries), tall):
        for low in range(0, len(references), wide):
            rows, columns = slice(start, start + tall), slice(low, low + wide)
            own = np.clip(cuts[rows] - low, 0, len(references[columns]))
            part = (thresholds[rows], own, (groups[0][rows], groups[1][columns]), distance)
            index = np.arange(start, start + len(queries[rows]))
            parts.append(Counts.of(index, closer_counts(queries[rows], references[columns], *part)))
    random.shuffle(parts)
    whole = closer_counts(queries, references, thresholds, cuts, groups, distance)
    assert np.array_equal(Counts.merged(parts).values, whole)


@quick
@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(1, 300))
def test_the_bound_of_a_product_holds_the_exact_closeness(kind, seed, dimension):
    """Against sums of exact fractions: neither the product nor its bound is trusted."""
    from fractions import Fraction

    rng = np.random.default_rng(seed)
    queries, references = made(rng, kind, (2, dimension), "L2"), made(rng, kind, (3, dimension), "L2")
    proposed = proposer(queries, references, "L2")
    closeness = proposed.closeness(slice(None))
    distances = all_distances(queries, references, "L2")
    low, high = proposed.bounds(slice(None), distances)
    for i, query in enumerate(queries.tolist()):
        for j, reference in enumerate(references.tolist()):
            square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(query, reference, strict=True))
            assert float(square) == pytest.approx(distances[i, j] ** 2, rel=1e-12)
            assert low[i, j] <= closeness[i, j] <= high[i, j]
