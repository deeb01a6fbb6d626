"""A shard file gives back what was put in, byte for byte, and notices every kind of damage."""

import json

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.formats.shardfile import ALIGNMENT, BrokenShardFile, decode, encode

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

dtypes = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="<"),
    npst.unsigned_integer_dtypes(endianness="<"),
    npst.floating_dtypes(endianness="<"),
    npst.byte_string_dtypes(max_len=5),
    npst.unicode_string_dtypes(endianness="<", max_len=5),
)
shapes = npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
arrays = dtypes.flatmap(lambda dtype: npst.arrays(dtype, shapes))
files = st.dictionaries(st.text(max_size=8), arrays, max_size=4)

SMALL = {"index": np.arange(5), "values": np.array([0.5, -1.0, np.nan, np.inf, 0.0]), "key": np.array(["a", "bc"])}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Names, order, dtypes, shapes and bytes are equal; NaN equals itself."""
    return list(one) == list(other) and all(
        (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
        for a, b in zip(one.values(), other.values(), strict=True)
    )


@quick
@given(files)
def test_arrays_read_back_equal_what_was_written(content):
    assert same(decode(encode(content)), content)


@quick
@given(files)
def test_equal_arrays_give_equal_bytes(content):
    copies = {name: array.copy() for name, array in content.items()}
    assert encode(copies) == encode(content)


@quick
@given(files)
def test_arrays_can_not_be_written_to(content):
    assert not any(array.flags.writeable for array in decode(bytearray(encode(content))).values())


@quick
@given(files)
def test_arrays_start_at_multiples_of_the_alignment(content):
    data = encode(content)
    start = np.frombuffer(data, np.uint8).ctypes.data
    for array in decode(data).values():
        if array.size:
            assert (array.ctypes.data - start) % ALIGNMENT == 0


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2", ">U3"])
def test_values_of_a_big_endian_array_survive(dtype):
    values = np.array([1, 2, 300]).astype(dtype)
    assert decode(encode({"values": values}))["values"].tolist() == values.tolist()


def test_the_memory_order_of_an_array_does_not_change_the_bytes():
    values = np.arange(12.0).reshape(3, 4)
    assert encode({"values": np.asfortranarray(values)}) == encode({"values": values})


def test_a_slice_with_steps_is_stored_as_what_it_shows():
    values = np.arange(10)[::3]
    assert decode(encode({"values": values}))["values"].tolist() == [0, 3, 6, 9]


def test_arrays_are_views_of_the_bytes():
    data = encode({"values": np.arange(4)})
    assert np.shares_memory(decode(data)["values"], np.frombuffer(data, np.uint8))


@quick
@given(st.integers(0, len(encode(SMALL)) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found_unless_it_is_padding(position, change):
    data = bytearray(encode(SMALL))
    data[position] ^= change
    try:
        found = decode(data)
    except BrokenShardFile:
        return
    assert same(found, SMALL)


@quick
@given(files, st.data())
def test_any_changed_bit_of_any_file_is_found_unless_it_is_padding(content, drawn):
    data = bytearray(encode(content))
    data[drawn.draw(st.integers(0, len(data) - 1))] ^= 1 << drawn.draw(st.integers(0, 7))
    try:
        found = decode(data)
    except BrokenShardFile:
        return
    assert same(found, content)


def test_every_cut_is_found():
    data = encode(SMALL)
    for length in range(len(data)):
        with pytest.raises(BrokenShardFile):
            decode(data[:length])


def test_bytes_behind_the_end_are_found():
    with pytest.raises(BrokenShardFile, match="its header says"):
        decode(encode(SMALL) + b"\0")


def test_a_damaged_array_is_named():
    data = bytearray(encode({"values": np.arange(100)}))
    data[-100] ^= 1
    with pytest.raises(BrokenShardFile, match="'values'"):
        decode(data)


@pytest.mark.parametrize(
    "array",
    [np.array([{}, None], object), np.array(["2024-01-01"], "datetime64[D]"), np.zeros(2, "i4,f4"), np.zeros(2, "c8")],
    ids=lambda array: str(array.dtype),
)
def test_a_dtype_that_is_no_plain_number_or_string_is_refused_by_name(array):
    with pytest.raises(TypeError, match="'odd'"):
        encode({"odd": array})


def test_the_header_is_json_with_the_row_count():
    data = encode({"values": np.zeros((7, 2))})
    length = int.from_bytes(data[8:16], "little")
    assert json.loads(data[24 : 24 + length])["rows"] == 7


def test_a_file_of_another_label_is_broken_and_says_what_it_is():
    data = encode({"values": np.arange(3)}, "stage/000001.shard")
    assert decode(data, "stage/000001.shard")["values"].tolist() == [0, 1, 2]
    with pytest.raises(BrokenShardFile, match=r"it is stage/000001\.shard, not stage/000002\.shard"):
        decode(data, "stage/000002.shard")
    with pytest.raises(BrokenShardFile, match="it is no shard of a stage"):
        decode(encode({}), "stage/000002.shard")
