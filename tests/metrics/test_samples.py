"""Draws of units: each is what the plain functions give for the list of units that was drawn."""

import numpy as np
import pytest

from raybench.metrics import drawn_ranking
from raybench.metrics.error_rates import fdr95, fpr95
from raybench.metrics.ranking import roc_auc, trapezoid_ap, trec_ap
from raybench.metrics.samples import (
    FLAVOURS,
    FigureOf,
    MeanOf,
    MeanSample,
    RankedSample,
    Units,
    ranked_figure,
    sample_of,
)
from raybench.metrics.unit_figures import unit_figures

UNITS = 7


def figures(count):
    return tuple(FigureOf("row", f"figure {number}") for number in range(count))


def units():
    return Units.plain([f"unit {number}" for number in range(UNITS)])


def ranked_sample(seed, items=60, between=True, missed=True):
    random = np.random.default_rng(seed)
    first, second = random.integers(0, UNITS, (2, items)).astype(np.int32)
    lost = random.integers(0, 3, UNITS) if missed else np.zeros(UNITS, np.int64)
    positive = random.random(items) < 0.3
    second = second if between else first
    return RankedSample(figures(len(FLAVOURS)), FLAVOURS, units(), positive, first, second, lost)


def mean_sample(seed, items=40):
    random = np.random.default_rng(seed)
    values = random.integers(0, 5, (items, 2)) / 4  # sums are exact
    values[random.random(values.shape) < 0.2] = np.nan
    return MeanSample(figures(2), units(), random.integers(0, UNITS, items).astype(np.int32), values)


def drawn_list(sample, drawn):
    """In rank order the flags of the items of a list of units: an item between two comes once per pair of copies."""
    flags = []
    for positive, first, second in zip(sample.positive, sample.first, sample.second, strict=True):
        pairs = [(one, other) for one in drawn for other in drawn if (one, other) == (first, second)]
        flags += [positive] * (drawn.count(first) if first == second else len(pairs))
    return np.array(flags, np.bool_), sum(int(sample.missed[unit]) for unit in drawn)


def plain_recall(flags, missed, least):
    recall = [flags[: place + 1].sum() / (flags.sum() + missed) for place in range(len(flags))]
    good = [one for place, one in enumerate(recall) if flags[: place + 1].mean() >= least]
    return max(good, default=0.0)


def lists_drawn(count, seed):
    """The same draws by the plain way: a list of so many units, each any of them."""
    random = np.random.default_rng(seed)
    return [random.integers(0, UNITS, UNITS).tolist() for _ in range(count)]


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("counted", [1, 5, 2**16])
def test_a_ranking_is_drawn_as_the_list_that_it_stands_for(monkeypatch, between, counted):
    monkeypatch.setattr(drawn_ranking, "COUNTED", counted)
    sample = ranked_sample(3, between=between, missed=False)
    for times, drawn in zip(sample.units.draws(30, 5), lists_drawn(30, 5), strict=True):
        flags, _ = drawn_list(sample, drawn)
        expected = [trec_ap(flags), trapezoid_ap(flags), roc_auc(flags), plain_recall(flags, 0, 0.9)]
        assert sample.draw(times).tolist() == [*expected, fpr95(flags), fdr95(flags)]


def test_positives_that_were_not_ranked_lower_a_draw():
    sample = ranked_sample(1)
    for times, drawn in zip(sample.units.draws(20, 2), lists_drawn(20, 2), strict=True):
        flags, missed = drawn_list(sample, drawn)
        step, trapezoid, auc, recall, *_ = sample.draw(times).tolist()
        found = int(flags.sum())
        assert step == pytest.approx(trec_ap(flags) * found / (found + missed), rel=1e-14)
        assert trapezoid == trapezoid_ap(flags, found + missed)
        assert auc == roc_auc(flags)
        assert recall == plain_recall(flags, missed, 0.9)


def test_means_are_drawn_as_the_list_that_they_stand_for():
    sample = mean_sample(0)
    for times, drawn in zip(sample.units.draws(30, 4), lists_drawn(30, 4), strict=True):
        rows = np.concatenate([sample.values[sample.unit == unit] for unit in drawn])
        assert sample.draw(times).tolist() == np.nanmean(rows, axis=0).tolist()


def test_units_are_drawn_within_their_stratum():
    strata = Units(np.array(list("abcde")), np.array([0, 1, 0, 1, 1], np.int32))
    for times in strata.draws(50, 0):
        assert times[[0, 2]].sum() == 2
        assert times[[1, 3, 4]].sum() == 3


def test_draws_follow_from_seed_and_number_of_units_alone():
    names = Units.plain(list("abcdefg"))
    assert [times.tolist() for times in names.draws(5, 3)] == [times.tolist() for times in units().draws(5, 3)]
    assert [times.tolist() for times in names.draws(5, 3)] != [times.tolist() for times in names.draws(5, 4)]


def test_a_draw_without_positives_or_items_has_no_figure():
    ranked, means = ranked_sample(0, between=False), mean_sample(0)
    nobody = np.zeros(UNITS, np.int64)
    assert np.isnan(ranked.draw(nobody)).all()
    assert np.isnan(means.draw(nobody)).all()


def test_a_mean_of_figures_leaves_out_those_that_do_not_exist():
    one, other = figures(2)
    drawn = {one: np.array([0.5, np.nan, np.nan]), other: np.array([1.0, 0.25, np.nan])}
    assert MeanOf(FigureOf("mean", "x"), (one, other)).draws(drawn).tolist()[:2] == [0.75, 0.25]
    assert np.isnan(MeanOf(FigureOf("mean", "x"), (one, other)).draws(drawn)[2])


@pytest.mark.parametrize("sample", [ranked_sample(0), ranked_sample(0, between=False), mean_sample(0)])
def test_a_sample_taken_apart_and_put_together_draws_the_same(sample):
    same = sample_of(sample.to_arrays())
    times = next(sample.units.draws(1, 0))
    assert np.array_equal(sample.draw(times), same.draw(times), equal_nan=True)
    assert same.units.names.tolist() == sample.units.names.tolist()
    assert same.figures == sample.figures


@pytest.mark.parametrize("between", [False, True])
def test_a_unit_alone_is_worth_what_its_own_items_are(between):
    sample = ranked_sample(2, items=80, between=between)
    values = unit_figures(sample)
    for unit in range(UNITS):
        own = sample.positive[(sample.first == unit) | (sample.second == unit)]
        expected = [ranked_figure(flavour, own, int(sample.missed[unit])) for flavour in FLAVOURS]
        assert values[:, unit].tolist() == pytest.approx(expected, nan_ok=True)


def test_a_unit_without_items_has_no_value_of_its_own():
    nobody = np.zeros(0, np.int32)
    empty = RankedSample(figures(1), ("step_ap",), units(), nobody.astype(np.bool_), nobody, nobody, np.r_[1, [0] * 6])
    assert unit_figures(empty)[0, 0] == 0.0  # its only positive was not found
    assert np.isnan(unit_figures(empty)[0, 1:]).all()
    assert np.isnan(unit_figures(MeanSample(figures(1), units(), nobody, np.zeros((0, 1))))).all()
