"""Ties of copy detection: the best case beside the published worst one; collapsed descriptors are found out."""

import itertools

import numpy as np
import pytest
from conftest import GOLDEN
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_outcomes import outcome_of

from raybench.benchmarks.images.figures import CodecResults, query_ap
from raybench.benchmarks.images.ties import list_extremes, pooled_best
from raybench.metrics.micro_ap import Predictions, TruePairs, score_pooled
from raybench.metrics.partials import TopK
from raybench.metrics.ranking import trapezoid_ap


class Listed:
    """Candidates that are all there, in two blocks."""

    def __init__(self, *columns):
        self.columns = columns

    def blocks(self):
        half = len(self.columns[0]) // 2
        yield from (
            Predictions(*(column[part] for column in self.columns)) for part in (slice(half), slice(half, None))
        )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_the_best_case_is_that_of_true_pairs_raised_by_next_to_nothing(seed):
    rng = np.random.default_rng(seed)
    query, reference = (axis.reshape(-1) for axis in np.indices((4, 5)))
    score = rng.integers(0, 4, 20).astype(np.float64)
    truth = TruePairs.of(np.arange(4), rng.integers(0, 5, 4))  # one reference for each query
    found = pooled_best(Listed(query, reference, score), truth)
    true = truth.places(query, reference) >= 0
    raised = score_pooled(truth, Predictions(query, reference, score + 0.5 * true))
    assert found["best"].tolist() == pytest.approx(
        [raised.micro_ap, raised.accuracy_at_1, raised.at_precision[0].recall]
    )
    worst = score_pooled(truth, Predictions(query, reference, score))
    assert (found["tied"][0] == 0) == (worst.micro_ap == pytest.approx(raised.micro_ap, abs=1e-12))
    assert (found["tied"][1] == 0) == (worst.accuracy_at_1 == raised.accuracy_at_1)


class Found:
    def __init__(self, top):
        self.top = top

    def read(self, _):
        return self.top.to_arrays()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_both_cases_of_lists_are_the_extremes_of_every_order(seed):
    rng = np.random.default_rng(seed)
    distance = np.sort(rng.integers(0, 2, (2, 3)), axis=1).astype(np.float64)
    reference = np.stack([rng.permutation(3) for _ in range(2)])
    truth = TruePairs.of(np.arange(2), rng.integers(0, 3, 2))
    found = list_extremes(CodecResults("Flat", Found(TopK(np.arange(2), distance, reference))), truth, np.arange(2))
    relevant = reference == truth.reference[:, None]
    orders = [
        [order for order in itertools.permutations(range(3)) if (np.diff(row[list(order)]) >= 0).all()]
        for row in distance
    ]
    ap = [
        [query_ap(flags[None, list(o)], np.ones(1))[0] for o in own]
        for flags, own in zip(relevant, orders, strict=True)
    ]
    flat = np.argsort(distance.reshape(-1) + np.where(relevant.reshape(-1), -0.1, 0.1))
    last = np.argsort(distance.reshape(-1) + np.where(relevant.reshape(-1), 0.1, -0.1))
    assert found["worst"].tolist() == pytest.approx(
        [np.mean([min(own) for own in ap]), trapezoid_ap(relevant.reshape(-1)[last], 2)]
    )
    assert found["best"].tolist() == pytest.approx(
        [np.mean([max(own) for own in ap]), trapezoid_ap(relevant.reshape(-1)[flat], 2)]
    )


def notes(run, word):
    return [note for note in run.notes if note.startswith(word)]


def collapsed(source, folder):
    """The vector files of a folder with ones for vectors; other files as they are."""
    folder.mkdir()
    for file in source.iterdir():
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                ones = {name: np.ones_like(value) if value.ndim == 2 else value for name, value in arrays.items()}
            np.savez(folder / file.name, **ones)
        else:
            (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize(("name", "source"), [("disc2021", "disc/data/small"), ("copydays", "copydays/data")])
def test_collapsed_descriptors_are_found_out(tmp_path, name, source):
    ones = collapsed(GOLDEN / source, tmp_path / "ones")
    outcome, run = outcome_of(tmp_path / "out", name, features=ones, codecs="Flat")
    assert notes(run, "CONSTANT: ")
    assert len(notes(run, "TIES:")) == 1
    (table,) = [table for table in outcome.further if table.name == "ties"]
    for row in table.rows:
        assert row[3] <= row[2] <= row[4]
    assert max(row[4] - row[3] for row in table.rows) > 0.05


@pytest.mark.parametrize(("name", "source"), [("disc2021", "disc/data/small"), ("copydays", "copydays/data")])
def test_golden_descriptors_are_left_in_peace(tmp_path, name, source):
    outcome, run = outcome_of(tmp_path / "out", name, features=GOLDEN / source, codecs="Flat")
    assert not notes(run, "CONSTANT: ") and not notes(run, "TIES:")
    assert not [table for table in outcome.further if table.name == "ties"]
