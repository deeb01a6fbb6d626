import numpy as np
import pytest

from raybench.descriptors.pixels import MeanStd, Resize, resized_patches


def noise(count, side=65, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, side, side), dtype=np.uint8)


def described(descriptor, patches):
    return descriptor.describe(descriptor.prepare(patches))


def test_meanstd_is_the_mean_and_the_standard_deviation():
    patch = np.array([[[0, 0], [4, 4]]], np.uint8)
    np.testing.assert_array_equal(described(MeanStd(), patch), [[2.0, 2.0]])


def test_meanstd_agrees_with_numpy():
    patches = noise(5)
    expected = np.stack([patches.mean(axis=(1, 2)), patches.std(axis=(1, 2))], axis=1)
    np.testing.assert_allclose(described(MeanStd(), patches), expected, rtol=1e-6)


def test_resize_averages_each_cell_of_a_six_by_six_grid():
    cells = noise(1, side=6)
    patch = np.repeat(np.repeat(cells, 10, axis=1), 10, axis=2)
    values = cells.reshape(36).astype(float)
    np.testing.assert_allclose(described(Resize(), patch)[0], (values - values.mean()) / values.std(), atol=1e-5)


def test_resize_has_mean_zero_and_deviation_one():
    rows = described(Resize(), noise(4))
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(rows.std(axis=1), 1, atol=1e-6)


def test_resize_does_not_see_brightness_and_contrast():
    patches = noise(3) // 4
    np.testing.assert_allclose(described(Resize(), patches), described(Resize(), 2 * patches + 50), atol=1e-5)


@pytest.mark.parametrize("grey", [0, 77, 255])
def test_resize_of_a_constant_patch_is_zeros(grey):
    assert not described(Resize(), np.full((2, 65, 65), grey, np.uint8)).any()


def test_resize_sees_one_grey_level_in_one_pixel():
    patch = np.full((1, 65, 65), 200, np.uint8)
    patch[0, 30, 30] += 1
    assert described(Resize(), patch).any()


@pytest.mark.parametrize(("descriptor", "dimension"), [(MeanStd(), 2), (Resize(), 36)])
@pytest.mark.parametrize("side", [5, 32, 65, 130])
def test_any_side_gives_rows_of_the_same_dimension(descriptor, dimension, side):
    assert described(descriptor, noise(3, side)).shape == (3, dimension)


@pytest.mark.parametrize(("descriptor", "dimension"), [(MeanStd(), 2), (Resize(), 36)])
def test_no_patches_give_no_rows(descriptor, dimension):
    assert described(descriptor, noise(0)).shape == (0, dimension)


@pytest.mark.parametrize("descriptor", [MeanStd(), Resize()])
def test_a_row_is_the_same_bytes_in_every_batch(descriptor):
    patches = noise(70)
    whole = described(descriptor, patches)
    assert np.concatenate([described(descriptor, patch[np.newaxis]) for patch in patches]).tobytes() == whole.tobytes()
    assert described(descriptor, patches[::-1])[::-1].tobytes() == whole.tobytes()


def test_resized_leaves_patches_of_that_side_alone():
    patches = noise(2, side=31)
    assert resized_patches(patches, 31) is patches
