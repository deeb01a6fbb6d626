"""Files of named vectors: what is written is read by any range, and what is wrong is said, all at once."""

import io

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raybench.errors import DataError, InputError
from raybench.formats.hdf5_vectors import VectorRoom, begin_isc_vectors
from raybench.formats.names import strings
from raybench.formats.vector_kinds import NAMED_SUFFIXES, open_named

ROWS, DIMENSION = 10_000, 6


def hdf5(vectors, names, **options):
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        out.create_dataset("image_names", data=np.array([name.encode() for name in names]))
        out.create_dataset("vectors", data=vectors, **options)
    return file


def hdf5_text(vectors, names):
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        out.create_dataset("names", data=names, dtype=h5py.string_dtype())
        out.create_dataset("embeddings", data=vectors)
    return file


def npz(vectors, names, save=np.savez):
    file = io.BytesIO()
    save(file, image_names=np.array(names), vectors=vectors)
    return file


def parquet(vectors, names, **options):
    file = io.BytesIO()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    pq.write_table(pa.table({"names": pa.array(names), "vectors": lists}), file, **options)
    return file


def parquet_lists(vectors, names):
    file = io.BytesIO()
    columns = {"embeddings": pa.array(list(vectors)), "names": pa.array(names).dictionary_encode()}
    pq.write_table(pa.table(columns), file, row_group_size=777)
    return file


KINDS = {
    "h5": (".h5", hdf5),
    "h5 in chunks": (".h5", lambda *made: hdf5(*made, chunks=(100, 2), compression="gzip")),
    "h5 with text": (".hdf5", hdf5_text),
    "npz": (".npz", npz),
    "npz compressed": (".npz", lambda *made: npz(*made, save=np.savez_compressed)),
    "npz by columns": (".npz", lambda vectors, names: npz(np.asfortranarray(vectors), names)),
    "npz in float64": (".npz", lambda vectors, names: npz(vectors.astype(np.float64), names)),
    "npz in big-endian": (".npz", lambda vectors, names: npz(vectors.astype(">f4"), names)),
    "npz with bytes for names": (".npz", lambda vectors, names: npz(vectors, [name.encode() for name in names])),
    "parquet": (".parquet", parquet),
    "parquet in groups": (".parquet", lambda *made: parquet(*made, row_group_size=1_000)),
    "parquet with lists": (".parquet", parquet_lists),
}


@pytest.fixture(scope="module")
def made():
    vectors = np.random.default_rng(0).normal(size=(ROWS, DIMENSION)).astype(np.float32)
    return vectors, [f"ä/R{row:06d}.jpg" for row in range(ROWS)]


def opened(kind, vectors, names):
    suffix, write = KINDS[kind]
    file = write(vectors, names)
    file.seek(0)
    return open_named(file, f"references{suffix}", suffix)


@pytest.mark.parametrize("kind", KINDS)
def test_header_names_and_ranges_are_read(kind, made):
    vectors, names = made
    reader = opened(kind, vectors, names)
    assert (reader.count, reader.dimension) == vectors.shape
    assert reader.names().to_pylist() == names
    # rising, overlapping, far ahead, back, one row, to the end
    for start, stop in [(0, 5), (3, 4_200), (8_191, 8_194), (1, 2), (4_095, 9_000), (9_999, 10_000), (0, ROWS)]:
        rows = reader.rows(start, stop)
        assert rows.dtype == np.float32
        assert np.array_equal(rows, vectors[start:stop])


@pytest.mark.parametrize("suffix", NAMED_SUFFIXES)
@pytest.mark.parametrize("data", [b"", b"no such file at all", b"PK\x03\x04 cut short"])
def test_bytes_of_another_kind_are_refused(suffix, data):
    with pytest.raises(DataError, match=rf"^x\{suffix}: no .* file, or cut short"):
        open_named(io.BytesIO(data), f"x{suffix}", suffix)


def lines_of(suffix, file):
    file.seek(0)
    with pytest.raises(InputError) as raised:
        open_named(file, f"x{suffix}", suffix)
    return raised.value.lines()


def written_npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file


def written_hdf5(**arrays):
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        for name, array in arrays.items():
            out.create_dataset(name, data=array)
    return file


def written_parquet(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file


@pytest.mark.parametrize(
    ("suffix", "write"), [(".npz", written_npz), (".h5", written_hdf5), (".parquet", written_parquet)]
)
def test_missing_arrays_are_named_with_what_is_there_instead(suffix, write):
    assert lines_of(suffix, write(features=np.zeros(2), ids=np.zeros(2))) == [
        f"x{suffix}: no array vectors or embeddings, holds features, ids; rename or add it",
        f"x{suffix}: no array image_names or names, holds features, ids; rename or add it",
    ]


@pytest.mark.parametrize(("suffix", "write"), [(".npz", written_npz), (".h5", written_hdf5)])
def test_wrong_types_shapes_and_counts_are_named_together(suffix, write):
    assert lines_of(suffix, write(vectors=np.zeros((2, 3), np.int64), names=np.zeros(3))) == [
        f"x{suffix}: vectors is int64, expected float32",
        f"x{suffix}: 2 vectors but 3 names; expected one name a vector",
        f"x{suffix}: names is float64, expected text",
    ]
    assert lines_of(suffix, write(vectors=np.zeros(2, np.float32), names=np.array([b"a", b"b"]))) == [
        f"x{suffix}: vectors has shape (2,), expected (images, dimension)"
    ]


def test_wrong_types_in_parquet_are_named_together():
    assert lines_of(".parquet", written_parquet(vectors=pa.array([[1], [2]]), names=pa.array([1, 2]))) == [
        "x.parquet: vectors is list<element: int64>, expected a list of float32 a row",
        "x.parquet: names is int64, expected text",
    ]


def test_descriptors_count_as_vectors_where_neither_alias_is_there():
    rows, names = np.ones((1, 2), np.float32), np.array(["a"])
    alone, beside = (
        written_npz(descriptors=rows, names=names),
        written_npz(descriptors=0 * rows, vectors=rows, names=names),
    )
    for file in (alone, beside):
        assert open_named(file, "x.npz", ".npz").rows(0, 1).tolist() == [[1, 1]]


def test_both_aliases_of_a_column_are_one_too_many():
    rows, names = np.zeros((1, 2), np.float32), np.array(["a"])
    assert lines_of(".npz", written_npz(vectors=rows, embeddings=rows, names=names)) == [
        "x.npz: holds both vectors and embeddings; expected one of them"
    ]


def test_pickled_objects_are_never_read():
    objects = np.array([[1.0, 2.0], None], dtype=object).reshape(2, 1)
    names = np.array(["a", None], dtype=object)
    assert lines_of(".npz", written_npz(vectors=objects, names=names)) == [
        "x.npz: vectors holds pickled objects, which are never read; save it as float32",
        "x.npz: names holds pickled objects, which are never read; save it as text (dtype U or S)",
    ]


def test_rows_of_different_length_in_parquet_are_named():
    file = written_parquet(vectors=pa.array([[1.0, 2.0], [1.0, 2.0], [3.0], None]), names=pa.array(list("abcd")))
    file.seek(0)
    reader = open_named(file, "x.parquet", ".parquet")
    assert reader.dimension == 2
    with pytest.raises(DataError, match=r"x\.parquet: row 2 has dimension 1, row 0 has dimension 2"):
        reader.rows(0, 4)


def test_a_row_without_name_in_parquet_is_named():
    file = written_parquet(vectors=pa.array([[1.0], [2.0]]), names=pa.array(["a", None]))
    file.seek(0)
    with pytest.raises(DataError, match=r"x\.parquet: 1 rows without a name"):
        open_named(file, "x.parquet", ".parquet").names()


def test_damage_inside_a_compressed_file_is_said():
    vectors = np.random.default_rng(0).normal(size=(5_000, 8)).astype(np.float32)
    file = npz(vectors, [f"{row}" for row in range(5_000)], save=np.savez_compressed)
    data = bytearray(file.getvalue())
    data[60_000:60_100] = bytes(100)
    with pytest.raises(DataError, match=r"x\.npz: rows .* can't be read"):
        open_named(io.BytesIO(bytes(data)), "x.npz", ".npz").rows(0, 5_000)


def test_a_descriptor_file_is_filled_in_any_order_and_read_back(tmp_path, made):
    vectors, names = made
    with (tmp_path / "submission.h5").open("w+b") as file:
        (offset,) = begin_isc_vectors(file, [VectorRoom("vectors", "image_names", strings(names), DIMENSION)])
        room = np.memmap(file, np.float32, "r+", offset, vectors.shape)
        order = np.random.default_rng(1).permutation(ROWS)
        room[order] = vectors[order]
        room.flush()
    with h5py.File(tmp_path / "submission.h5") as back:
        assert sorted(back) == ["image_names", "vectors"]
        assert back["vectors"].dtype == np.float32
        assert np.array_equal(back["vectors"][()], vectors)
        assert back["image_names"].dtype.kind == "S"
        assert [name.decode() for name in back["image_names"][()]] == names
