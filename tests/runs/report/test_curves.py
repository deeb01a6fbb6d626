"""Curves are read from the files that a run left, and thinned without losing what a reader looks for."""

import json
import re

import numpy as np
from conftest import GOLDEN

from raybench.runs.report.curves import ReadCurve, thinned


def long_curve(points):
    hits = np.random.default_rng(0).random(points) < np.linspace(1, 0, points) ** 3
    found = hits.cumsum()
    return {
        "recall": found / found[-1],
        "precision": found / np.arange(1, points + 1),
        "false_positive_rate": (~hits).cumsum() / (~hits).sum(),
        "score": -np.arange(points, dtype=float),
    }


def test_a_curve_of_many_points_keeps_few_and_its_ends():
    columns = long_curve(50_000)
    kept = thinned("a", columns)
    assert len(kept.recall) < 150
    assert kept.recall[0] == columns["recall"][0] and kept.recall[-1] == 1.0


def test_what_is_kept_gives_precision_at_every_recall_to_two_points():
    columns = long_curve(50_000)
    kept = thinned("a", columns)
    recalls = np.linspace(0.02, 1, 50)
    whole = np.interp(recalls, columns["recall"], columns["precision"])
    assert abs(np.interp(recalls, kept.recall, kept.precision) - whole).max() < 0.02
    assert (
        abs(
            np.interp(0.01, kept.false_positive_rate, kept.recall)
            - np.interp(0.01, columns["false_positive_rate"], columns["recall"])
        )
        < 0.02
    )


def test_numbers_on_the_page_are_short_and_undefined_ones_are_null():
    curve = ReadCurve("a", np.array([0.5, np.nan]), np.array([1.0, 1 / 3]), score=np.array([1 / 3, np.inf]))
    assert curve.to_json() == {"recall": [5000, None], "precision": [10000, 3333], "score": [0.33333, None]}


def test_reports_of_pooled_benchmarks_have_their_curves(raybench, tmp_path):
    given = ("--features", GOLDEN / "disc/data/small", "--codecs", "Flat", "--ray", "off", "--progress", "none")
    assert raybench("run", "disc2021", *given, "--out", tmp_path / "a").code == 0
    assert raybench("report", tmp_path / "a", "--out", tmp_path / "page.html").code == 0
    for page in (tmp_path / "a/report.html", tmp_path / "page.html"):
        (block,) = re.findall(r'<script type="application/json" id="page-data">(.*?)</script>', page.read_text())
        (section,) = json.loads(block)["sections"]
        assert len(section["curves"]["names"]) == 4
        (run,) = section["curves"]["runs"]
        assert set(run["curves"]) == set(section["curves"]["names"])
