"""A descriptor that tells nothing apart is found out in every patch benchmark; one that does is left in peace."""

import numpy as np
import pytest
from conftest import GOLDEN
from plain_outcomes import outcome_of

from raybench.benchmarks.constant_vectors import constant_words
from raybench.benchmarks.hpatches.matching import matching_ties
from raybench.search.nearest import Neighbours

BENCHMARKS = (
    "hbench-classification",
    "hbench-matching",
    "hbench-retrieval",
    "hpatches-verification",
    "hpatches-matching",
    "hpatches-retrieval",
)


def data_of(name):
    return GOLDEN / name.replace("-", "_") / "data"


def made_features(name, folder, made):
    """The golden descriptors with other rows: `made` of their number."""
    source = min((data_of(name) / "descriptors").iterdir())
    for file in sorted(source.rglob("*.csv")):
        there = folder / file.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(there, made(len(file.read_text().splitlines())), delimiter=";" if "hbench" in name else ",")
    return folder


def run(name, out, features):
    truth = {"benchmarks": data_of(name) / "benchmarks"} if "hbench" in name else {"tasks": data_of(name) / "tasks"}
    return outcome_of(out, name, features=features, **truth)


def notes(run, word):
    return [note for note in run.notes if note.startswith(word)]


def ties_of(outcome):
    return next((table for table in outcome.further if table.name == "ties"), None)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_collapsed_descriptor_is_warned_of_with_both_bounds(tmp_path, name):
    features = made_features(name, tmp_path / "ones", lambda count: np.ones((count, 8)))
    outcome, done = run(name, tmp_path / "out", features)
    assert len(notes(done, "CONSTANT:")) == 1
    (loud,) = notes(done, "TIES:")
    table = ties_of(outcome)
    assert table.columns == ("row", "figure", "value", "worst", "best", "tied")
    for row, figure, value, worst, best, tied in table.rows:
        assert worst <= value <= best, (row, figure)
        assert tied > 0
    widest = max(table.rows, key=lambda row: row[4] - row[3])
    assert widest[3] < 0.35 and widest[4] > 0.85
    assert f"{widest[1]} of {widest[0]} " in loud and f"{100 * widest[3]:.2f} to {100 * widest[4]:.2f}" in loud
    figures = sum(isinstance(cell, float) for row in outcome.main.rows for cell in row)
    assert len(table.rows) == figures  # none of them can be trusted


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_healthy_descriptor_is_left_in_peace(tmp_path, name):
    rng = np.random.default_rng(0)
    features = made_features(name, tmp_path / "any", lambda count: rng.standard_normal((count, 8)))
    outcome, done = run(name, tmp_path / "out", features)
    assert done.notes == []
    table = ties_of(outcome)
    assert table is None or name == "hpatches-verification"  # its lists hold a pair both as positive and as negative
    assert not [row for row in (table.rows if table else ()) if row[4] - row[3] > 0.001]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_published_figures_lie_between_the_bounds(tmp_path, name):
    rng = np.random.default_rng(1)
    coarse = made_features(name, tmp_path / "coarse", lambda count: rng.integers(0, 2, (count, 4)))
    outcome, done = run(name, tmp_path / "out", coarse)
    keys = {"hpatches-matching": 2, "hpatches-verification": 3, "hpatches-retrieval": 3}.get(name, 1)
    cells = {
        (" | ".join(map(str, row[:keys])), column): value
        for row in outcome.main.rows
        for column, value in zip(outcome.main.columns, row, strict=True)
    }
    table = ties_of(outcome)
    for row, figure, value, worst, best, _ in table.rows:
        assert cells[row, figure] == pytest.approx(value, abs=1e-12)
        assert worst <= value <= best
    assert any(row[3] < row[2] or row[2] < row[4] for row in table.rows)
    assert not notes(done, "CONSTANT:")


@pytest.mark.parametrize("name", ["hbench-classification", "hbench-matching"])
def test_finished_results_whose_distances_are_all_equal_are_warned_of(tmp_path, name):
    features = made_features(name, tmp_path / "ones", lambda count: np.ones((count, 8)))
    run(name, tmp_path / "a", features)
    truth = {"benchmarks": data_of(name) / "benchmarks"}
    _, done = outcome_of(tmp_path / "b", name, results=tmp_path / "a/results", **truth)
    assert len(notes(done, "CONSTANT: all distances are equal")) == 1


@pytest.mark.parametrize(
    ("place", "second", "true", "success"),
    [
        (0, 2.0, 1.0, (1.0, 1.0)),  # right, and nobody else is as near
        (0, 1.0, 1.0, (0.0, 1.0)),  # right, but another is as near
        (1, 2.0, 1.0, (0.0, 1.0)),  # wrong, but the true one is as near
        (1, 1.0, 1.5, (0.0, 0.0)),  # wrong, and the true one is farther
    ],
)
def test_a_match_is_open_where_the_true_patch_is_not_alone_at_its_distance(place, second, true, success):
    found = Neighbours(np.array([[1.0, second]]), np.array([[place, 1 - place]]))
    worst, best, tied = matching_ties(found, np.array([true]))
    assert (worst[1], best[1]) == success
    assert tied[1] == (worst[1] != best[1])


def test_vectors_that_tell_nothing_apart():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 16))
    assert constant_words(rows) is None
    assert constant_words(rows.astype(np.uint8)) is None
    assert constant_words(rows[:1]) is None and constant_words(rows[:0]) is None
    assert constant_words(np.zeros((3, 2), np.uint8)) == "3 of 3 vectors looked at are zero"
    assert constant_words(np.where(np.arange(200)[:, None] < 1, rows, 0)) == "199 of 200 vectors looked at are zero"
    assert constant_words(1 + 1e-8 * rows) == "all 200 vectors looked at are nearly equal"
