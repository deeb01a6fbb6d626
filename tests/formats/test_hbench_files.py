"""The 2016 files: what is right parses to the right values, what is wrong is named by file and line."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from raybench.errors import DataError
from raybench.formats.hbench import (
    PNG_HEADER_BYTES,
    read_descriptors,
    read_distances,
    read_labels,
    read_list_names,
    read_pairs,
    read_strip,
    strip_shape,
    write_distances,
)

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared

PUBLISHED = Path(__file__).parents[2] / ".." / "shared" / "data" / "hbench" / "classification"
published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published files are not in ../shared/data/hbench")


def png(pixels: np.ndarray) -> bytes:
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


def patches_of(count: int, side: int) -> np.ndarray:
    return np.random.default_rng(side).integers(0, 256, (count, side, side), dtype=np.uint8)


@pytest.mark.parametrize(("count", "side"), [(1, 65), (4, 65), (3, 32), (5, 1)])
def test_a_strip_of_any_side_reads_back_as_its_patches(count, side):
    patches = patches_of(count, side)
    data = png(patches.reshape(-1, side))
    assert strip_shape(data[:PNG_HEADER_BYTES], "ref.png") == (count, side)
    assert np.array_equal(read_strip(data, "ref.png"), patches)


def test_a_height_that_is_no_multiple_of_the_width_is_an_error_with_both():
    with pytest.raises(DataError, match=r"^i_x/ref.png: 65x131 px"):
        read_strip(png(np.zeros((131, 65), np.uint8)), "i_x/ref.png")


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"GIF89a" + bytes(40), b"1;2;3\n" * 10])
def test_what_is_no_png_is_said_to_be_none(data):
    with pytest.raises(DataError, match=r"^ref.png: no PNG"):
        read_strip(data, "ref.png")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_strip_that_is_cut_short_is_an_error(share):
    data = png(patches_of(4, 65).reshape(-1, 65))
    with pytest.raises(DataError, match=r"^ref.png: .*cut short"):
        read_strip(data[: int(len(data) * share)], "ref.png")


@pytest.mark.parametrize("delimiter", [";", ",", "\t", " "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", [True, False], ids=["newline at the end", "no newline at the end"])
def test_descriptors_are_read_with_every_delimiter_and_line_end(delimiter, newline, end):
    text = newline.join(delimiter.join(line) for line in (["1", "-2.5", "3e-2"], ["4", "5", "6"]))
    data = (text + newline * end).encode()
    assert read_descriptors(data, "ref.csv").tolist() == [[1.0, -2.5, 0.03], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("data", [b"1; 2\n3 ;4\n", b"1 , 2\n 3,4\n", b"1\t 2\n3 \t4\n", b" 1 2\n3 4 \n"])
def test_white_space_around_values_is_allowed(data):
    assert read_descriptors(data, "ref.csv").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_descriptors_of_one_dimension_are_a_column():
    assert read_descriptors(b"1\n2\n3\n", "ref.csv").tolist() == [[1.0], [2.0], [3.0]]


def test_a_single_descriptor_is_one_row():
    assert read_descriptors(b"1,2,3", "ref.csv").shape == (1, 3)


@quick
@given(st.lists(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3), min_size=1, max_size=9))
def test_descriptors_read_back_equal_what_was_written(rows):
    data = "\n".join(";".join(map(repr, row)) for row in rows).encode()
    assert read_descriptors(data, "ref.csv").tobytes() == np.array(rows, np.float64).tobytes()


@pytest.mark.parametrize("word", ["nan", "NaN"])
def test_nan_is_read_as_nan_so_that_the_caller_can_name_the_line(word):
    assert np.isnan(read_descriptors(f"1,2\n3,{word}\n".encode(), "ref.csv")).tolist() == [[False] * 2, [False, True]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1,2\n3,x\n5,6\n", r"line 2: .*'x'"),
        (b"1,2\n3,4\n5,\n", r"line 3: .*''"),
        (b"1,2\n3\n", r"line 2: 1 values, the first line has 2"),
        (b"1,2\n3,4\n5,6,7\n", r"line 3: 3 values, the first line has 2"),
        (b"1;2\n3,4\n", r"line 2: 1 values, the first line has 2"),
        (b"a,b\n", r"line 1: .*'a'"),
    ],
)
def test_a_bad_descriptor_is_named_by_file_and_line(data, message):
    with pytest.raises(DataError, match=f"^i_x/ref.csv: {message}"):
        read_descriptors(data, "i_x/ref.csv")


@pytest.mark.parametrize("data", [b"1,2\n3,4 5\n", b"1,2\n3 4,5\n", b"1\n2 3\n"])
def test_two_numbers_without_a_delimiter_are_not_read_as_one(data):
    with pytest.raises(DataError, match=r"line 2"):
        read_descriptors(data, "ref.csv")


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n"])
def test_an_empty_descriptor_file_is_an_error(data):
    with pytest.raises(DataError, match=r"^ref.csv: empty"):
        read_descriptors(data, "ref.csv")


def test_a_benchmark_lists_its_pairs_files_in_order():
    assert read_list_names(b"b_pos.pairs\r\na_neg.pairs", "t.benchmark") == ("b_pos.pairs", "a_neg.pairs")


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_an_empty_benchmark_is_an_error(data):
    with pytest.raises(DataError, match=r"^t.benchmark: empty"):
        read_list_names(data, "t.benchmark")


@pytest.mark.parametrize("name", ["i_x.ref,i_x.e1", "../a.pairs"])
def test_a_benchmark_that_names_something_else_is_an_error_with_the_line(name):
    with pytest.raises(DataError, match=r"^t.benchmark: line 2: "):
        read_list_names(f"a.pairs\n{name}\n".encode(), "t.benchmark")


def sides(pairs) -> list[tuple[str, int, str, int]]:
    columns = (pairs.a_image, pairs.a_patch, pairs.b_image, pairs.b_patch)
    return [(pairs.images[a], int(k), pairs.images[b], int(m)) for a, k, b, m in zip(*columns, strict=True)]


def test_pairs_with_labels():
    pairs = read_pairs(b"i_x.e1.3,v_y.ref.14,1\nv_y.ref.0,i_x.h5.2,0\n", "p.pairs")
    assert sides(pairs) == [("i_x/e1", 3, "v_y/ref", 14), ("v_y/ref", 0, "i_x/h5", 2)]
    assert pairs.labels.tolist() == [True, False]


def test_pairs_without_labels():
    pairs = read_pairs(b"i_x.e1.3,v_y.ref.14\nv_y.ref.0,i_x.h5.2\n", "p.pairs")
    assert sides(pairs) == [("i_x/e1", 3, "v_y/ref", 14), ("v_y/ref", 0, "i_x/h5", 2)]
    assert pairs.labels is None


@pytest.mark.parametrize(
    "data", [b"i_x.e1.3,v_y.ref.14,1\r\n", b"i_x.e1.3,v_y.ref.14,1", b"i_x.e1.3, v_y.ref.14 ,1 \n"]
)
def test_line_ends_and_white_space_do_not_change_a_pair(data):
    pairs = read_pairs(data, "p.pairs")
    assert sides(pairs) == [("i_x/e1", 3, "v_y/ref", 14)]
    assert pairs.images == ("i_x/e1", "v_y/ref")


signatures = st.tuples(
    st.sampled_from(["i_x", "v_yard", "v_z-1"]), st.sampled_from(["ref", "e1", "t5"]), st.integers(0, 10**6)
)


@quick
@given(st.lists(st.tuples(signatures, signatures, st.booleans()), min_size=1, max_size=20))
def test_pairs_read_back_equal_what_was_written(lines):
    data = "\n".join(f"{'.'.join(map(str, a))},{'.'.join(map(str, b))},{int(label)}" for a, b, label in lines)
    pairs = read_pairs(data.encode(), "p.pairs")
    assert sides(pairs) == [(f"{a[0]}/{a[1]}", a[2], f"{b[0]}/{b[1]}", b[2]) for a, b, _ in lines]
    assert pairs.labels.tolist() == [label for _, _, label in lines]
    assert list(pairs.images) == sorted({f"{side[0]}/{side[1]}" for a, b, _ in lines for side in (a, b)})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("i_x.e1,i_x.e2.1", "'i_x.e1' is no patch signature"),
        ("i_x.e1.1,i_x.e2.1.1", "'i_x.e2.1.1' is no patch signature"),
        ("i_x.e1.one,i_x.e2.1", "'i_x.e1.one' is no patch signature"),
        ("i_x.e1.-1,i_x.e2.1", "'i_x.e1.-1' is no patch signature"),
        ("i_x.e1.1", "expected patch_a,patch_b"),
        ("i_x.e1.1,i_x.e2.1,1", "expected patch_a,patch_b"),
        ("i_x.e1.1.i_x,e2.1", "'i_x.e1.1.i_x' is no patch signature"),
        ("i_x.e1.1,..1", "'..1' is no patch signature"),
        ("i_x.e1.1,.e2.1", "'.e2.1' is no patch signature"),
        ("i_x.e1.99999999999,i_x.e2.1", "'i_x.e1.99999999999'"),
    ],
)
def test_a_bad_pair_is_named_by_file_and_line(line, message):
    with pytest.raises(DataError) as caught:
        read_pairs(f"i_x.e1.0,i_x.e2.0\n{line}\n".encode(), "p.pairs")
    assert str(caught.value).startswith(f"p.pairs: line 2: {message}")


@pytest.mark.parametrize("label", ["2", "-1", "300", "x", ""])
def test_a_label_that_is_not_0_or_1_is_named_by_file_and_line(label):
    with pytest.raises(DataError, match=rf"^p.pairs: line 2: label '?{label}'? is not 0 or 1"):
        read_pairs(f"i_x.e1.0,i_x.e2.0,1\ni_x.e1.0,i_x.e2.0,{label}\n".encode(), "p.pairs")


def test_a_line_without_label_among_labelled_ones_is_an_error():
    with pytest.raises(DataError, match=r"^p.pairs: line 2: expected patch_a,patch_b,label"):
        read_pairs(b"i_x.e1.0,i_x.e2.0,1\ni_x.e1.0,i_x.e2.0\n", "p.pairs")


def test_an_empty_list_of_pairs_has_no_pairs():
    assert len(read_pairs(b"", "p.pairs")) == 0


@pytest.mark.parametrize("data", [b"1\n0\n1\n", b"1\r\n0\r\n1\r\n", b"1\n0\n1", b" 1\n0 \n1\n"])
def test_labels_are_zeros_and_ones(data):
    assert read_labels(data, "t.labels").tolist() == [True, False, True]


@pytest.mark.parametrize("label", ["2", "-1", "x", "1,0", "true", "0 1"])
def test_another_label_is_named_by_file_and_line(label):
    with pytest.raises(DataError, match=r"^t.labels: line 2: label"):
        read_labels(f"1\n{label}\n".encode(), "t.labels")


def test_empty_labels_are_none():
    assert read_labels(b"", "t.labels").tolist() == []


distances = st.lists(st.floats(allow_nan=False), max_size=30)


@quick
@given(distances, st.randoms())
def test_results_with_labels_read_back_equal_what_was_written(values, random):
    labels = np.array([random.random() < 0.5 for _ in values], bool)
    read = read_distances(write_distances(np.array(values), labels), "t.results")
    assert read.distances.tobytes() == np.array(values, np.float64).tobytes()
    assert not values or read.labels.tolist() == labels.tolist()


@quick
@given(distances)
def test_results_without_labels_read_back_equal_what_was_written(values):
    read = read_distances(write_distances(np.array(values), None), "t.results")
    assert read.distances.tobytes() == np.array(values, np.float64).tobytes()
    assert read.labels is None


def test_results_are_written_as_the_published_description_asks():
    assert write_distances(np.array([0.5, 2.0]), np.array([True, False])) == b"0.5,1\n2.0,0\n"
    assert write_distances(np.array([0.5, 2.0]), None) == b"0.5\n2.0\n"


@pytest.mark.parametrize("data", [b"0.5,1\r\n2,0\r\n", b"0.5,1\n2,0", b"0.5 , 1\n 2 ,0 \n"])
def test_line_ends_and_white_space_do_not_change_results(data):
    read = read_distances(data, "t.results")
    assert (read.distances.tolist(), read.labels.tolist()) == ([0.5, 2.0], [True, False])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"0.5\nnan\n1\nNaN\n", r"line 2: the distance is NaN \(2 such lines\)"),
        (b"0.5\nfar\n", "line 2: distance 'far' is no number"),
        (b"0.5,1\n0.5,2\n", "line 2: label 2 is not 0 or 1"),
        (b"0.5,1\n0.5\n", "line 2: expected distance,label, found '0.5'"),
        (b"0.5\n0.5,1\n", "line 2: expected distance, found '0.5,1'"),
        (b"0.5;1\n", "line 1: distance '0.5;1' is no number"),
    ],
)
def test_bad_results_are_named_by_file_and_line(data, message):
    with pytest.raises(DataError, match=f"^t.results: {message}"):
        read_distances(data, "t.results")


@pytest.mark.parametrize("data", [b"0.5 1\n0.25 0\n", b"0.5,1\n2 5,0\n"])
def test_a_distance_and_a_number_behind_a_space_are_not_read_as_one(data):
    with pytest.raises(DataError, match=r"^t.results: line"):
        read_distances(data, "t.results")


@published
def test_the_published_pairs_have_the_right_counts():
    counts = {
        name: len(read_pairs((PUBLISHED / name).read_bytes(), name))
        for name in read_list_names((PUBLISHED / "train_example.benchmark").read_bytes(), "train_example.benchmark")
    }
    assert counts == {"train_example_pos.pairs": 1_000, "train_example_neg.pairs": 2_000}


@published
def test_the_published_labels_are_the_positives_and_then_the_negatives():
    labels = read_labels((PUBLISHED / "train_example.labels").read_bytes(), "train_example.labels")
    assert labels.tolist() == [True] * 1_000 + [False] * 2_000


@published
def test_a_published_positive_is_the_same_patch_twice():
    pairs = read_pairs((PUBLISHED / "train_example_pos.pairs").read_bytes(), "train_example_pos.pairs")
    assert np.array_equal(pairs.a_patch, pairs.b_patch)
    assert sides(pairs)[0] == ("i_chestnuts/e3", 293, "i_chestnuts/e4", 293)


@published
def test_the_published_task_names_its_lists():
    data = (PUBLISHED / "train_diffseq_easy.benchmark").read_bytes()
    assert read_list_names(data, "train_diffseq_easy") == ("train_easy_pos.pairs", "train_diffseq_neg.pairs")
