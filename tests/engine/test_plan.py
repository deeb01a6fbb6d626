"""The plan covers every item once, in order, and knows nothing but the count and the size."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.engine.shards import ChosenShards, Shard, Shards

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

counts, sizes = st.integers(0, 500), st.integers(1, 600)


@quick
@given(counts, sizes)
def test_every_item_is_in_exactly_one_shard_in_order(count, size):
    assert [item for shard in Shards("x", count, size) for item in range(shard.start, shard.stop)] == list(range(count))


@quick
@given(counts, sizes)
def test_every_shard_but_the_last_is_full_and_none_is_empty(count, size):
    lengths = [len(shard) for shard in Shards("x", count, size)]
    assert all(length == size for length in lengths[:-1])
    assert all(0 < length <= size for length in lengths[-1:])


@quick
@given(counts, sizes)
def test_shards_are_numbered_from_zero_and_carry_their_stage(count, size):
    shards = Shards("x", count, size)
    assert [shard.index for shard in shards] == list(range(len(shards)))
    assert {shard.stage for shard in shards} <= {"x"}


@quick
@given(st.lists(st.integers(0, 999_999), unique=True))
def test_file_names_sort_as_their_shards(indices):
    names = [Shard("x", index, 0, 1).file_name for index in sorted(indices)]
    assert names == sorted(names)


def test_nothing_has_no_shards():
    assert list(Shards("x", 0, 5)) == []


@pytest.mark.parametrize("size", [0, -1])
def test_a_shard_without_items_is_refused(size):
    with pytest.raises(ValueError, match=f"not {size}"):
        Shards("x", 5, size)


@quick
@given(counts, sizes, st.data())
def test_a_shard_is_the_same_however_it_is_asked_for(count, size, data):
    shards = Shards("x", count, size)
    whole = list(shards)
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    assert [shards[index] for index in range(len(shards))] == whole
    assert shards[low:high] == tuple(whole[low:high])
    assert list(ChosenShards(shards, range(low, high))) == whole[low:high]


def test_a_plan_of_a_million_shards_pickles_into_a_few_bytes():
    assert len(pickle.dumps(Shards("x", 10**6, 1))) < 200


def test_a_shard_beyond_the_plan_is_refused():
    with pytest.raises(IndexError):
        Shards("x", 5, 2)[3]
