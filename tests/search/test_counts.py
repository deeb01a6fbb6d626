"""Counts of closer references are those that the row-wise routine alone gives, for every distance and tile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_vectors import KINDS, every_distance, made

from raybench.metrics.partials import Counts
from raybench.search.counts import closer_counts
from raybench.search.distances import MASKED_DISTANCES, row_distances

quick = settings(max_examples=30, deadline=None)  # no deadline: cores are shared

cases = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(1, 70), st.integers(1, 200))


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
    closer = every_distance(queries, references, distance)[:, None] < thresholds[:, :, None]
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


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e150])
@pytest.mark.parametrize("distance", ["L2", "L1"])
def test_neither_tiny_nor_huge_numbers_mislead(distance, scale):
    rng = np.random.default_rng(5)
    queries, references = rng.standard_normal((30, 7)), rng.standard_normal((150, 7)) * scale
    queries *= np.where(np.arange(30) % 3, scale, 1.0)[:, None]
    thresholds = np.stack([row_distances(queries, references[start : start + 30], distance) for start in (0, 60)], 1)
    groups = np.zeros(30, np.int32), np.ones(150, np.int32)
    expected = (every_distance(queries, references, distance)[:, None] < thresholds[:, :, None]).sum(axis=2)
    found = closer_counts(queries, references, thresholds, np.full((30, 1), 150), groups, distance)
    assert found[:, :, 0].tolist() == expected.tolist()
