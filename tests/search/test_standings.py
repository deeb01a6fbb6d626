"""Standings are what sorting all references by (distance, place) gives, for every cut and however many are equal."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.search import standings as module
from raybench.search.distances import row_distances
from raybench.search.standings import Asked, Standings, standings

DISTANCES = ["squared_L2", "ip"]


def rows(kind: str, count: int, dimension: int, seed: int):
    rng = np.random.default_rng(seed)
    if kind == "whole":
        return rng.integers(-2, 3, (count, dimension)).astype(np.float32)
    if kind == "equal":
        return np.tile(np.float32(rng.standard_normal(dimension)), (count, 1))
    found = rng.standard_normal((count, dimension)).astype(np.float32)
    if kind == "copies":  # many exact duplicates of numbers that are not whole
        return found[rng.integers(0, min(5, count), count)]
    if kind == "neighbours":  # float32 rows that differ in their last bits
        return np.nextafter(np.tile(found[:1], (count, 1)), np.float32(np.inf), where=found > 0, out=found)
    return found


def asked_for(queries, references, distance, seed, share=0.2):
    rng = np.random.default_rng(seed)
    row, place = np.nonzero(rng.random((len(queries), len(references))) < share)
    return Asked(row, place, row_distances(queries[row], references[place], distance))


def by_sorting(queries, references, asked, distance) -> Standings:
    all_distances = np.stack(
        [row_distances(np.broadcast_to(query, references.shape), references, distance) for query in queries]
    )
    order = np.argsort(all_distances, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    own = all_distances[asked.row]
    limit = asked.distance[:, None]
    return Standings(rank[asked.row, asked.place], (own < limit).sum(axis=1), (own <= limit).sum(axis=1) - 1)


def same(one: Standings, other: Standings) -> bool:
    return all(np.array_equal(vars(one)[name], vars(other)[name]) for name in vars(one))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("share", [0.005, 0.2], ids=["few", "many"])
@pytest.mark.parametrize("kind", ["floats", "whole", "copies", "equal", "neighbours"])
def test_standings_are_those_of_a_sort_of_all_references(kind, share, distance):
    queries, references = rows(kind, 9, 24, 0), rows(kind, 400, 24, 1)
    asked = asked_for(queries, references, distance, 2, share)
    found = standings(queries, references, np.arange(400), asked, distance)
    assert same(found, by_sorting(queries, references, asked, distance))


@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["floats", "whole", "copies"]),
    distance=st.sampled_from(DISTANCES),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_standings_of_parts_add_up_whatever_the_cut_and_order(seed, kind, distance, cuts):
    queries, references = rows(kind, 4, 6, seed), rows(kind, 60, 6, seed + 1)
    asked = asked_for(queries, references, distance, seed)
    order = np.random.default_rng(seed).permutation(60)
    edges = [0, *sorted(cuts), 60]
    parts = [order[start:stop] for start, stop in itertools.pairwise(edges)]
    found = [standings(queries, references[part], part, asked, distance) for part in parts if len(part)]
    summed = Standings(*(sum(vars(one)[name] for one in found) for name in vars(found[0])))
    assert same(summed, by_sorting(queries, references, asked, distance))


def test_small_blocks_change_nothing(monkeypatch):
    queries, references = rows("copies", 7, 16, 0), rows("copies", 300, 16, 1)
    asked = asked_for(queries, references, "squared_L2", 2)
    monkeypatch.setattr(module, "REFERENCE_BYTES", 8 * 16 * 37)
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 80)
    monkeypatch.setattr(module, "MANY_MEASURED", 3)
    found = standings(queries, references, np.arange(300), asked, "squared_L2")
    assert same(found, by_sorting(queries, references, asked, "squared_L2"))


def test_whole_numbers_are_exact_so_that_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(module, "measured", None)
    queries, references = rows("whole", 5, 8, 0), rows("whole", 200, 8, 1)
    asked = asked_for(queries, references, "ip", 2)
    assert same(
        standings(queries, references, np.arange(200), asked, "ip"), by_sorting(queries, references, asked, "ip")
    )


def test_nothing_asked_for_and_no_references_are_no_counts():
    none = Asked(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    assert len(standings(rows("floats", 2, 3, 0), rows("floats", 5, 3, 1), np.arange(5), none, "ip").before) == 0
    one = Asked(np.array([0]), np.array([3]), np.array([0.5]))
    nothing = standings(rows("floats", 2, 3, 0), np.zeros((0, 3), np.float32), np.zeros(0, np.int64), one, "ip")
    assert nothing.before.tolist() == [0]
