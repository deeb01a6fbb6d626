"""Sources list a folder in order, are known by a digest, and name what is missing."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raybench.benchmarks.hbench.classification import prepare
from raybench.benchmarks.hbench.inputs import HBenchOptions
from raybench.benchmarks.job import Job
from raybench.errors import DataError, ProblemList, Problems
from raybench.sources.patches import items_of
from raybench.sources.strips import Strips
from raybench.sources.vector_files import VectorFiles

SIDE = 8


@pytest.fixture
def strips(tmp_path) -> Path:
    """Two sequences of two strips, patch k of the n-th strip filled with the value 10 n + k."""
    root = tmp_path / "patches"
    for n, (key, count) in enumerate([("i_ajuntament/ref", 3), ("i_ajuntament/e1", 3), ("v_abstract/ref", 2)]):
        write_strip(root / f"{key}.png", np.arange(count) + 10 * n)
    return root


@pytest.fixture
def vectors(tmp_path) -> Path:
    """Two sequences of CSV descriptors."""
    root = tmp_path / "sift"
    for key, text in [("i_x/ref", "1,2\n3,4\n5,6\n"), ("i_x/e1", "1,2\n3,4"), ("v_y/ref", "7,8\n")]:
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{key}.csv").write_text(text)
    return root


def write_strip(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    patches = np.repeat(np.asarray(values, np.uint8), SIDE * SIDE).reshape(-1, SIDE)
    Image.fromarray(patches).save(path)


def touch(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def test_strips_are_listed_in_name_order(strips):
    assert Strips.scan(str(strips)).keys == ("i_ajuntament/e1", "i_ajuntament/ref", "v_abstract/ref")


def test_other_files_and_other_depths_are_not_strips(strips):
    (strips / "readme.png").write_bytes(b"")
    (strips / "i_ajuntament" / "H_ref_e1").write_bytes(b"")
    (strips / "i_ajuntament" / "deep").mkdir()
    (strips / "i_ajuntament" / "deep" / "ref.png").write_bytes(b"")
    assert len(Strips.scan(str(strips)).keys) == 3


def test_strips_are_read_by_range(strips):
    source = Strips.scan(str(strips))
    read = [(uri.removeprefix(f"{strips}/"), patches[:, 0, 0].tolist()) for uri, patches in source.read(1, 3)]
    assert read == [("i_ajuntament/ref.png", [0, 1, 2]), ("v_abstract/ref.png", [20, 21])]


def test_patches_are_counted_from_headers(strips):
    problems = ProblemList()
    assert Strips.scan(str(strips)).counts([0, 2], problems) == {0: 3, 2: 2}
    problems.check()


def test_a_bad_strip_is_noted_and_the_rest_counted(strips):
    (strips / "i_ajuntament" / "ref.png").write_bytes(b"no image")
    problems = ProblemList()
    assert Strips.scan(str(strips)).counts([0, 1, 2], problems) == {0: 3, 2: 2}
    assert len(problems.lines) == 1
    assert "i_ajuntament/ref.png: no PNG" in problems.lines[0]


def test_the_digest_of_strips_is_the_same_for_the_same_folder(strips):
    assert Strips.scan(str(strips)).digest == Strips.scan(str(strips)).digest


def test_the_digest_of_strips_changes_with_a_stamp(strips):
    before = Strips.scan(str(strips)).digest
    touch(strips / "v_abstract" / "ref.png")
    assert Strips.scan(str(strips)).digest != before


def test_the_digest_of_strips_changes_with_a_name(strips):
    before = Strips.scan(str(strips)).digest
    (strips / "v_abstract" / "ref.png").rename(strips / "v_abstract" / "e1.png")
    assert Strips.scan(str(strips)).digest != before


def test_the_digest_by_content_ignores_a_touched_file(strips):
    before = Strips.scan(str(strips), by_content=True).digest
    touch(strips / "v_abstract" / "ref.png")
    assert Strips.scan(str(strips), by_content=True).digest == before


def test_the_digest_by_content_sees_an_edit_that_keeps_size_and_stamp(strips):
    path = strips / "v_abstract" / "ref.png"
    stamp = path.stat().st_mtime_ns
    before = Strips.scan(str(strips), by_content=True).digest
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(0, stamp))
    assert Strips.scan(str(strips), by_content=True).digest != before


def test_vector_files_are_listed_and_read_by_range(vectors):
    source = VectorFiles.scan(str(vectors))
    assert source.keys == ("i_x/e1", "i_x/ref", "v_y/ref")
    assert [rows.tolist() for _, rows in source.read(0, 3)] == [[[1, 2], [3, 4]], [[1, 2], [3, 4], [5, 6]], [[7, 8]]]


def test_descriptors_are_counted_with_and_without_a_newline_at_the_end(vectors):
    assert VectorFiles.scan(str(vectors)).counts([0, 1, 2], ProblemList()) == {0: 2, 1: 3, 2: 1}


def test_blank_lines_at_the_end_are_no_descriptors(vectors):
    (vectors / "v_y" / "ref.csv").write_text("7,8\n\n")
    source = VectorFiles.scan(str(vectors))
    (_, rows), *_ = source.read(2, 3)
    assert source.counts([2], ProblemList()) == {2: len(rows)}


def test_an_empty_vector_file_is_noted(vectors):
    (vectors / "v_y" / "ref.csv").write_text("")
    problems = ProblemList()
    assert VectorFiles.scan(str(vectors)).counts([1, 2], problems) == {1: 3}
    assert problems.lines == [f"{vectors}/v_y/ref.csv: empty; expected one descriptor a line"]


def test_the_digest_of_vectors_changes_with_content_that_keeps_size_and_stamp(vectors):
    path = vectors / "v_y" / "ref.csv"
    stamp = path.stat().st_mtime_ns
    before = VectorFiles.scan(str(vectors)).digest
    path.write_text("7,9\n")
    os.utime(path, ns=(0, stamp))
    assert VectorFiles.scan(str(vectors)).digest != before


def test_the_digest_of_vectors_ignores_a_touched_file(vectors):
    before = VectorFiles.scan(str(vectors)).digest
    touch(vectors / "v_y" / "ref.csv")
    assert VectorFiles.scan(str(vectors)).digest == before


@pytest.mark.parametrize("source", [Strips, VectorFiles])
def test_a_missing_and_an_empty_folder_are_told_apart(source, tmp_path):
    with pytest.raises(DataError, match="does not exist; expected a folder with"):
        source.scan(str(tmp_path / "none"))
    with pytest.raises(DataError, match="is empty; expected a folder with"):
        source.scan(str(tmp_path))


def test_the_wanted_items_are_found_by_key(strips):
    problems = ProblemList()
    found = items_of(Strips.scan(str(strips)), ["v_abstract/ref", "i_ajuntament/e1"], problems)
    assert (found, problems.lines) == ({"v_abstract/ref": 2, "i_ajuntament/e1": 0}, [])


def test_a_missing_sequence_is_noted_once_with_the_nearest_name(strips):
    problems = ProblemList()
    items_of(Strips.scan(str(strips)), ["v_abstrakt/ref", "v_abstrakt/e1"], problems)
    assert problems.lines == [
        f"{strips}: no sequence 'v_abstrakt', which the tasks name (did you mean v_abstract?)",
    ]


def test_a_missing_image_of_a_known_sequence_is_noted_by_its_file(strips):
    problems = ProblemList()
    items_of(Strips.scan(str(strips)), ["v_abstract/h3"], problems)
    assert problems.lines == [f"{strips}: v_abstract/h3.png is missing, which the tasks name"]


def test_a_patch_that_is_out_of_range_is_named_by_list_and_line(vectors, tmp_path):
    tasks = tmp_path / "classification"
    tasks.mkdir()
    (tasks / "t.benchmark").write_text("p.pairs\n")
    (tasks / "p.pairs").write_text("i_x.ref.2,v_y.ref.0,1\ni_x.ref.0,i_x.e1.2,0\n")
    with pytest.raises(Problems) as caught:
        prepare(Job("hbench-classification", HBenchOptions(benchmarks=str(tasks), features=str(vectors))))
    assert caught.value.lines() == [
        f"{tasks}/p.pairs: line 2: patch i_x.e1.2 is out of range; i_x/e1 has 2 patches (1 such lines)"
    ]
