"""Small shards of a set put together: the same rows, in files of at most 16 MB that hold whole shards."""

import numpy as np
import pytest
from vector_stages import inline_run, vector_set

from raybench.errors import CorruptShard
from raybench.extract import joined_sets
from raybench.extract.joined_sets import join_shards
from raybench.extract.vector_set import SetRows

ROWS = np.random.default_rng(0).standard_normal((1_000, 16)).astype(np.float32)


@pytest.fixture
def run(tmp_path):
    return inline_run(tmp_path)


def read(vectors, *cut):
    index, rows = SetRows.of(vectors).read(*cut)
    return {place: row.tobytes() for place, row in zip(index.tolist(), rows, strict=True)}


@pytest.mark.parametrize(("most_bytes", "files"), [(2**24, 1), (64 * 250, 5), (64 * 99, 13)])
def test_the_rows_are_the_same_in_fewer_files(run, monkeypatch, most_bytes, files):
    monkeypatch.setattr(joined_sets, "SHARD_BYTES", most_bytes)
    order = np.random.default_rng(1).permutation(1_000)
    small = vector_set(run, "references", ROWS, size=20, order=order, absent=[3, 977])
    joined = join_shards(run, small)
    assert len(joined.mapped.shards) == files
    assert (len(joined), joined.role) == (1_000, "references")
    assert read(joined, 0, 1_000) == read(small, 0, 1_000)
    cuts = [(start, min(start + 130, 1_000)) for start in range(0, 1_000, 130)]
    assert {key: row for cut in cuts for key, row in read(joined, *cut).items()} == read(small, 0, 1_000)


def test_packed_bits_stay_packed(run):
    bits = np.arange(80, dtype=np.uint8).reshape(20, 4)
    joined = join_shards(run, vector_set(run, "references", bits, size=4))
    np.testing.assert_array_equal(joined.mapped.read(0)["vectors"], bits)


@pytest.mark.parametrize(("size", "most_bytes"), [(1_000, 2**24), (20, 64 * 39)])
def test_shards_that_are_large_enough_stay_as_they_are(run, monkeypatch, size, most_bytes):
    monkeypatch.setattr(joined_sets, "SHARD_BYTES", most_bytes)
    vectors = vector_set(run, "references", ROWS, size=size)
    assert join_shards(run, vectors) is vectors


def test_a_small_shard_that_is_broken_is_computed_again(run):
    small = vector_set(run, "references", ROWS, size=20)
    expected = read(small, 0, 1_000)
    path = small.mapped.uri(7)
    with open(path, "r+b") as file:
        file.truncate(50)
    with pytest.raises(CorruptShard):
        small.mapped.read(7)
    assert read(join_shards(run, small), 0, 1_000) == expected
