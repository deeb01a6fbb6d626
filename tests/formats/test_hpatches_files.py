"""The task files of the 2017 protocol: what is read, and the line that is named when something is wrong."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.errors import DataError
from raybench.formats.hpatches import read_numbered_pairs, read_reference_patches, read_splits

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

HEADER = "s1,t1,idx1,s2,t2,idx2\n"
names = st.from_regex(r"[iv]_[a-z]{1,5}", fullmatch=True)
lines = st.lists(
    st.tuples(names, st.integers(0, 5), st.integers(0, 2_000), names, st.integers(0, 5), st.integers(0, 9))
)


@quick
@given(lines.filter(bool), st.sampled_from(["\n", "\r\n"]))
def test_pairs_read_back_as_they_were_written(rows, end):
    text = HEADER.replace("\n", end) + "".join(",".join(map(str, row)) + end for row in rows)
    pairs = read_numbered_pairs(text.encode(), "pairs.csv")
    sequences = np.array(pairs.sequences)
    columns = (pairs.a_sequence, pairs.a_number, pairs.a_patch, pairs.b_sequence, pairs.b_number, pairs.b_patch)
    columns = [sequences[column] if i in (0, 3) else column for i, column in enumerate(columns)]
    assert [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)] == rows


@quick
@given(lines.filter(bool))
def test_the_first_line_of_each_pair_stands_whichever_patch_is_named_first(rows):
    text = HEADER + "".join(",".join(map(str, row)) + "\n" for row in rows)
    seen, first = set(), []
    for number, row in enumerate(rows):
        pair = frozenset((row[:3], row[3:]))
        first += [] if pair in seen else [number]
        seen.add(pair)
    assert read_numbered_pairs(text.encode(), "pairs.csv").first_of_each().tolist() == first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s1,t1,idx1,s2,t2\n", ("line 1:", "s1,t1,idx1,s2,t2,idx2")),
        (HEADER, ("nothing below the header",)),
        (HEADER + "a,0,1,b,0,1\na,6,1,b,0,1\n", ("line 3:", "image number 6", "0 (ref) to 5")),
        (HEADER + "a,0,1,b,0,1\na,0,-1,b,0,1\n", ("line 3:", "idx1 '-1'")),
        (HEADER + "a,0,1,b,0,1\na,0,x,b,0,1\n", ("line 3:", "idx1 'x'")),
        (HEADER + "a,0,1,b,0,1\n\na,0,1,b,0,1\n", ("line 3:", "expected s1,t1")),
        (HEADER + "a,0,1,,0,1\n", ("line 2:", "s2 ''")),
        (HEADER + "a;0;1;b;0;1\n", ("line 2:", "expected s1,t1")),
        (HEADER + "a,0,9999999999,b,0,1\n", ("line 2:", "9999999999")),
    ],
)
def test_a_bad_list_of_pairs_is_named_with_its_line(text, words):
    with pytest.raises(DataError) as caught:
        read_numbered_pairs(text.encode(), "pairs.csv")
    for word in ("pairs.csv", *words):
        assert word in str(caught.value)


def test_patches_are_read_in_file_order():
    listed = read_reference_patches(b"s,idx\nv_b,7\ni_a,0\nv_b,2\n", "q.csv")
    assert (listed.sequences, listed.sequence.tolist(), listed.patch.tolist()) == (("i_a", "v_b"), [1, 0, 1], [7, 0, 2])


def test_splits_may_have_no_train_part():
    splits = read_splits(json.dumps({"illum": {"name": "illum", "test": ["i_a"]}}).encode(), "splits.json")
    assert (splits["illum"].train, splits["illum"].test) == ((), ("i_a",))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "no JSON"),
        ("[]", "expected"),
        ('{"a": ["i_x"]}', "split 'a'"),
        ('{"a": {"test": [1]}}', "split 'a'"),
        ('{"a": {"train": ["x"]}}', "no test sequences"),
        ('{"a": {"test": ["x", "x"]}}', "twice"),
    ],
)
def test_a_bad_splits_file_is_named(text, word):
    with pytest.raises(DataError, match=word) as caught:
        read_splits(text.encode(), "splits.json")
    assert "splits.json" in str(caught.value)
