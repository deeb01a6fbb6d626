"""Intervals by drawing queries: each draw is what scoring the drawn queries would give."""

import math

import numpy as np
import pytest

from raybench.metrics.bootstrap import Interval, interval, pooled_draws
from raybench.metrics.micro_ap import Predictions, TruePairs, score_pooled

QUERIES, REFERENCES = 12, 9


def made(seed):
    """Scores with many ties; queries without true pair or prediction are among them."""
    random = np.random.default_rng(seed)
    query, reference = np.divmod(random.permutation(QUERIES * REFERENCES)[:50], REFERENCES)
    true = np.stack(np.divmod(random.permutation(QUERIES * REFERENCES)[:14], REFERENCES))
    right = {tuple(pair) for pair in true.T.tolist()}
    lift = [(pair in right) * 3 for pair in zip(query.tolist(), reference.tolist(), strict=True)]
    scores = random.integers(0, 6, 50) + np.array(lift)
    return TruePairs.of(*true), Predictions(query, reference, scores.astype(np.float64))


def one_block(predictions):
    return lambda: [predictions]


def drawn(truth, predictions, queries):
    """The drawn queries as a set of their own, in which each draw is another query."""
    true, rows = [], []
    for number, query in enumerate(queries.tolist()):
        true += [(number, reference) for reference in truth.reference[truth.query == query].tolist()]
        own = predictions.query == query
        rows += [(number, *row) for row in zip(predictions.reference[own], predictions.score[own], strict=True)]
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    pairs = TruePairs.of(*np.array(true, np.int64).reshape(-1, 2).T)
    return pairs, Predictions(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2])


@pytest.mark.parametrize("seed", range(5))
def test_a_draw_is_what_scoring_the_drawn_queries_gives(seed):
    truth, predictions = made(seed)
    draws = pooled_draws(truth, one_block(predictions), QUERIES, resamples=20, seed=7)
    random = np.random.default_rng(7)
    for draw in range(20):
        figures = score_pooled(*drawn(truth, predictions, random.integers(0, QUERIES, QUERIES)))
        assert draws.micro_ap[draw] == pytest.approx(figures.micro_ap, nan_ok=True)
        for column, point in enumerate(figures.at_precision):
            assert draws.recall[draw, column] == pytest.approx(point.recall, nan_ok=True)
            expected = math.inf if point.threshold is None else point.threshold
            assert draws.threshold[draw, column] == expected or math.isnan(figures.micro_ap)


@pytest.mark.parametrize("counted", [1, 7, 2**18])
@pytest.mark.parametrize("size", [1, 13, 50])
def test_draws_are_the_same_in_whatever_blocks_predictions_come(monkeypatch, counted, size):
    truth, predictions = made(1)
    whole = pooled_draws(truth, one_block(predictions), QUERIES, resamples=30)
    monkeypatch.setattr("raybench.metrics.drawn_ranking.COUNTED", counted)
    parts = [slice(start, start + size) for start in range(0, len(predictions), size)]
    blocks = [Predictions(predictions.query[at], predictions.reference[at], predictions.score[at]) for at in parts]
    cut = pooled_draws(truth, lambda: blocks, QUERIES, resamples=30)
    for name in ("micro_ap", "recall", "threshold"):
        assert np.array_equal(getattr(whole, name), getattr(cut, name), equal_nan=True)


def test_draws_depend_on_the_seed_and_not_on_the_order_of_predictions():
    truth, predictions = made(0)
    order = np.random.default_rng(3).permutation(len(predictions))
    shuffled = Predictions(predictions.query[order], predictions.reference[order], predictions.score[order])
    one, same, other = (
        pooled_draws(truth, one_block(rows), QUERIES, resamples=30, seed=seed)
        for rows, seed in ((predictions, 1), (shuffled, 1), (predictions, 2))
    )
    assert np.array_equal(one.micro_ap, same.micro_ap)
    assert np.array_equal(one.threshold, same.threshold)
    assert not np.array_equal(one.micro_ap, other.micro_ap)


def test_an_interval_holds_the_figure_and_narrows_with_more_queries():
    widths = []
    for count in (50, 5_000):
        random = np.random.default_rng(0)
        queries = np.arange(count)
        truth = TruePairs.of(queries, np.zeros(count, np.int64))
        query, reference = np.repeat(queries, 2), np.tile([0, 1], count)
        predictions = Predictions(query, reference, random.normal(size=2 * count) + (reference == 0))
        middle = interval(pooled_draws(truth, one_block(predictions), count, resamples=200).micro_ap)
        assert middle.low < score_pooled(truth, predictions).micro_ap < middle.high
        widths.append(middle.high - middle.low)
    assert widths[1] < widths[0] / 5


def test_a_precision_that_is_met_exactly_counts_in_a_draw():
    """One query with a wrong prediction first: after the k-th right one the precision is k / (k + 1)."""
    references = np.arange(11)
    truth = TruePairs.of(np.zeros(10, np.int64), np.delete(references, 0))
    predictions = Predictions(np.zeros(11, np.int64), references, np.r_[20.0, np.arange(10.0, 0.0, -1)])
    draws = pooled_draws(truth, one_block(predictions), 1, resamples=1, seed=0)
    assert draws.recall[0, 0] == 1.0 and draws.threshold[0, 0] == 1.0
    fewer = Predictions(np.zeros(10, np.int64), references[:10], predictions.score[:10])
    nine = TruePairs.of(np.zeros(9, np.int64), np.arange(1, 10))
    assert (
        pooled_draws(nine, one_block(fewer), 1, resamples=1, seed=0).recall[0, 0] == 1.0
    )  # 9 / 10, neither more nor less


@pytest.mark.parametrize(("draws", "low", "high"), [(1000, 25, 974), (40, 1, 38), (39, 0, 38), (100, 2, 97)])
def test_as_many_draws_lie_beyond_one_end_as_beyond_the_other(draws, low, high):
    assert interval(np.arange(float(draws))[::-1], 0.95) == Interval(float(low), float(high))


def test_a_threshold_that_is_hardly_ever_reached_has_no_upper_end():
    assert interval(np.array([0.5, np.inf, np.inf])) == Interval(0.5, None)
    assert interval(np.array([np.inf, np.inf])) == Interval(None, None)


def test_draws_without_true_pairs_are_left_out():
    assert interval(np.array([np.nan, 0.25, np.nan])) == Interval(0.25, 0.25)
    assert interval(np.array([np.nan])) == Interval(None, None)


def test_queries_without_true_pair_may_be_drawn_alone():
    truth = TruePairs.of(np.array([0]), np.array([0]))
    predictions = Predictions(np.array([0]), np.array([0]), np.array([1.0]))
    draws = pooled_draws(truth, one_block(predictions), 3, resamples=50)
    assert set(np.unique(draws.micro_ap[~np.isnan(draws.micro_ap)])) == {1.0}
    assert np.isnan(draws.micro_ap).any()
