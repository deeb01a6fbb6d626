"""Built-in flow methods on photos with known motion."""

import numpy as np
import pytest

from raybench.benchmarks.tss.methods import flows_of, resolve_flow
from raybench.descriptors import FLOW_METHODS
from raybench.descriptors.dense_sift import DenseSift, sift_grid
from raybench.descriptors.flow_opencv import Dis, Farneback, Zero, stretched


@pytest.fixture(scope="module")
def photo():
    from raybench.demo.photos import load_photos

    return np.ascontiguousarray(load_photos()["astronaut"][100:340, 100:420])


def shifted(photo, u, v):
    """What a camera sees that moves the scene by (u, v)."""
    return np.roll(photo, (v, u), axis=(0, 1))


def inner(flow, margin=48):
    return flow[margin:-margin, margin:-margin]


@pytest.mark.parametrize(("method", "most_px"), [(Dis(), 0.5), (Farneback(), 1.0), (DenseSift(), 3.0)])
def test_a_shift_is_found_to_a_fraction_of_a_grid(photo, method, most_px):
    flow = method.flow(photo, shifted(photo, 9, -6))
    assert flow.shape == (240, 320, 2) and flow.dtype == np.float32
    errors = np.hypot(*(inner(flow) - (9, -6)).reshape(-1, 2).T)
    assert np.median(errors) < most_px


@pytest.mark.parametrize("method", [Dis(), Farneback(), DenseSift()])
def test_an_image_of_another_size_is_met_pixel_by_pixel(photo, method):
    """The second image is the first at half width: x goes to (x + 0.5) / 2 - 0.5."""
    half = photo.reshape(240, 160, 2, 3).mean(axis=2).astype(np.uint8)
    flow = method.flow(photo, half)
    x = np.arange(320)
    expected = (x + 0.5) / 2 - 0.5 - x
    assert np.median(np.abs(inner(flow)[:, :, 0] - expected[48:-48])) < 1.5
    assert np.median(np.abs(inner(flow)[:, :, 1])) < 1.5


@pytest.mark.parametrize("method", [Dis(), Farneback(), DenseSift(), Zero()])
def test_the_same_images_give_the_same_bytes(photo, method):
    other = shifted(photo, 5, 3)
    assert method.flow(photo, other).tobytes() == method.flow(photo, other).tobytes()


@pytest.mark.parametrize("side", [1, 7, 30])
def test_even_tiny_images_get_a_flow(side):
    noise = np.random.default_rng(side).integers(0, 255, (side, side + 3, 3)).astype(np.uint8)
    flow = DenseSift().flow(noise, noise)
    assert flow.shape == (side, side + 3, 2) and np.isfinite(flow).all()


def test_dense_sift_rows_have_norm_one_and_do_not_see_contrast(photo):
    grey = photo[:, :, 0]
    rows = sift_grid(grey)
    assert rows.shape == (60, 80, 128)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=2), 1, atol=1e-3)
    likeness = np.einsum("ijk,ijk->ij", sift_grid((grey // 2 + 40).astype(np.uint8)), rows)
    assert np.median(likeness) > 0.99 and np.percentile(likeness, 5) > 0.95


def test_a_stretched_flow_keeps_centres_on_centres():
    zero = np.zeros((10, 20, 2), np.float32)
    flow = stretched(zero, (10, 20), (20, 20))
    assert flow[:, :, 0].tolist() == np.zeros((10, 20)).tolist()
    np.testing.assert_allclose(flow[:, 0, 1], (np.arange(10) + 0.5) * 2 - (np.arange(10) + 0.5))


def test_every_name_resolves_and_differs_in_digest():
    specs = [resolve_flow(name, {}) for name in FLOW_METHODS]
    assert [spec.name for spec in specs] == list(FLOW_METHODS)
    assert len({spec.digest for spec in specs}) == len(specs)


def test_batches_are_cut_to_size():
    class Counts:
        def flows(self, pairs):
            return [np.full((1, 1, 2), len(pairs)) for _ in pairs]

    pairs = [(np.zeros((1, 1, 3), np.uint8),) * 2] * 5
    assert [int(flow[0, 0, 0]) for flow in flows_of(Counts(), pairs, 2)] == [2, 2, 2, 2, 1]
