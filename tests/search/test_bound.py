"""Every proposer's values keep within the bound, against exact fractions; and a smaller bound would be found out."""

from fractions import Fraction

import numpy as np
import pytest
from exact_rows import ROUND, ROUND_DOUBLES, RUGGED, exact, made
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.search.bound import Bound, largest, norms, radius, scale_of, scaled
from raybench.search.by_faiss import ByFaiss
from raybench.search.by_numpy import ByNumpy
from raybench.search.by_torch import ByTorch

quick = settings(max_examples=40, deadline=None)  # no deadline: cores are shared
KINDS = (*ROUND, *RUGGED)
SEEDS = st.integers(0, 2**32)


def by_numpy(queries, references, distance):
    for tile in ByNumpy(3 * len(references)).tiles(queries, references, distance):
        yield tile.queries, tile.values.copy(), tile.margins


def by_torch(queries, references, distance):
    for tile in ByTorch("cpu", 3 * len(references)).tiles(queries, references, distance):
        yield tile.queries, tile.values.numpy(), tile.margins


def assert_margins_hold(queries, references, distance, tiles):
    for at, values, margins in tiles:
        factor = Fraction(margins.scale) ** (1 if distance in ("L1", "hamming") else 2)
        for i, query in enumerate(queries[at]):
            if not np.isfinite(margins.above[i]):
                continue
            for j, reference in enumerate(references):
                true = exact(query, reference, distance)[0] * factor - Fraction(float(margins.origin[i]))
                off = true - Fraction(float(values[i, j]))
                assert -Fraction(float(margins.below[i])) <= off <= Fraction(float(margins.above[i]))


@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip", "L1", "hamming"])
@quick
@given(st.sampled_from((*KINDS, *ROUND_DOUBLES)), SEEDS, st.integers(1, 40))
def test_values_of_numpy_keep_within_their_margins(distance, kind, seed, dimension):
    rng = np.random.default_rng(seed)
    queries, references = (made(rng, kind, (n, dimension), distance) for n in (4, 5))
    assert_margins_hold(queries, references, distance, by_numpy(queries, references, distance))


@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip"])
@quick
@given(st.sampled_from(KINDS), SEEDS, st.integers(1, 40))
def test_values_of_torch_keep_within_their_margins(distance, kind, seed, dimension):
    rng = np.random.default_rng(seed)
    queries, references = (made(rng, kind, (n, dimension), distance) for n in (4, 5))
    assert_margins_hold(queries, references, distance, by_torch(queries, references, distance))


@pytest.mark.parametrize("distance", ["squared_L2", "ip"])
@pytest.mark.parametrize("queries_count", [3, 30], ids=["term by term", "by a product"])  # FAISS changes over at 20
@quick
@given(st.sampled_from(KINDS), SEEDS, st.integers(1, 40))
def test_values_of_faiss_keep_within_the_error(queries_count, distance, kind, seed, dimension):
    rng = np.random.default_rng(seed)
    queries, references = (made(rng, kind, (n, dimension), distance) for n in (queries_count, 3))
    scale = scale_of(radius(references))
    own, among = scaled(queries, scale), scaled(references, scale)
    errors = Bound(distance, dimension, scale).errors(norms(own, distance), radius(references) * scale)
    values, rows = ByFaiss(gpu=False).lists(own, among, 3, distance)
    for i, query in enumerate(queries[:4]):
        for value, row in zip(values[i].tolist(), rows[i].tolist(), strict=True):
            if np.isfinite(errors[i]) and row >= 0:
                true = exact(query, references[row], distance)[0] * Fraction(scale) ** 2
                assert abs(Fraction(value) - true) <= Fraction(float(errors[i]))


def summed(terms, order):
    """In float32, one by one; pairs first where the order says so."""
    total = np.float32(0)
    for term in terms[order]:
        total += term
    return total


@quick
@given(SEEDS, st.integers(1, 400), st.booleans())
def test_a_float32_product_keeps_within_the_share_in_any_order(seed, terms, cancels):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, terms), np.float32)
    if cancels:
        a, b = np.concatenate([a, a]), np.concatenate([b, -b])
    true = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    share = Bound("ip", len(a)).share * float(np.linalg.norm(a.astype(float)) * np.linalg.norm(b.astype(float)))
    for order in (np.arange(len(a)), rng.permutation(len(a))):
        for found in (summed(a * b, order), a[order] @ b[order]):
            assert abs(float(Fraction(float(found)) - true)) <= share


def test_the_worst_order_of_summation_comes_near_the_share():
    """A sum that grows past each term's half unit loses them all: the bound could not be an order smaller."""
    terms = np.full(4_000, 2.0**-25, np.float32) * np.float32(1.9)
    terms[0] = 1.0
    lost = float(terms.astype(np.float64).sum() - summed(terms, np.arange(len(terms))))
    bound = Bound("L1", len(terms)).share * float(terms.astype(np.float64).sum())
    assert bound / 4 < lost <= bound


def test_the_share_covers_each_rounding_of_a_term_and_its_own_second_order():
    for dimension in (1, 128, 4_096, 1_000_000):
        share, x = Fraction(Bound("ip", dimension).share), Fraction(dimension + 8, 2**24)
        assert share >= x / (1 - x) * (1 + 2 * share)
        assert share <= Fraction(dimension + 16, 2**24) * (2 if dimension > 100_000 else Fraction(101, 100))


def test_the_error_of_rows_too_long_for_float32_is_infinite():
    assert Bound("ip", 2**21).share == float("inf")
    assert np.isinf(Bound("ip", 2**24).errors(np.ones(1), 1.0)).all()


def test_the_reach_is_that_of_each_distance():
    for distance, reach in (("squared_L2", 25.0), ("L2", 25.0), ("ip", 6.0), ("L1", 5.0)):
        bound = Bound(distance, 128)
        assert bound.errors(np.array([2.0]), 3.0).tolist() == pytest.approx([bound.share * reach], rel=1e-12)


@pytest.mark.parametrize(("distance", "last"), [("squared_L2", 2.0**511), ("ip", 2.0**511), ("L1", 2.0**1022)])
def test_what_may_overflow_is_unknown(distance, last):
    within = np.array([2.0**61, 2.0**62])
    assert np.isinf(Bound(distance, 4).errors(within, 0.0)).tolist() == [False, True]
    assert np.isinf(Bound(distance, 4).errors(within / 2, 2.0**61)).tolist() == [False, True]
    scale = 2.0**-600 if distance == "L1" else 2.0**-490  # numbers that only float64 holds, of which sums overflow
    own = np.array([0.5, 1.0]) * (last * scale)
    assert np.isinf(Bound(distance, 4, scale).errors(own, 0.0)).tolist() == (
        [False, True] if own[1] < 2**62 else [True, True]
    )


def test_what_vanishes_in_the_deciding_squares_counts_as_lost():
    assert Bound("L2", 4, 2.0**500).errors(np.zeros(1), 0.0)[0] >= 4 * 2.0 ** (2 * (500 - 511))
    assert Bound("L1", 4, 2.0**900).errors(np.zeros(1), 0.0)[0] < 2.0**-110


@pytest.mark.parametrize("distance", ["squared_L2", "ip", "L1"])
@pytest.mark.parametrize("other", [1.0, 2.0**40])
@pytest.mark.parametrize("flushed", ["queries", "references"])
def test_flushed_denormals_count_as_lost(flushed, other, distance):
    """A device may take numbers below 2**-126 as zero."""
    dimension, size = 64, 2.0**-127
    lost = dimension * size * {"ip": other, "L1": 1.0, "squared_L2": 2 * other}[distance]
    lengths = [value * (dimension if distance == "L1" else dimension**0.5) for value in (size, other)]
    own, among = lengths if flushed == "queries" else lengths[::-1]
    assert Bound(distance, dimension).lost(np.array([own]), among)[0] >= lost
    assert Bound(distance, dimension).errors(np.array([own]), among)[0] >= lost


@pytest.mark.parametrize("size", [2.0**-149, 2.0**-100, 2.0**-41, 2.0**-39, 1.0, 2.0**39, 2.0**41, 2.0**120, 2.0**1000])
def test_a_scale_is_a_power_of_two_that_brings_sizes_near_one_where_needed(size):
    scale = scale_of(size)
    assert np.frexp(scale)[0] == 0.5
    assert (scale == 1.0) == (2.0**-41 <= size < 2.0**40)
    assert scale == 1.0 or 0.5 <= size * scale <= 1.0


def test_a_scale_of_nothing_or_of_more_than_numbers_is_one():
    assert scale_of(0.0) == scale_of(float("inf")) == scale_of(float("nan")) == 1.0
    assert scale_of(5e-324) == 2.0**1000


@quick
@given(st.sampled_from(KINDS), SEEDS, st.integers(1, 40))
def test_no_row_is_longer_than_the_radius(kind, seed, dimension):
    rows = made(np.random.default_rng(seed), kind, (7, dimension), "squared_L2")
    longest = max(sum(Fraction(value) ** 2 for value in row) for row in rows.tolist())
    found = Fraction(radius(rows)) ** 2
    assert longest <= found <= longest * Fraction(1001, 1000)
    assert radius(rows[:0]) == 0.0


@pytest.mark.parametrize("exponent", range(-149, 128, 7))
def test_the_radius_holds_where_float32_squares_vanish_or_overflow(exponent):
    rows = np.array([[1.3, 0.7], [0.1, 0.2]]) * 2.0**exponent
    rows = rows.astype(np.float32)
    square = sum(Fraction(value) ** 2 for value in rows[0].tolist())
    assert square <= Fraction(radius(rows)) ** 2 <= square * Fraction(1001, 1000)


def test_the_largest_value_may_be_negative():
    assert largest(np.array([[-3.0, 2.0], [1.0, 0.0]])) == largest(np.array([[3, 2]], np.uint8)) == 3.0
    assert largest(np.zeros((0, 2))) == 0.0
