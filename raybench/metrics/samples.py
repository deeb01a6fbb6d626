"""What figures are made of, by the unit that is independent (a query, a sequence, an image pair), to draw them again.

A sample holds the items of one or several figures of the main table: `MeanSample` where a figure is a mean over items,
`RankedSample` where items are ranked in one pool. A draw gives each unit the number of times that it was drawn; an item
counts as often as its unit, and one between two units as often as the product says. `MeanOf` are figures that are
means of others. Samples know neither files nor benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.drawn_ranking import DrawnRanking, Times
from raybench.metrics.error_rates import error_rate_of_ranks
from raybench.metrics.ranking import trapezoid_ap_of_ranks

Arrays = dict[str, NDArray[Any]]
FLAVOURS = ("step_ap", "trapezoid_ap", "roc_auc", "recall_at_p90", "fpr95", "fdr95")


@dataclass(frozen=True, order=True)
class FigureOf:
    """One cell of the main table: the key cells of its row joined by ` | `, and its column."""

    row: str
    figure: str


@dataclass(frozen=True)
class Units:
    """What is drawn: names, and the stratum within which each is drawn (pairs of a TSS group); all 0 for none."""

    names: NDArray[np.str_]
    stratum: NDArray[np.int32]

    @classmethod
    def plain(cls, names: Sequence[str]) -> Units:
        return cls(np.array(names, np.str_), np.zeros(len(names), np.int32))

    def __len__(self) -> int:
        return len(self.names)

    def places(self, names: NDArray[np.str_]) -> NDArray[np.int32]:
        """The place of each name among the units, -1 where it is none of them."""
        order = np.argsort(self.names)
        if not len(order):
            return np.full(len(names), -1, np.int32)
        nearest = order[np.minimum(np.searchsorted(self.names, names, sorter=order), len(order) - 1)]
        return np.where(self.names[nearest] == names, nearest, -1).astype(np.int32)

    def draws(self, count: int, seed: int) -> Iterator[Times]:
        """How often each unit is drawn, draw by draw."""
        return unit_draws(self.stratum, count, seed)


def unit_draws(stratum: NDArray[np.int32], count: int, seed: int) -> Iterator[Times]:
    """How often each unit is drawn, draw by draw: as many of a stratum as it has, with replacement.

    Draws depend on the seed, the number of units and their strata alone, so two runs over the same units are drawn
    alike, and the differences of their draws are those of a paired test.
    """
    random = np.random.default_rng(seed)
    members = [np.flatnonzero(stratum == number) for number in np.unique(stratum)]
    for _ in range(count):
        times = np.zeros(len(stratum), np.int64)
        for own in members:
            times[own] = np.bincount(random.integers(0, len(own), len(own)), minlength=len(own))
        yield times


@dataclass(frozen=True)
class MeanSample:
    """Figures that are means over items: values (items, figures), nan where an item does not count."""

    figures: tuple[FigureOf, ...]
    units: Units
    unit: NDArray[np.int32]  # (items,) the unit of each
    values: NDArray[np.float64]

    def draw(self, times: Times) -> NDArray[np.float64]:
        """The figures of one draw; nan for one without items."""
        sums, counts = self.by_unit
        total = (counts * times).sum(axis=1)
        means: NDArray[np.float64] = np.where(total > 0, (sums * times).sum(axis=1) / np.maximum(total, 1), np.nan)
        return means

    @cached_property
    def by_unit(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The sum of each figure's values in each unit, and how many they are: (figures, units)."""
        there = ~np.isnan(self.values.T)
        values = np.nan_to_num(self.values.T)
        sums = [np.bincount(self.unit, column, minlength=len(self.units)) for column in values]
        counts = [np.bincount(self.unit[column], minlength=len(self.units)) for column in there]
        shape = (len(self.figures), len(self.units))
        return np.array(sums, np.float64).reshape(shape), np.array(counts, np.int64).reshape(shape)

    def of_units(self, units: Units) -> MeanSample:
        """The same over these units, by name; items of others are left out."""
        unit = units.places(self.units.names)[self.unit]
        return MeanSample(self.figures, units, unit[unit >= 0], self.values[unit >= 0])

    @property
    def items_by_unit(self) -> NDArray[np.int64]:
        """How many items each unit has, whatever they are worth: the same for every method that is measured."""
        return np.bincount(self.unit, minlength=len(self.units))

    @property
    def has_items(self) -> NDArray[np.bool_]:
        """By figure, which units have items that count: (figures, units)."""
        counts: NDArray[np.bool_] = self.by_unit[1] > 0
        return counts

    def to_arrays(self) -> Arrays:
        return {**_header("means", self.figures, self.units), "unit": self.unit, "values": self.values}


@dataclass(frozen=True)
class RankedSample:
    """Figures of one ranking of items, the best first, by the tie rule of their benchmark.

    An item lies between two units, or in one (`first` equals `second`). `missed` counts positives of each unit that are
    not among the items (below 0 where more are ranked than the figure is divided by). `flavours` says what each figure
    is (see FLAVOURS).
    """

    figures: tuple[FigureOf, ...]
    flavours: tuple[str, ...]
    units: Units
    positive: NDArray[np.bool_]  # (items,) in ranked order
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    missed: NDArray[np.int64]  # (units,)

    def draw(self, times: Times) -> NDArray[np.float64]:
        """The figures of one draw; nan where the drawn units leave none."""
        drawn = self._ranking.ranks(times)
        missed = int((self.missed * times).sum())
        return np.array([figure_of_ranks(flavour, drawn.ranks, missed, drawn.others) for flavour in self.flavours])

    @cached_property
    def _ranking(self) -> DrawnRanking:
        return DrawnRanking.of(self.positive, self.first, self.second, len(self.units))

    def of_units(self, units: Units) -> RankedSample:
        """The same over these units, by name; items of others are left out."""
        place = units.places(self.units.names)
        first, second = place[self.first], place[self.second]
        kept, known = (first >= 0) & (second >= 0), place >= 0
        missed = np.zeros(len(units), np.int64)
        missed[place[known]] = self.missed[known]
        return RankedSample(self.figures, self.flavours, units, self.positive[kept], first[kept], second[kept], missed)

    @property
    def items_by_unit(self) -> NDArray[np.int64]:
        """How many positives each unit has, ranked or missed: the same for every method that is measured."""
        return self.missed + np.bincount(self.first[self.positive], minlength=len(self.units))

    @property
    def has_items(self) -> NDArray[np.bool_]:
        """By figure, which units have positives: (figures, units)."""
        return np.tile(self.items_by_unit > 0, (len(self.figures), 1))

    def to_arrays(self) -> Arrays:
        return {
            **_header("ranked", self.figures, self.units),
            "flavour": np.array(self.flavours, np.str_),
            "positive": self.positive,
            "first": self.first,
            **({} if np.array_equal(self.first, self.second) else {"second": self.second}),
            "missed": self.missed,
        }


Sample = MeanSample | RankedSample


@dataclass(frozen=True)
class MeanOf:
    """A figure that is the mean of others, such as over noise levels or groups; what does not exist is left out."""

    figure: FigureOf
    parts: tuple[FigureOf, ...]

    def draws(self, drawn: Mapping[FigureOf, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Its value in each draw, from those of its parts."""
        values = np.stack([drawn[part] for part in self.parts])
        there = ~np.isnan(values)
        total = there.sum(axis=0)
        means: NDArray[np.float64] = np.where(
            total > 0, np.nan_to_num(values).sum(axis=0) / np.maximum(total, 1), np.nan
        )
        return means


def ranked_figure(flavour: str, ranked: NDArray[np.bool_], missed: int) -> float:
    """A figure of flags in ranked order, where `missed` further positives were not ranked; nan without positives.

    >>> ranked_figure("step_ap", np.array([True, False, True]), 1)
    0.5555555555555555
    """
    ranks = np.flatnonzero(ranked) + 1
    return figure_of_ranks(flavour, ranks, missed, len(ranked) - len(ranks))


def figure_of_ranks(flavour: str, ranks: NDArray[np.int64], missed: int, others: int) -> float:
    """The same from the ranks (from 1, rising) of the positives, and how many others there are in all."""
    positives = len(ranks) + missed
    if not positives or (flavour == "roc_auc" and not (len(ranks) and others)):
        return float("nan")
    if flavour in ("fpr95", "fdr95"):
        return error_rate_of_ranks(flavour, ranks, positives, others)
    number = np.arange(1, len(ranks) + 1)
    if flavour == "roc_auc":
        return 1.0 - int((ranks - number).sum()) / (len(ranks) * others)
    if flavour == "trapezoid_ap":
        return float(trapezoid_ap_of_ranks(ranks, positives))
    precision = number / ranks
    if flavour == "step_ap":
        return float(precision.sum() / positives)
    assert flavour == "recall_at_p90", flavour
    good = np.flatnonzero(precision >= 0.9)
    return (int(good[-1]) + 1) / positives if len(good) else 0.0


def sample_of(arrays: Arrays) -> Sample:
    """The sample that `to_arrays` took apart."""
    figures = tuple(map(FigureOf, arrays["row"].tolist(), arrays["figure"].tolist()))
    units = Units(np.char.decode(arrays["units"], "utf-8"), arrays["stratum"])
    if arrays["kind"][0] == "means":
        return MeanSample(figures, units, arrays["unit"], arrays["values"])
    flavours = tuple(arrays["flavour"].tolist())
    first = arrays["first"]
    ranking = arrays["positive"], first, arrays.get("second", first), arrays["missed"]
    return RankedSample(figures, flavours, units, *ranking)


def check_arrays(arrays: Arrays) -> None:
    """Raise ValueError or LookupError unless `sample_of` makes a sample of these arrays that can be drawn."""
    count, figures = len(arrays["units"]), len(arrays["row"])
    is_means = arrays["kind"].tolist() == ["means"]
    placed = ("unit",) if is_means else ("first", "second") if "second" in arrays else ("first",)
    items = len(arrays[placed[0]])
    forms: dict[str, tuple[str, tuple[int, ...]]] = {
        "kind": ("U", (1,)),
        "row": ("U", (figures,)),
        "figure": ("U", (figures,)),
        "units": ("S", (count,)),
    }
    forms |= {"stratum": ("i", (count,)), **dict.fromkeys(placed, ("i", (items,)))}
    if is_means:
        forms["values"] = ("f", (items, figures))
    else:
        forms |= {"positive": ("b", (items,)), "missed": ("i", (count,)), "flavour": ("U", (figures,))}
    for name, form in forms.items():
        if (arrays[name].dtype.kind.replace("u", "i"), arrays[name].shape) != form:
            raise ValueError(f"{name}: {arrays[name].shape} of {arrays[name].dtype}")
    if not is_means and (arrays["kind"][0] != "ranked" or not set(arrays["flavour"].tolist()) <= set(FLAVOURS)):
        raise ValueError("unknown kind or flavour")
    if any(items and not 0 <= arrays[name].min() <= arrays[name].max() < count for name in placed):
        raise ValueError("an item of no unit")


def _header(kind: str, figures: Sequence[FigureOf], units: Units) -> Arrays:
    return {
        "kind": np.array([kind]),
        "row": np.array([one.row for one in figures], np.str_),
        "figure": np.array([one.figure for one in figures], np.str_),
        "units": np.char.encode(units.names, "utf-8"),  # a quarter of the size of numpy's own letters
        "stratum": units.stratum,
    }
