"""Flow accuracy: hand-worked cases, borders of thresholds, unknown pixels, and sizes that differ."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.benchmarks.tss import rules_matlab, rules_vc, scoring
from raybench.formats.flo import UNKNOWN_PX


def field(height, width, seed=0, reach=20.0):
    return np.random.default_rng(seed).normal(0, reach, (height, width, 2)).astype(np.float32)


def test_errors_are_lengths_of_differences():
    truth, found = np.zeros((1, 2, 2), np.float32), np.array([[[3, 4], [0, 1]]], np.float32)
    assert rules_vc.endpoint_errors(found, truth).tolist() == [[5.0, 1.0]]


def test_a_pixel_known_in_the_truth_only_counts_as_wrong_and_one_unknown_in_both_not_at_all():
    truth = np.zeros((1, 4, 2), np.float32)
    found = truth.copy()
    found[0, 0], found[0, 1, 1] = 1e10, -2e9
    truth[0, 3] = found[0, 3] = 1e10
    assert rules_vc.true_pixel_errors(found, truth).tolist() == [1000.0, 1000.0, 0.0]


def test_the_order_of_a_field_in_memory_does_not_matter():
    truth, found = field(9, 11), field(9, 11, seed=1)
    truth[2:5, 3:6] = 1e10
    expected = rules_vc.true_pixel_errors(found, truth).tolist()
    turned = [np.asfortranarray(truth), np.asfortranarray(found)]
    assert rules_vc.true_pixel_errors(turned[1], turned[0]).tolist() == expected
    assert np.array_equal(rules_vc.known(turned[0]), rules_vc.known(truth))


def test_an_error_just_at_the_threshold_is_right_and_the_next_float_is_wrong():
    limit = rules_vc.thresholds_px((600, 800))[4]
    assert limit == 40
    errors = np.array([limit, np.nextafter(limit, np.float32(99))], np.float32)
    assert rules_vc.shares_within(errors, np.array([limit])).tolist() == [0.5]


def test_thresholds_are_rounded_to_float32_as_the_tool_compares():
    limits = rules_vc.thresholds_px((10, 7))
    assert limits.dtype == np.float32
    assert limits[0] == np.float32(0.1) and limits[6] == np.float32(7 * 0.1)


@given(st.lists(st.floats(0, 60, width=32), min_size=1, max_size=40), st.integers(1, 2000))
def test_all_fifty_thresholds_agree_with_one_pass_each(errors, side):
    errors, limits = np.array(errors, np.float32), rules_vc.thresholds_px((side, 1))
    expected = [1.0 - np.count_nonzero(errors > limit) / len(errors) for limit in limits]
    assert rules_vc.shares_within(errors, limits).tolist() == expected


def test_no_known_pixel_gives_no_figure():
    assert np.isnan(rules_vc.shares_within(np.zeros(0, np.float32), rules_vc.thresholds_px((5, 5)))).all()


@pytest.mark.parametrize(
    "sizes", [((34, 44), (60, 45)), ((384, 512), (600, 800)), ((60, 90), (30, 45)), ((9, 1), (4, 7))]
)
def test_resizing_is_opencvs_to_the_last_bit(sizes):
    old, new = sizes
    values, grey = field(*old), np.random.default_rng(1).integers(0, 256, old).astype(np.uint8)
    expected = cv2.resize(values, new[::-1], interpolation=cv2.INTER_LINEAR).reshape(*new, 2)
    np.testing.assert_allclose(rules_vc.resized_floats(values, new), expected, rtol=0, atol=2e-5)  # a build may fuse
    assert np.array_equal(rules_vc.resized_bytes(grey, new), cv2.resize(grey, new[::-1]).reshape(new))


def test_warping_is_the_remap_of_opencv_4():
    back, along = field(50, 60), field(40, 44, seed=1)
    along[3:5, 3:9] = UNKNOWN_PX
    y, x = np.mgrid[:40, :44].astype(np.float32)
    places = (along[:, :, 0] + x, along[:, :, 1] + y)
    expected = cv2.remap(back, *places, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=(1e10, 1e10))
    np.testing.assert_allclose(rules_vc.warped(back, along, 1e10), expected, rtol=1e-6, atol=1e-4)


def test_flows_of_the_truths_size_are_not_touched_and_both_are_if_one_differs():
    one, two = field(8, 10), field(6, 9)
    same = rules_vc.fitted_flows((one, two), ((8, 10), (6, 9)))
    assert same[0] is one and same[1] is two
    changed = rules_vc.fitted_flows((one, two), ((8, 10), (12, 18)))
    assert not np.array_equal(changed[0], one)


def test_a_flow_at_half_size_becomes_twice_as_long():
    """x' = (x/2 + f)·2 - x = 2f, whatever x."""
    half = np.full((6, 8, 2), 3.5, np.float32)
    for resized in rules_vc.fitted_flows((half, half), ((12, 16), (12, 16))):
        np.testing.assert_allclose(resized, 7.0, atol=1e-5)


def test_what_mixes_known_and_unknown_is_unknown():
    half = np.zeros((4, 4, 2), np.float32)
    half[0, 0, 1] = -2e9
    resized, _ = rules_vc.fitted_flows((half, half.copy() * 0), ((8, 8), (8, 8)))
    assert np.argwhere(~rules_vc.known(resized)).tolist() == [[y, x] for y in range(3) for x in range(3)]


def test_going_there_and_back_makes_the_mask_strictly_below_20_px():
    there = np.zeros((3, 40, 2), np.float32)
    there[:, :, 0] = 10
    for back, expected in ((-10, 255), (-29.9, 255), (-30, 0), (9.9, 255), (10, 0)):
        other = np.zeros_like(there)
        other[:, :, 0] = back
        mask = rules_vc.consistent_mask(there, other)
        assert (mask[:, :30] == expected).all()
        assert (mask[:, 30:] == 0).all()  # points outside


def test_masks_are_compared_bit_by_bit():
    truth, mask = np.array([[255, 1, 0, 6]], np.uint8), np.array([[1, 2, 0, 3]], np.uint8)
    assert scoring.intersection_over_union(truth, mask) == 2 / 3
    assert scoring.equal_share(truth, mask) == 0.25
    assert np.isnan(scoring.intersection_over_union(truth * 0, mask * 0))


def test_a_mask_is_cut_above_128_only_if_it_is_resized():
    mask = np.array([[1, 128, 129, 255]], np.uint8)
    assert rules_vc.fitted_mask(mask, (1, 4)) is mask
    assert rules_vc.fitted_mask(np.full((2, 2), 128, np.uint8), (3, 3)).max() == 0
    assert rules_vc.fitted_mask(np.full((2, 2), 129, np.uint8), (3, 3)).min() == 255


def test_the_better_side_is_of_both_masks_together():
    truth = np.array([[255, 255, 255, 0]], np.uint8)
    good, bad = truth, ~truth
    measure = scoring.intersection_over_union
    assert scoring.better_side((truth, truth), (bad, bad), measure)[0].tolist() == good.tolist()
    kept = scoring.better_side((truth, truth), (good, bad), measure)  # equal sums: as given
    assert kept[0] is good


@pytest.mark.parametrize(("old", "new"), [(5, 9), (9, 5), (12, 3), (1, 4), (4, 1), (3, 3)])
def test_the_matlab_resize_keeps_constants_and_made_larger_also_straight_lines(old, new):
    weights = rules_matlab.antialiased(np.eye(old), (new, old))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    if new >= old:
        centres = (np.arange(new) + 0.5) * old / new
        inside = (centres >= 0.5) & (centres <= old - 0.5)
        np.testing.assert_allclose((weights @ (np.arange(old) + 0.5))[inside], centres[inside])


def test_the_matlab_resize_smooths_when_it_makes_smaller():
    """Halved, a pixel rests on four with the weights of a triangle, 1 3 3 1; at the edge on its mirror image."""
    expected = np.array([[4, 3, 1, 0, 0, 0], [0, 1, 3, 3, 1, 0], [0, 0, 0, 1, 3, 4]]) / 8
    np.testing.assert_allclose(rules_matlab.antialiased(np.eye(6), (3, 6)), expected)


def test_the_matlab_warp_is_exact_for_parabolas():
    y, x = np.mgrid[:9, :11].astype(float)
    values = np.stack([x * x + y, y * y - x], -1)
    rng = np.random.default_rng(0)
    px, py = rng.uniform(0, 10, 50), rng.uniform(0, 8, 50)
    found, usable = rules_matlab._bicubic(values, px, py)
    assert usable.all()
    np.testing.assert_allclose(found, np.stack([px * px + py, py * py - px], -1), atol=1e-9)
