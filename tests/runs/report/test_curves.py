"""The page draws precision over recall from the curve files that a run left."""

import re

import numpy as np
from conftest import GOLDEN

from raybench.runs.report.curves import SIDE, DrawnCurve, draw_curves


def test_a_perfect_curve_runs_along_the_top():
    drawn = draw_curves([DrawnCurve("perfect", np.array([0.0, 1.0]), np.array([1.0, 1.0]))])
    (points,) = re.findall(r"points='([^']*)'", drawn)
    places = [[float(value) for value in point.split(",")] for point in points.split()]
    assert places[0][1] == places[1][1] == 10
    assert places[1][0] - places[0][0] == SIDE


def test_names_are_escaped():
    assert "<b>" not in draw_curves([DrawnCurve("<b>", np.zeros(1), np.ones(1))]).replace("<b>Precision", "")


def test_there_is_no_drawing_without_curves():
    assert draw_curves([]) == ""


def test_reports_of_pooled_benchmarks_have_a_drawing(raybench, tmp_path):
    given = ("--features", GOLDEN / "disc/data/small", "--codecs", "Flat", "--ray", "off", "--progress", "none")
    assert raybench("run", "disc2021", *given, "--out", tmp_path / "a").code == 0
    assert (tmp_path / "a/report.html").read_text().count("<polyline") == 4
    assert raybench("report", tmp_path / "a", "--out", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").read_text().count("<polyline") == 4
