"""A projection equals FAISS's to float32 rounding, and a row's result does not depend on the rows beside it."""

from functools import cache

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.formats import shardfile
from raybench.search.codecs import Transforms
from raybench.search.projection import Centre, Linear, Normalise, Projection, Remap

CODECS = [
    "PCA12,Flat",
    "PCAR12,Flat",
    "PCAW24,L2norm,Flat",
    "PCAWR12,Flat",
    "L2norm,PCAW24,Flat",
    "L2norm,Flat",
    "RR12,Flat",
    "RR,Flat",
    "RR40,Flat",
    "OPQ4_12,Flat",
    "OPQ3,Flat",
    "ITQ,Flat",
    "ITQ12,Flat",
    "Pad40,Flat",
    "PCA16,RR,Pad20,L2norm,Flat",
]


def rows(count, seed=0, dimension=24):
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


@cache
def trained(codec):
    return Transforms(codec, 24).trained(rows(700))


@pytest.mark.parametrize("codec", CODECS)
def test_a_trained_codec_projects_as_faiss_does(codec):
    training, asked = rows(700), rows(300, 1)
    ours = trained(codec).apply(asked)
    index = faiss.index_factory(24, codec)
    index.train(training)
    theirs = np.frombuffer(index.sa_encode(asked), np.float32).reshape(300, -1)
    if "PCA" in codec:  # which way an axis points is nobody's; what is compared are products of rows
        ours, theirs = (one.astype(np.float64) @ one.astype(np.float64).T for one in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=5e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("codec", CODECS)
def test_training_again_gives_the_same_bytes(codec):
    again = Transforms(codec, 24).trained(rows(700))
    assert shardfile.encode(again.to_arrays()) == shardfile.encode(trained(codec).to_arrays())


@pytest.mark.parametrize("codec", CODECS)
def test_a_projection_read_back_from_arrays_is_the_same(codec):
    projection = trained(codec)
    again = Projection.from_arrays(shardfile.decode(shardfile.encode(projection.to_arrays())))
    assert again.apply(rows(9)).tobytes() == projection.apply(rows(9)).tobytes()
    assert [type(step) for step in again.steps] == [type(step) for step in projection.steps]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 300), st.integers(1, 40), st.integers(0, 2**31), st.booleans())
def test_a_row_is_projected_alone_as_among_others(count, inner, outer, seed, whole):
    rng = np.random.default_rng(seed)
    matrix, asked = (
        (rng.integers(-9, 9, shape) if whole else rng.standard_normal(shape)).astype(np.float32)
        for shape in ((outer, inner), (count, inner))
    )
    step = Linear(matrix, rng.standard_normal(outer).astype(np.float32))
    together = step.apply(asked)
    assert np.concatenate([step.apply(asked[i : i + 1]) for i in range(count)]).tobytes() == together.tobytes()
    exact = asked.astype(np.float64) @ matrix.T.astype(np.float64) + step.offset
    np.testing.assert_allclose(together, exact, rtol=1e-6, atol=1e-5)


def test_sums_that_lie_between_two_floats_are_decided_by_the_row_wise_sum():
    """Half-way cases of float32, which the order of a sum in float64 tips to either side."""
    rng = np.random.default_rng(0)
    asked = rng.standard_normal((200, 65)).astype(np.float32)
    matrix = rng.standard_normal((50, 65)).astype(np.float32)
    products = asked[:, :64].astype(np.float64) @ matrix[:, :64].T.astype(np.float64)
    low = products.astype(np.float32)
    halfway = (low.astype(np.float64) + np.nextafter(low, np.float32(np.inf))) / 2
    asked[:, 64] = 1  # the last column brings the first entry of each row near the middle between two floats
    for i in range(50):
        matrix[i, 64] = halfway[i, i] - products[i, i]
    step = Linear(matrix, np.zeros(50, np.float32))
    together = step.apply(asked)
    for cut in (1, 3, 64):
        parts = [step.apply(asked[i : i + cut]) for i in range(0, 200, cut)]
        assert np.concatenate(parts).tobytes() == together.tobytes()


def test_normalising_leaves_zeros_and_makes_all_else_of_length_one():
    out = Normalise().apply(np.array([[0, 0], [3, 4], [1e-30, 0], [1e30, 1e30]], np.float32))
    np.testing.assert_allclose(out, [[0, 0], [0.6, 0.8], [1, 0], [2**-0.5, 2**-0.5]], rtol=1e-7)


def test_columns_are_moved_and_padded():
    assert Remap(np.array([1, -1, 0])).apply(np.float32([[5, 7]])).tolist() == [[7, 0, 5]]


def test_no_rows_give_no_rows_of_the_right_width():
    projection = Projection(
        (Centre(np.zeros(3, np.float32)), Linear(np.ones((2, 3), np.float32), np.zeros(2, np.float32)))
    )
    assert projection.apply(np.zeros((0, 3), np.float32)).shape == (0, 2)
