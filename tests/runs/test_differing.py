"""Units on which runs differ are drawn for the run that is behind, unless the data is gone."""

import dataclasses

import pytest
from report_pages import copy_run

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import ReportPicture
from raybench.errors import DataError
from raybench.runs.differing import with_differing_cases


class Opened:
    """An entry of BENCHMARKS whose cases are drawn by a function of the test."""

    def __init__(self, cases):
        self.benchmark = dataclasses.replace(BENCHMARKS["disc2021"].open(), cases=cases)

    def open(self):
        return self.benchmark


@pytest.fixture
def runs():
    first, second = copy_run("a", (1.0, 0.0, 0.5, 0.2)), copy_run("b", (0.0, 0.0, 0.8, 0.9))
    return [dataclasses.replace(run, pictures=(), out=out) for run, out in ((first, "/a"), (second, "/b"))]


def test_each_run_shows_where_it_is_behind_the_largest_difference_first(runs, monkeypatch):
    def draw(out, arguments, tables, units):
        return [ReportPicture(f"{out} {unit}", "", unit=unit) for unit in units]

    monkeypatch.setitem(BENCHMARKS, "disc2021", Opened(draw))
    first, second = with_differing_cases(runs, pytest.fail)
    last = runs[0].units[0].names[3]
    assert [picture.title for picture in first.pictures] == [f"/a {last}", "/a Q2"]
    assert [picture.title for picture in second.pictures] == ["/b Q0"]


def test_where_the_data_is_gone_that_is_said_and_the_page_goes_on(runs, monkeypatch):
    def draw(out, arguments, tables, units):
        raise DataError("no longer there")

    monkeypatch.setitem(BENCHMARKS, "disc2021", Opened(draw))
    lines = []
    assert [run.pictures for run in with_differing_cases(runs, lines.append)] == [(), ()]
    assert lines == [f"{out}: no pictures of where runs differ (no longer there)" for out in ("/a", "/b")]
