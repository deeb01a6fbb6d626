"""Proposals keep within their bound, against sums of exact fractions: neither the product nor its bound is trusted."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_vectors import KINDS, every_distance, made

from raybench.search.distances import DISTANCES
from raybench.search.proposals import dot_error, proposing

quick = settings(max_examples=30, deadline=None)  # no deadline: cores are shared


def proposals_of(queries, references, distance):
    return proposing(references, distance)(queries, np.empty((len(queries), len(references)), np.float32))


@pytest.mark.parametrize("distance", DISTANCES)
def test_values_are_those_of_the_distances_within_the_error(distance):
    rng = np.random.default_rng(4)
    queries, references = rng.uniform(0, 255, (50, 128)), rng.uniform(0, 255, (300, 128))
    if distance == "hamming":
        queries, references = queries.astype(np.uint8), references.astype(np.uint8)
    proposals = proposals_of(queries, references, distance)
    true = proposals.at(every_distance(queries, references, distance))
    assert (np.abs(proposals.values - true) <= proposals.error[:, None]).all()
    assert (proposals.error < 0.01 * (true.max(axis=1) - true.min(axis=1)) + (distance == "hamming")).all()


@quick
@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(1, 300))
def test_the_bound_of_a_product_holds_the_exact_square(kind, seed, dimension):
    rng = np.random.default_rng(seed)
    queries, references = made(rng, kind, (2, dimension), "L2"), made(rng, kind, (3, dimension), "L2")
    proposals = proposals_of(queries, references, "L2")
    scale = Fraction(proposals.scale) ** 2
    for i, query in enumerate(queries.tolist()):
        own = sum(Fraction(a) ** 2 for a in query) * scale
        assert abs(Fraction(float(proposals.origin[i])) - own) <= Fraction(float(proposals.error[i]))
        for j, reference in enumerate(references.tolist()):
            square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(query, reference, strict=True)) * scale
            off = abs(Fraction(float(proposals.values[i, j])) - (square - own))
            assert off <= Fraction(float(proposals.error[i]))


@quick
@given(st.integers(0, 2**32), st.integers(1, 400), st.booleans())
def test_a_dot_product_keeps_within_its_error_in_any_order(seed, terms, cancels):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, terms), np.float32)
    if cancels:
        a, b = np.concatenate([a, a]), np.concatenate([b, -b])
    true = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    share = dot_error(len(a)) * float(np.linalg.norm(a.astype(float)) * np.linalg.norm(b.astype(float)))
    for order in (np.arange(len(a)), rng.permutation(len(a))):
        one_by_one = np.float32(0)
        for x, y in zip(a[order], b[order], strict=True):
            one_by_one += x * y
        for found in (one_by_one, a[order] @ b[order]):
            assert abs(float(Fraction(float(found)) - true)) <= share


def test_the_error_of_a_product_too_long_for_float32_is_infinite():
    assert dot_error(2**24) == float("inf")
