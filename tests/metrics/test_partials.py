"""Partials merge to the same bytes however the items are cut and in whatever order the parts arrive."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.partials import Counts, Rows

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

values_by_item = st.dictionaries(st.integers(-(2**40), 2**40), st.floats(), max_size=40)


def merged(*parts):
    return Rows.merged(parts)


def rows_of(values: dict[int, float]) -> Rows:
    return Rows.of(np.array(list(values), np.int64), np.array(list(values.values()), np.float64))


def content(rows: Rows) -> tuple[bytes, bytes]:
    return rows.index.tobytes(), rows.values.tobytes()


@st.composite
def parts_in_any_order(draw) -> tuple[Rows, list[Rows]]:
    """All items as one Rows, and the same items in parts, items and parts shuffled."""
    values = draw(values_by_item)
    owner = {item: draw(st.integers(0, 4)) for item in values}
    shuffled = draw(st.permutations(list(values)))
    parts = [rows_of({item: values[item] for item in shuffled if owner[item] == part}) for part in range(5)]
    return rows_of(values), draw(st.permutations(parts))


@quick
@given(parts_in_any_order())
def test_the_merge_is_independent_of_cutting_and_arrival_order(drawn):
    whole, parts = drawn
    assert content(Rows.merged(parts)) == content(whole)


@quick
@given(parts_in_any_order())
def test_the_merge_is_associative(drawn):
    _, (a, b, c, *_) = drawn
    assert content(merged(merged(a, b), c)) == content(merged(a, merged(b, c)))


@quick
@given(parts_in_any_order())
def test_the_merge_is_commutative(drawn):
    _, (a, b, *_) = drawn
    assert content(merged(a, b)) == content(merged(b, a))


@quick
@given(values_by_item)
def test_the_index_rises_strictly(values):
    assert rows_of(values).index.tolist() == sorted(values)


@quick
@given(values_by_item)
def test_rows_from_their_arrays_are_the_same_rows(values):
    rows = rows_of(values)
    assert content(Rows.from_arrays(rows.to_arrays())) == content(rows)


def test_values_may_have_several_columns():
    one = Rows.of(np.array([1]), np.array([[3.0, 4.0]]))
    other = Rows.of(np.array([0]), np.array([[1.0, 2.0]]))
    assert merged(one, other).values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_items_without_gaps_may_begin_anywhere_and_come_in_any_order():
    rows = Rows.of(np.array([7, 5, 6]), np.array([0.7, 0.5, 0.6]))
    assert (rows.index.tolist(), rows.values.tolist()) == ([5, 6, 7], [0.5, 0.6, 0.7])
    gaps = Rows.of(np.array([9, 5, 6]), np.array([0.9, 0.5, 0.6]))
    assert (gaps.index.tolist(), gaps.values.tolist()) == ([5, 6, 9], [0.5, 0.6, 0.9])


def test_an_item_twice_in_one_part_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        Rows.of(np.array([3, 1, 3]), np.zeros(3))


def test_an_item_in_two_parts_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        merged(rows_of({1: 0.0, 2: 0.0}), rows_of({2: 0.0}))


@st.composite
def counts_in_any_order(draw) -> tuple[Counts, list[Counts]]:
    """Counts of items that may come several times, as one and in parts."""
    items = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 2**40)), max_size=40))
    index, owner, value = np.array(items, np.int64).reshape(-1, 3).T
    values = np.stack([value, value + 1], axis=1)
    parts = [Counts.of(index[owner == part], values[owner == part]) for part in range(5)]
    return Counts.of(index, values), draw(st.permutations(parts))


@quick
@given(counts_in_any_order())
def test_counts_are_independent_of_cutting_and_arrival_order(drawn):
    whole, parts = drawn
    assert content(Counts.merged(parts)) == content(whole)
    first, *others = parts
    assert content(Counts.merged([first, Counts.merged(others)])) == content(whole)


@quick
@given(counts_in_any_order())
def test_counts_from_their_arrays_are_the_same_counts(drawn):
    whole, _ = drawn
    assert content(Counts.from_arrays(whole.to_arrays())) == content(whole)


def test_counts_of_one_item_are_added():
    summed = Counts.merged(
        [Counts.of(np.array([3, 1, 3]), np.array([1, 2, 4])), Counts.of(np.array([1]), np.array([5]))]
    )
    assert (summed.index.tolist(), summed.values.tolist()) == ([1, 3], [7, 5])
