"""Matching and retrieval files: what is written reads back the same, for any K, any names, any order of pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.errors import DataError
from raybench.formats.hbench_matching import ImagePair, PairMatches, read_image_pairs, read_matches, write_matches
from raybench.formats.hbench_retrieval import (
    NO_PATCH,
    RetrievalTask,
    image_of,
    patch_code,
    patch_of,
    read_names,
    read_retrieval_task,
    signature,
    write_names,
)

quick = settings(max_examples=40, deadline=None)  # no deadline: cores are shared

A, B = ImagePair("v_a/ref", "v_a/e1"), ImagePair("001/ref", "001/t5")


@quick
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32))
def test_matches_read_back_the_same(k, patches, seed):
    rng = np.random.default_rng(seed)
    blocks = []
    for pair in (A, B):
        distance = np.sort(rng.uniform(0, 10.0 ** rng.integers(-5, 6), (patches, k)), axis=1)
        blocks.append((pair, PairMatches(rng.integers(0, 2_000, (patches, k)), distance)))
    found = read_matches(write_matches(blocks), "x", (B, A))
    for pair, written in blocks:
        assert found[pair].index.tolist() == written.index.tolist()
        assert found[pair].distance.tobytes() == written.distance.tobytes()


def test_a_head_is_not_taken_for_distances_nor_distances_for_a_head():
    data = b"v_a.ref,v_a.e1\n0,1\n0.5,1.5\n"
    assert read_matches(data, "x", (A,))[A].distance.tolist() == [[0.5], [1.5]]


def test_files_may_have_windows_line_ends_and_no_last_one():
    assert read_image_pairs(b"v_a.ref, v_a.e1\r\n001.ref,001.t5", "x") == (A, B)
    assert read_matches(b"v_a.ref, v_a.e1\r\n 3 ,1\r\n0.5, 1.5", "x", (A,))[A].index.tolist() == [[3], [1]]


@pytest.mark.parametrize("text", [b"", b"\n", b"0,1\n0.5,1.5\n", b"v_a.ref,v_a.e1\n", b"v_a.ref,v_a.e1\n0,1\n"])
def test_results_without_whole_blocks_are_refused(text):
    with pytest.raises(DataError):
        read_matches(text, "x.results", (A,))


@quick
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 999_999)), min_size=1, max_size=8, unique=True))
def test_lists_of_names_read_back_the_same(patches):
    pool = ("v_a/ref", "v_a/e1", "001/t5")
    codes = patch_code(*(np.array(column, np.int64) for column in zip(*patches, strict=True)))
    task = RetrievalTask(pool, codes[:1])
    assert read_names(write_names(task, codes[None, :]), "x", task).tolist() == [codes.tolist()]
    padded = np.append(codes, NO_PATCH)[None, :]
    assert read_names(write_names(task, padded), "x", task).tolist() == [codes.tolist()]
    assert list(zip(image_of(codes).tolist(), patch_of(codes).tolist(), strict=True)) == patches


def test_codes_are_in_pool_order():
    pool = ("v_b/ref", "v_a/ref")
    task = read_retrieval_task(b"v_b.ref,v_a.ref\nv_a.ref.0\nv_b.ref.99999\n", "x")
    assert task.pool == pool
    assert task.queries[1] < task.queries[0]
    assert [signature(pool, int(code)) for code in task.queries] == ["v_a.ref.0", "v_b.ref.99999"]
