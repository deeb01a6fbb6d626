"""Descriptors on disk in every kind of file: the same rows, and errors that name the file."""

import io

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raybench.errors import DataError
from raybench.formats.vector_kinds import plain_shape, read_plain

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 7


def npy(rows):
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


def hdf5(**sets):
    file = io.BytesIO()
    with h5py.File(file, "w") as handle:
        for name, rows in sets.items():
            handle[name] = rows
    return file.getvalue()


FILES = {
    "npy": (".npy", npy(ROWS)),
    "lists": (".parquet", parquet(vectors=ROWS.tolist())),
    "columns": (".parquet", parquet(a=ROWS[:, 0], b=ROWS[:, 1], c=ROWS[:, 2])),
    "hdf5": (".h5", hdf5(vectors=ROWS)),
    "the only data set": (".hdf5", hdf5(anything=ROWS)),
    "csv": (".csv", "\n".join(",".join(map(repr, row)) for row in ROWS.astype(float).tolist()).encode()),
}


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_gives_the_same_rows(kind):
    suffix, data = FILES[kind]
    assert np.array_equal(read_plain(data, "x", suffix), ROWS)
    assert plain_shape(data, "x", suffix) == (4, 3)


def test_bytes_of_packed_bits_stay_bytes():
    rows = np.arange(6, dtype=np.uint8).reshape(3, 2)
    for suffix, data in ((".npy", npy(rows)), (".h5", hdf5(vectors=rows))):
        assert read_plain(data, "x", suffix).dtype == np.uint8


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".h5"])
def test_a_file_that_is_none_of_its_kind_is_named(suffix):
    with pytest.raises(DataError, match=r"^x: no "):
        read_plain(b"nonsense", "x", suffix)


def test_a_zip_of_arrays_is_no_npy_array():
    file = io.BytesIO()
    np.savez(file, vectors=ROWS)
    with pytest.raises(DataError, match=r"^x: no \.npy array"):
        read_plain(file.getvalue(), "x", ".npy")


def test_pickled_objects_are_refused():
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"^x: no \.npy array"):
        read_plain(file.getvalue(), "x", ".npy")


def test_nan_text_and_wrong_shapes_are_named():
    spoiled = ROWS.copy()
    spoiled[2, 1] = np.nan
    with pytest.raises(DataError, match="row 3: NaN"):
        read_plain(npy(spoiled), "x", ".npy")
    with pytest.raises(DataError, match="one row a patch"):
        read_plain(npy(ROWS[0]), "x", ".npy")
    with pytest.raises(DataError, match="different lengths"):
        read_plain(parquet(vectors=[[1.0], [1.0, 2.0]]), "x", ".parquet")
    with pytest.raises(DataError, match="expected one data set"):
        read_plain(hdf5(a=ROWS, b=ROWS), "x", ".h5")
    with pytest.raises(DataError, match="line 2: NaN"):
        plain_shape(b"1,2\n3,nan\n", "x", ".csv")
    with pytest.raises(DataError, match="line 2: 1 values, the first line has 2"):
        plain_shape(b"1,2\n3\n4,5\n", "x", ".csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_the_shape_of_a_csv_is_counted_as_it_is_read(delimiter, end):
    text = "\n".join(delimiter.join(row) for row in (["1.5", "-2", "1"], ["3e5", "4", "-0.25"])) + end
    assert plain_shape(text.encode(), "x", ".csv") == read_plain(text.encode(), "x", ".csv").shape == (2, 3)


@pytest.mark.parametrize("word", ["nan", "NaN", "NAN", "-nan"])
def test_nan_in_a_csv_is_named_with_its_line_however_it_is_spelled(word):
    with pytest.raises(DataError, match="x: line 3: NaN or infinite value"):
        plain_shape(f"1,2\n3,4\n5,{word}\n7,nan\n".encode(), "x", ".csv")


def test_a_ragged_line_of_a_csv_is_named():
    with pytest.raises(DataError, match="x: line 2"):
        plain_shape(b"1,2\n3,4,5\n", "x", ".csv")
