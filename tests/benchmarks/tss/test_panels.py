"""What the panels show: the Middlebury wheel, colours at the border of right and wrong, contours, outlines, grounds."""

import io

import numpy as np
from PIL import Image

from raybench.benchmarks.tss import sheets
from raybench.benchmarks.tss.panels import (
    GROUND,
    LOST,
    OUTLINE,
    colour_wheel,
    error_colours,
    error_map,
    flow_colours,
    foreground,
    grown,
    largest_motion,
    warped_image,
    wheel_key,
)


def grey(height=40, width=60, value=100):
    return np.full((height, width, 3), value, np.uint8)


def colour(u, v, largest=1.0):
    return flow_colours(np.array([[[u, v]]], np.float32), largest)[0, 0].tolist()


def test_the_wheel_has_55_colours_through_all_six_corners():
    wheel = colour_wheel()
    assert wheel.shape == (55, 3)
    corners = np.cumsum([0, 15, 6, 4, 11, 13])
    assert wheel[corners].tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]]


def test_no_motion_is_white_unknown_is_grey_and_length_is_saturation():
    assert colour(0, 0) == [255, 255, 255]
    assert colour(1e10, 1e10) == colour(0, -2e9) == [128, 128, 128]
    assert colour(0.5, 0)[1:] > colour(1, 0)[1:]


def test_right_is_red_down_is_yellow_left_is_cyan_and_up_is_violet():
    """As in the published key: (+x) red, (+y) yellow, (-x) cyan, (-y) blue to violet."""
    assert colour(1, 0) == [255, 0, 0]
    assert colour(0, 1)[2] == 0 and min(colour(0, 1)[:2]) > 200
    assert colour(-1, 1e-6)[0] < 10 and min(colour(-1, 1e-6)[1:]) > 180
    assert colour(0, -1)[2] == 255 and colour(0, -1)[1] < 60


def test_longer_than_the_largest_is_darker():
    assert max(colour(2, 0)) < 200


def test_the_largest_motion_leaves_out_unknown_pixels():
    flow = np.array([[[3, 4], [1e10, 1e10]]], np.float32)
    assert largest_motion(flow) == 5
    assert largest_motion(flow * 0) == 1e-3


def test_the_key_is_a_disc():
    key = wheel_key(21)
    assert key[0, 0].tolist() == [255, 255, 255] and key[10, 10].min() > 200
    assert key[10, 20].tolist()[0] == 255 and key[10, 20].max() > key[10, 20].min() + 200


def test_errors_within_the_threshold_are_blue_and_the_next_are_red():
    at, beyond = error_colours(np.array([1.0, np.nextafter(1.0, 2)]))
    assert at[2] > at[0] and beyond[0] > beyond[2]
    far, farther = error_colours(np.array([4.0, 400.0]))
    assert far.tolist() == farther.tolist()


def test_the_t5_contour_runs_between_right_and_wrong_and_not_around_the_truth():
    errors = np.zeros((40, 60), np.float32)
    errors[:, 30:] = 9
    asked = np.zeros((40, 60), bool)
    asked[5:35, 5:55] = True
    made = error_map(grey(), errors, asked, np.ones_like(asked), 5.0)
    black = (made == 0).all(axis=2)
    assert black[5:35, 29].all()
    assert not black[:, :26].any() and not black[:, 30:].any()
    assert (np.ptp(made[0].astype(int), axis=1) == 0).all()  # outside the truth: the image, pale and grey


def test_true_flow_that_the_result_does_not_know_has_a_colour_of_its_own():
    asked, found = np.ones((4, 4), bool), np.ones((4, 4), bool)
    found[:2] = False
    made = error_map(grey(4, 4), np.zeros((4, 4), np.float32), asked, found, 5.0)
    assert made[0, 0].tolist() == list(LOST)


def test_foreground_is_the_image_on_a_plain_ground_with_the_true_outline():
    mask, truth = np.zeros((40, 60), np.uint8), np.zeros((40, 60), np.uint8)
    mask[:, :30], truth[10:30, 10:50] = 255, 255
    made = foreground(grey(), mask, truth)
    assert made[2, 2].tolist() == [100, 100, 100] and made[2, 40].tolist() == list(GROUND)
    assert made[10, 20].tolist() == made[29, 49].tolist() == list(OUTLINE)
    assert made[20, 20].tolist() == [100, 100, 100]


def test_the_warped_image_comes_from_where_the_flow_points():
    image = np.random.default_rng(0).integers(0, 255, (20, 30, 3)).astype(np.uint8)
    flow = np.broadcast_to(np.array([4, -3], np.float32), (20, 30, 2)).copy()
    made = warped_image(image, flow)
    assert np.array_equal(made[3:, :26], image[:-3, 4:])
    assert (made[:3] == GROUND).all() and (made[:, 26:] == GROUND).all()
    flow[5, 5] = 1e10
    assert warped_image(image, flow)[5, 5].tolist() == list(GROUND)


def test_growing_is_by_steps():
    point = np.zeros((7, 7), bool)
    point[3, 3] = True
    assert grown(point, 1).sum() == 5 and grown(point, 2).sum() == 13
    assert point.sum() == 1


def test_an_overview_shows_six_panels_a_direction_and_says_what_is_absent():
    panels = (grey(), None, grey(), None, None, grey())
    direction = sheets.Direction("1 to 2", panels, 0.0, 0.5)
    image = Image.open(io.BytesIO(sheets.overview([direction] * 2, sheets.Caption("G/p", ("NO FLOW",)))))
    assert image.size[0] == sheets.LABEL_PX + 6 * (sheets.PANEL_PX + sheets.GAP_PX)
    pixels = np.asarray(image).astype(int)
    middle = [sheets.LABEL_PX + n * (sheets.PANEL_PX + sheets.GAP_PX) + 110 for n in range(6)]
    row = sheets.HEAD_PX + 100
    assert [bool(abs(pixels[row, x] - 100).max() < 20) for x in middle] == [True, False, True, False, False, True]


def test_a_contact_sheet_has_a_cell_a_pair():
    strip = sheets.thumb(sheets.Direction("1 to 2", (grey(),) * 6, 0.5, 0.5))
    small, large = (Image.open(io.BytesIO(sheets.contact_sheet("G", [("p", 0.5, strip)] * n))) for n in (3, 7))
    assert small.width == large.width == 3 * (3 * sheets.THUMB_PX + 10) + 8
    cell = (large.height - 40) // 3
    assert small.height == 40 + cell and large.height == 40 + 3 * cell
