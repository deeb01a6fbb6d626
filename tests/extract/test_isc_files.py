"""Descriptors go out as an ISC submission has them, and come back the same."""

import h5py
import numpy as np
import pytest

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import ProblemList
from raybench.extract.isc_files import descriptor_file, isc_content, submission_file
from raybench.extract.vector_set import VectorSet, read_set, vector_arrays
from raybench.formats.names import Names
from raybench.sources.named_vectors import NamedVectors


def run_in(folder, out=None):
    return Run(str(out or folder / "out"), str(folder / "stages"), InlineExecutor(Observer()), Observer())


def scan(uri):
    problems = ProblemList()
    source = NamedVectors.scan([str(uri)], "stem", problems)
    assert not problems.lines
    return source


@pytest.fixture
def queries(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    names = np.array([f"Q{number:05d}" for number in np.random.default_rng(1).permutation(30)])
    np.savez(tmp_path / "queries.npz", names=names, vectors=vectors)
    return scan(tmp_path / "queries.npz"), vectors[np.argsort(names)]


@pytest.mark.parametrize("shard_size", [1, 7, None])
def test_what_is_exported_is_read_back(tmp_path, queries, shard_size):
    source, ordered = queries
    run = run_in(tmp_path)
    read = read_set(run, source, "queries", shard_size)
    files = [descriptor_file(name, read, source.names) for name in ("queries", "other")]
    run.write("results/{name}.h5", isc_content, files)
    with h5py.File(tmp_path / "out" / "results" / "queries.h5") as file:
        assert (file["vectors"].dtype, file["image_names"].dtype.kind) == (np.float32, "S")
        assert np.array_equal(file["vectors"][()], ordered)
        assert file["image_names"][0] == b"Q00000"
    assert (tmp_path / "out" / "results" / "other.h5").read_bytes() == (
        tmp_path / "out" / "results" / "queries.h5"
    ).read_bytes()
    back = scan(tmp_path / "out" / "results" / "other.h5")
    place, rows = back.rows.read(0, 30)
    assert back.names.digest == source.names.digest
    assert np.array_equal(rows[np.argsort(place)], ordered)


def test_a_submission_holds_queries_and_references(tmp_path, queries):
    source, ordered = queries
    run = run_in(tmp_path)
    read = read_set(run, source, "queries", 7)
    references = VectorSet("references", run.map(Skipping(), 8, 3), 8)
    names = Names.of([f"R{number}" for number in range(8)])
    run.write("{name}.h5", isc_content, [submission_file("submission", read, source.names, references, names)])
    with h5py.File(tmp_path / "out" / "submission.h5") as file:
        assert sorted(file) == ["query", "query_ids", "reference", "reference_ids"]
        assert np.array_equal(file["query"][()], ordered)
        assert file["query_ids"][29] == b"Q00029"
        assert file["reference"].shape == (5, 8)
        assert file["reference_ids"][4] == b"R7"


class Skipping:
    """A stage that leaves out every third image, and packs bits."""

    name = digest = "skipping"
    on_device = False

    def load(self, shard):
        return np.array([item for item in range(shard.start, shard.stop) if item % 3][::-1], np.int64)

    def compute(self, payload):
        return vector_arrays(payload, payload.astype(np.uint8)[:, None])

    def keys(self, shard):
        return str(shard)


def test_an_image_that_was_skipped_is_not_in_the_file(tmp_path):
    run = run_in(tmp_path)
    names = Names.of([f"R{number}" for number in range(8)])
    skipped = VectorSet("references", run.map(Skipping(), 8, 3), 8)
    run.write("{name}.h5", isc_content, [descriptor_file("references", skipped, names)])
    with h5py.File(tmp_path / "out" / "references.h5") as file:
        assert [name.decode() for name in file["image_names"][()]] == ["R1", "R2", "R4", "R5", "R7"]
        bits = np.unpackbits(np.array([[1], [2], [4], [5], [7]], np.uint8), axis=1)
        assert np.array_equal(file["vectors"][()], bits.astype(np.float32) * 2 - 1)


def test_vectors_are_read_and_exported_on_object_storage(tmp_path, queries, s3):
    source, ordered = queries
    bucket = s3.bucket("vectors")
    s3.upload(tmp_path, bucket)
    remote = scan(f"{bucket}/queries.npz")
    assert remote.digest == source.digest
    run = run_in(tmp_path, out=f"{bucket}/out")
    run.write("{name}.h5", isc_content, [descriptor_file("queries", read_set(run, remote, "queries", 4), remote.names)])
    back = scan(f"{bucket}/out/queries.h5")
    place, rows = back.rows.read(0, 30)
    assert np.array_equal(rows[np.argsort(place)], ordered)
