"""Whole numbers are parsed in a way of their own, which gives what the usual one gives, on good text and on bad."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.errors import DataError
from raybench.formats.hbench import DELIMITERS, descriptors_shape, read_descriptors, read_numbers
from raybench.formats.whole_numbers import whole_rows

quick = settings(max_examples=300, deadline=None)
delimiters = st.sampled_from(DELIMITERS)


def outcome(read):
    """Values as bytes of float64 and their shape, or the words of the error."""
    try:
        rows = read()
    except DataError as error:
        return str(error)
    return rows.shape, rows.astype(np.float64).tobytes()


@st.composite
def grids(draw):
    """Lines of whole numbers of any length, and the values in them."""
    width = draw(st.integers(1, 5))
    line = st.lists(st.integers(0, 10 ** draw(st.integers(1, 15)) - 1), min_size=width, max_size=width)
    return draw(st.lists(line, min_size=1, max_size=6))


@quick
@given(grids(), delimiters, st.booleans(), st.sampled_from([1, 3, 9]))
def test_every_whole_number_up_to_fifteen_digits_is_read_exactly(rows, delimiter, ended, digits):
    text = "\n".join(delimiter.join(str(value).zfill(digits) for value in row) for row in rows) + "\n" * ended
    found = whole_rows(text.encode(), delimiter)
    assert found is not None
    assert found.tolist() == rows
    longest = max(len(str(value).zfill(digits)) for row in rows for value in row)
    assert found.dtype == (np.float32 if longest <= 7 else np.float64)


@quick
@given(
    st.lists(
        st.lists(st.sampled_from(["0", "7", "42", "255", "0255", "99999999", "-3", "+4", "1.5", "1e2", " 8", "", "x"])),
        min_size=1,
        max_size=4,
    ),
    delimiters,
    st.sampled_from(["\n", "\r\n", "\n\n", ",\n"]),
    st.sampled_from(["", "\n", "\n\n", " \n", "\t"]),
)
def test_either_way_gives_the_same_values_or_the_same_error(rows, delimiter, line_end, end):
    data = (line_end.join(delimiter.join(row) for row in rows) + end).encode()
    if data.strip():
        first = data.split(b"\n")[0].decode().strip()
        found = next((candidate for candidate in DELIMITERS if candidate in first), ",")
        assert outcome(lambda: read_descriptors(data, "x")) == outcome(lambda: read_numbers(data, "x", found))


@quick
@given(st.text(alphabet="0123456789,;. \n\r\t-e", min_size=1, max_size=40))
def test_text_that_is_only_nearly_whole_numbers_is_read_as_ever(text):
    data = text.encode()
    if data.strip():
        first = text.split("\n")[0].strip()
        found = next((candidate for candidate in DELIMITERS if candidate in first), ",")
        assert outcome(lambda: read_descriptors(data, "x")) == outcome(lambda: read_numbers(data, "x", found))


@pytest.mark.parametrize("text", [b"1,2\n3\n", b"1,,2\n", b",1\n", b"1,2;3\n", b"1,2\n\n3,4\n", b"1,2\r\n", b"1:2\n"])
def test_what_is_no_grid_of_digits_is_left_to_others(text):
    assert whole_rows(text, ",") is None


def test_sixteen_digits_are_left_to_others():
    assert whole_rows(b"1234567890123456,1\n", ",") is None


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b" \n", b"\r\n"])
def test_lines_and_values_are_counted_whatever_the_end(end):
    assert descriptors_shape(b"1,2,3\n4,5,6" + end, "x") == (2, 3)
