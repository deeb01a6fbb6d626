"""Row-wise distances: equal bytes for every cut, and the values of exact arithmetic, scipy and plain bits."""

import itertools

import numpy as np
import pytest
from exact_rows import ALL_DISTANCES, PRODUCT_DISTANCES, ROUND, ROUND_DOUBLES, RUGGED, decided, exact, is_rounded, made
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance

from raybench.errors import DataError
from raybench.search import distances as module
from raybench.search.distances import measured, row_distances

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

UNMASKED = ("L2", "squared_L2", "ip", "L1", "hamming")
DTYPES = dict.fromkeys(UNMASKED, (np.float32, np.float64, np.uint8)) | {"hamming": (np.uint8,)}
cuts = st.lists(st.integers(0, 40), max_size=5)


@st.composite
def matrices(draw, distance: str) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of one shape and dtype; the seed alone is drawn, since values need not be shrunk."""
    rows, width = draw(st.integers(0, 40)), draw(st.integers(1, 140))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(DTYPES[distance]))
    if dtype is np.uint8:
        return tuple(rng.integers(0, 256, (2, rows, width), dtype=np.uint8))
    return tuple((rng.standard_normal((2, rows, width)) * 10.0 ** rng.integers(-6, 6, (2, rows, width))).astype(dtype))


@pytest.mark.parametrize("distance", UNMASKED)
@quick
@given(st.data())
def test_however_rows_are_cut_the_bytes_are_equal(distance, data):
    a, b = data.draw(matrices(distance))
    at = sorted(min(cut, len(a)) for cut in data.draw(cuts))
    bounds = [0, *at, len(a)]
    parts = [row_distances(a[i:j], b[i:j], distance) for i, j in itertools.pairwise(bounds)]
    assert np.concatenate(parts).tobytes() == row_distances(a, b, distance).tobytes()


@pytest.mark.parametrize("distance", UNMASKED)
@quick
@given(st.data())
def test_the_memory_order_of_the_rows_does_not_change_the_bytes(distance, data):
    a, b = data.draw(matrices(distance))
    by_column = row_distances(np.asfortranarray(a), np.asfortranarray(b), distance)
    assert by_column.tobytes() == row_distances(a, b, distance).tobytes()


@pytest.mark.parametrize("distance", UNMASKED)
@quick
@given(st.data())
def test_a_distance_does_not_depend_on_which_row_comes_first(distance, data):
    a, b = data.draw(matrices(distance))
    assert row_distances(a, b, distance).tobytes() == row_distances(b, a, distance).tobytes()


@pytest.mark.parametrize(("distance", "theirs"), [("L2", scipy_distance.euclidean), ("L1", scipy_distance.cityblock)])
@quick
@given(st.data())
def test_values_agree_with_scipy(distance, theirs, data):
    a, b = data.draw(matrices(distance))
    expected = [theirs(x, y) for x, y in zip(a.astype(np.float64), b.astype(np.float64), strict=True)]
    np.testing.assert_allclose(row_distances(a, b, distance), expected, rtol=1e-13)


@quick
@given(matrices("hamming"))
def test_hamming_counts_the_bits_that_differ(drawn):
    a, b = drawn
    expected = (np.unpackbits(a, axis=1) != np.unpackbits(b, axis=1)).sum(axis=1)
    assert row_distances(a, b, "hamming").tolist() == expected.tolist()


def test_hamming_of_zeros_and_ones_counts_the_values_that_differ():
    assert row_distances(np.array([[0, 1, 1]], np.uint8), np.array([[1, 1, 0]], np.uint8), "hamming").tolist() == [2.0]


def test_differences_of_bytes_do_not_wrap():
    a, b = np.array([[0, 3]], np.uint8), np.array([[255, 0]], np.uint8)
    assert row_distances(a, b, "L1").tolist() == [258.0]


def test_rows_that_are_equal_have_distance_zero():
    rows = np.random.default_rng(0).standard_normal((9, 33)).astype(np.float32)
    for distance in ("L1", "L2"):
        assert row_distances(rows, rows, distance).tolist() == [0.0] * 9


def test_an_unknown_distance_is_refused_by_name():
    with pytest.raises(ValueError, match="'cosine'"):
        row_distances(np.zeros((1, 1)), np.zeros((1, 1)), "cosine")


@pytest.mark.parametrize("dimension", [1, 100, 4096, 4097, 9000, 20000])
@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip", "L1"])
def test_long_rows_are_independent_of_the_cut_too(distance, dimension):
    a, b = np.random.default_rng(0).normal(size=(2, 30, dimension))
    whole = row_distances(a, b, distance)
    for size in (1, 2, 7, 13):
        parts = [row_distances(a[i : i + size], b[i : i + size], distance) for i in range(0, 30, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_rows_of_different_dimensions_are_refused():
    with pytest.raises(ValueError, match="can't be compared"):
        row_distances(np.zeros((3, 1)), np.zeros((3, 4)), "L2")


def test_masked_l1_takes_each_value_times_its_own_mask():
    a = np.array([[5.0, 7.0, 2.0, 1.0, 0.0, 1.0]])  # values 5, 7, 2 under the mask 1, 0, 1
    b = np.array([[1.0, 3.0, 4.0, 1.0, 1.0, 0.0]])  # values 1, 3, 4 under the mask 1, 1, 0
    assert row_distances(a, b, "masked_L1").tolist() == [4.0 + 3.0 + 2.0]


def test_masked_l1_needs_a_mask_value_for_each_value():
    with pytest.raises(DataError, match="dimension 3"):
        row_distances(np.zeros((1, 3)), np.zeros((1, 3)), "masked_L1")


@pytest.mark.parametrize("distance", ALL_DISTANCES)
@quick
@given(st.sampled_from(sorted(ROUND | ROUND_DOUBLES)), st.integers(0, 2**32), st.integers(1, 4))
def test_sums_that_float64_holds_are_exact(distance, kind, seed, half):
    kind = "small integers" if distance == "masked_L1" and kind in ROUND_DOUBLES else kind
    rng = np.random.default_rng(seed)
    a, b = (made(rng, kind, (9, 2 * half), distance) for _ in range(2))
    expected = [decided(exact(x, y, distance)[0], distance) for x, y in zip(a, b, strict=True)]
    assert row_distances(a, b, distance).tolist() == expected


@pytest.mark.parametrize("distance", ["L2", "squared_L2", "ip", "L1"])
@quick
@given(st.sampled_from(sorted(RUGGED)), st.integers(0, 2**32), st.sampled_from([1, 3, 130]))
def test_other_sums_are_exact_but_for_rounding(distance, kind, seed, dimension):
    rng = np.random.default_rng(seed)
    a, b = (made(rng, kind, (3, dimension), distance) for _ in range(2))
    for x, y, found in zip(a, b, row_distances(a, b, distance).tolist(), strict=True):
        assert is_rounded(found, *exact(x, y, distance), dimension, distance)


@pytest.mark.parametrize("dimension", [1, 3, 5_000])
def test_a_product_of_nothing_is_no_negative_zero(dimension):
    assert np.copysign(1, row_distances(np.zeros((1, dimension)), np.ones((1, dimension)), "ip")).tolist() == [1.0]


@pytest.mark.parametrize("distance", PRODUCT_DISTANCES)
@pytest.mark.parametrize("dimension", [3, 256, 5_000])
def test_distances_of_pairs_do_not_depend_on_which_pairs_are_measured_together(monkeypatch, distance, dimension):
    rng = np.random.default_rng(5)
    queries, references = (rng.standard_normal((n, dimension)).astype(np.float32) for n in (20, 50))
    pairs = rng.integers(20, size=300), rng.integers(50, size=300)
    alone = row_distances(queries[pairs[0]], references[pairs[1]], distance)
    for values in (1, 7 * dimension, module.VALUES_AT_ONCE):
        monkeypatch.setattr(module, "VALUES_AT_ONCE", values)
        assert measured(queries, references, pairs, distance).tobytes() == alone.tobytes()
