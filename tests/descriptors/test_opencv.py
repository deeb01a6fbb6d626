import cv2
import numpy as np
import pytest

from raybench.descriptors.opencv import Orb, RootSift, Sift
from raybench.descriptors.patch_canvas import CHUNK, described_patches

ALL = [Sift(), RootSift(), Orb()]


def textured(count, side=65, seed=0):
    """Smooth random patches: noise alone has no gradient at SIFT's scale."""
    noise = np.random.default_rng(seed).integers(0, 256, (count, 9, 9), dtype=np.uint8)
    patches = [cv2.resize(patch, (side, side), interpolation=cv2.INTER_CUBIC) for patch in noise]
    return np.array(patches, np.uint8).reshape(count, side, side)


def described(descriptor, patches):
    return descriptor.describe(descriptor.prepare(patches))


@pytest.mark.parametrize("descriptor", ALL)
def test_a_row_is_the_same_bytes_in_every_batch(descriptor):
    patches = textured(2 * CHUNK + 3)
    whole = described(descriptor, patches)
    assert np.concatenate([described(descriptor, patch[np.newaxis]) for patch in patches]).tobytes() == whole.tobytes()
    assert described(descriptor, patches[::-1])[::-1].tobytes() == whole.tobytes()


@pytest.mark.parametrize("descriptor", ALL)
def test_a_row_does_not_depend_on_the_neighbours(descriptor):
    patch = textured(1)[0]
    rows = []
    for neighbour in (np.zeros_like(patch), np.full_like(patch, 255), textured(1, seed=7)[0]):
        rows.append(described(descriptor, np.stack([neighbour, patch, neighbour]))[1].tobytes())
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.parametrize("descriptor", ALL)
def test_different_patches_get_different_rows(descriptor):
    assert len(np.unique(described(descriptor, textured(50)), axis=0)) == 50


@pytest.mark.parametrize(
    ("descriptor", "dimension", "dtype"),
    [(Sift(), 128, np.float32), (RootSift(), 128, np.float32), (Orb(), 32, np.uint8)],
)
@pytest.mark.parametrize("side", [21, 65, 100])
def test_any_side_gives_rows_of_the_same_kind(descriptor, dimension, dtype, side):
    rows = described(descriptor, textured(3, side))
    assert (rows.shape, rows.dtype) == ((3, dimension), dtype)


@pytest.mark.parametrize(("descriptor", "dimension"), [(Sift(), 128), (RootSift(), 128), (Orb(), 32)])
def test_no_patches_give_no_rows(descriptor, dimension):
    assert described(descriptor, textured(0)).shape == (0, dimension)


def test_sift_is_what_opencv_gives_for_one_patch_in_a_wide_border():
    patches, border = textured(5), 60
    for patch, row in zip(patches, described(Sift(), patches), strict=True):
        keypoint = cv2.KeyPoint(border + 32.0, border + 32.0, 65 / 6, 0.0)
        _, expected = cv2.SIFT.create().compute(np.pad(patch, border, mode="edge"), [keypoint])
        np.testing.assert_array_equal(row, expected[0])


def test_the_sift_grid_covers_the_patch():
    flat = np.full((1, 65, 65), 100, np.uint8)
    for corner in (slice(2, 10), slice(-10, -2)):
        marked = flat.copy()
        marked[0, corner, corner] = 200
        cells = described(Sift(), marked).reshape(4, 4, 8).sum(axis=2)
        strongest = np.unravel_index(cells.argmax(), cells.shape)
        assert strongest == ((0, 0) if corner.start > 0 else (3, 3))


def test_every_corner_of_the_patch_counts_for_orb():
    patches = textured(40)
    plain = described(Orb(), patches)
    for rows in (slice(0, 20), slice(45, 65)):
        for columns in (slice(0, 20), slice(45, 65)):
            covered = patches.copy()
            covered[:, rows, columns] = 0
            assert (described(Orb(), covered) != plain).any()


@pytest.mark.parametrize("descriptor", [Sift(), RootSift()])
def test_a_constant_patch_is_zeros(descriptor):
    assert not described(descriptor, np.full((2, 65, 65), 90, np.uint8)).any()


def test_rootsift_has_norm_one():
    np.testing.assert_allclose(np.linalg.norm(described(RootSift(), textured(9)), axis=1), 1, atol=1e-6)


def test_rootsift_squared_is_siftrow_over_its_sum():
    patches = textured(4)
    sift = described(Sift(), patches)
    np.testing.assert_allclose(described(RootSift(), patches) ** 2, sift / sift.sum(axis=1, keepdims=True), atol=1e-6)


def test_orb_is_compared_by_hamming_distance():
    assert (Orb.distance, Sift.distance, RootSift.distance) == ("hamming", "L2", "L2")


def test_a_dropped_keypoint_is_an_error_that_says_so():
    dropping = cv2.ORB.create(nlevels=1, edgeThreshold=60)
    with pytest.raises(RuntimeError, match="descriptors of 1 patches in order, got 0"):
        described_patches(dropping, textured(1), 0, 31.0, np.empty((1, 32), np.uint8))
