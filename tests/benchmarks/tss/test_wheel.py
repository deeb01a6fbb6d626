"""Flow as colour: the Middlebury wheel."""

import numpy as np

from raybench.benchmarks.tss.wheel import colour_wheel, flow_colours, largest_motion, wheel_key


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
