"""Vectors on disk become the same shards on Ray as inline, also where each actor reads a compressed file for itself."""

import numpy as np
import pytest

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import DataError, ProblemList
from raybench.extract.vector_set import read_set
from raybench.sources.named_vectors import NamedVectors


@pytest.fixture
def source(tmp_path):
    random = np.random.default_rng(0)
    names = np.array([f"R{number:06d}" for number in random.permutation(9_000)])
    np.savez_compressed(tmp_path / "refs.npz", names=names, vectors=random.normal(size=(9_000, 3)).astype(np.float32))
    problems = ProblemList()
    found = NamedVectors.scan([str(tmp_path / "refs.npz")], "stem", problems)
    assert not problems.lines
    return found


def shards(folder, executor, source):
    run = Run(str(folder), str(folder / "stages"), executor, Observer())
    read = read_set(run, source, "references", 400)
    assert len(read) == 9_000
    return {path.name: path.read_bytes() for path in sorted((folder / "stages" / read.digest).iterdir())}


def test_both_executors_leave_the_same_shards(tmp_path, source, local_ray):
    from raybench.engine.ray_core import RayExecutor

    inline = shards(tmp_path / "inline", InlineExecutor(Observer()), source)
    executor = RayExecutor(Observer(), 2, 0, insist_on_gpus=False, owned=False)
    try:
        assert shards(tmp_path / "ray", executor, source) == inline
    finally:
        executor.close()
    assert len(inline) == 23


def test_the_default_shard_size_follows_the_dimension(tmp_path, source):
    run = Run(str(tmp_path), str(tmp_path / "stages"), InlineExecutor(Observer()), Observer())
    assert len(read_set(run, source, "references").mapped.shards) == 1


def test_a_file_that_is_spoilt_after_the_look_is_an_error_that_names_the_row(tmp_path, source):
    with np.load(tmp_path / "refs.npz") as file:
        names, vectors = file["names"], file["vectors"]
    vectors[4_321] = np.nan
    np.savez(tmp_path / "refs.npz", names=names, vectors=vectors)
    run = Run(str(tmp_path), str(tmp_path / "stages"), InlineExecutor(Observer()), Observer())
    with pytest.raises(DataError, match=r"refs\.npz: row 4321: NaN or infinite value \(1 such rows here\)"):
        read_set(run, source, "references", 1_000)
