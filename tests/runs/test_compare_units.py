"""Samples of several runs over the units that they share."""

import numpy as np

from raybench.metrics.samples import FigureOf, MeanSample, RankedSample, Units
from raybench.runs.comparing.units import shared_units

FIGURE = (FigureOf("row", "figure"),)


def ranking(names, positive, unit, missed):
    unit = np.array(unit, np.int32)
    return RankedSample(
        FIGURE, ("step_ap",), Units.plain(list(names)), np.array(positive), unit, unit, np.array(missed)
    )


def test_units_with_another_number_of_true_items_are_named():
    one = ranking("abc", [True, False, True], [0, 0, 1], [0, 1, 0])
    same = ranking("abc", [True], [1], [1, 1, 0])
    other = ranking("abc", [True, True], [0, 1], [0, 0, 0])
    assert not shared_units(["one", "same"], "queries", [one, same]).problem
    said = shared_units(["one", "other"], "queries", [one, other]).problem
    assert said == "1 of the queries have another number of true items (b: 2 in one, 1 in other)"


def test_a_unit_without_true_items_may_be_missing():
    one = ranking("ab", [False, True], [1, 0], [0, 0])
    other = ranking("a", [True], [0], [0])
    shared = shared_units(["one", "other"], "queries", [one, other])
    assert not shared.problem and not shared.dropped
    assert [sample.units.names.tolist() for sample in shared.samples] == [["a", "b"]] * 2


def test_units_that_one_run_lacks_are_dropped_with_their_items():
    units = [Units.plain(list(names)) for names in ("abc", "ca")]
    values = np.array([[0.1], [0.2], [0.3]])
    one = MeanSample(FIGURE, units[0], np.arange(3, dtype=np.int32), values)
    other = MeanSample(FIGURE, units[1], np.array([0, 1], np.int32), values[[2, 0]])
    shared = shared_units(["one", "other"], "pairs", [one, other])
    assert shared.problem == "1 of the pairs are not in other (b …)" and shared.dropped
    assert [sample.values.ravel().tolist() for sample in shared.samples] == [[0.1, 0.3], [0.3, 0.1]]
    assert [sample.unit.tolist() for sample in shared.samples] == [[0, 1], [1, 0]]


def test_units_keep_their_stratum():
    strata = Units(np.array(["x", "y", "z"]), np.array([0, 1, 1], np.int32))
    one = MeanSample(FIGURE, strata, np.arange(3, dtype=np.int32), np.zeros((3, 1)))
    turned = Units(np.array(["z", "y", "x"]), np.array([1, 1, 0], np.int32))
    other = MeanSample(FIGURE, turned, np.arange(3, dtype=np.int32), np.zeros((3, 1)))
    shared = shared_units(["one", "other"], "pairs", [one, other])
    assert not shared.problem
    assert all(sample.units.stratum.tolist() == [0, 1, 1] for sample in shared.samples)


def test_units_count_for_the_figures_that_they_have_items_of():
    figures = (FigureOf("cars", "T5"), FigureOf("horses", "T5"))
    values = np.array([[0.1, np.nan], [0.2, np.nan], [np.nan, 0.3]])  # two pairs of one group, one of another
    groups = MeanSample(figures, Units.plain(list("abc")), np.arange(3, dtype=np.int32), values)
    one_group = MeanSample(figures[1:], groups.units, groups.unit, values[:, 1:])
    known = shared_units(["one", "other"], "pairs", [groups, groups]).units_with_items
    assert [known[figure].tolist() for figure in figures] == [["a", "b"], ["c"]]
    forced = shared_units(["one", "other"], "pairs", [groups, one_group]).units_with_items
    assert {figure: names.tolist() for figure, names in forced.items()} == {figures[1]: ["c"]}
