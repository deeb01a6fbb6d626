"""pcapl against a plain rewrite of its definition, and the cases in which it is not defined."""

import numpy as np
import pytest

from raybench.benchmarks.hpatches.whitening import covariance, pcapl, whitening_matrix
from raybench.errors import DataError


def plain_pcapl(train, image):
    """The definition in plain numpy: ZCA with eigenvalues clipped at the 60th percentile, power law, L2 norm."""
    centred = train - train.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(train))
    values = np.maximum(values, np.sort(values)[int(0.6 * len(values))])
    white = (image - image.mean(axis=0)) @ (vectors @ np.diag(values**-0.5) @ vectors.T)
    rooted = np.sign(white) * np.sqrt(np.abs(white))
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(rooted / np.linalg.norm(rooted, axis=1, keepdims=True))


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((24, 24)) * np.geomspace(0.01, 3, 24)
    return [(rng.standard_normal((n, 24)) @ mix + 5).astype(np.float32) for n in (40, 0, 70, 55)]


def test_pcapl_is_what_its_definition_says(images):
    matrix = whitening_matrix(covariance(images))
    for image in images[2:]:
        assert np.allclose(pcapl(image, matrix), plain_pcapl(np.concatenate(images), image), atol=1e-5)


def test_the_covariance_is_that_of_all_rows_together(images):
    expected = np.cov(np.concatenate(images).astype(np.float64), rowvar=False, bias=True)
    assert np.allclose(covariance(images), expected, rtol=1e-12)


def test_rows_have_length_one_and_a_row_at_its_images_mean_stays_zero(images):
    matrix = whitening_matrix(covariance(images))
    same = np.repeat(images[0][:1], 3, axis=0)
    assert not pcapl(same, matrix).any()
    assert np.allclose(np.linalg.norm(pcapl(images[0], matrix), axis=1), 1.0)


def test_descriptors_that_hardly_vary_are_refused():
    flat = np.zeros((20, 10))
    flat[:, 0] = np.arange(20)
    with pytest.raises(DataError, match="10 dimensions"):
        whitening_matrix(covariance([flat]))
