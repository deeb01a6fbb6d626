"""Bad input of patch pairs: each problem is one line that names file, place, and what was expected; exit code 2."""

import numpy as np
import pytest
from archives import pack_shards, pack_tar
from conftest import only_line
from pair_patches import make_patches


@pytest.fixture
def patches(tmp_path):
    return make_patches(tmp_path / "patches")


RESULTS = {
    "no match": ("distance,label\n1,0\n2,0\n", "none that match"),
    "no other": ("distance,label\n1,1\n2,1\n", "none other than matches"),
    "NaN": ("distance,label\n1,1\nnan,0\n", "line 3: the distance is NaN"),
    "no number": ("score,label\n1,1\nnear,0\n", "line 3: score 'near' is no number"),
    "mixed labels": ("distance,label\n1,1\n2,no\n", "line 2: label '1', but 'no' in line 3"),
    "floats among whole numbers": ("distance,label\n1,1.0\n2,0\n", "write all labels of a file in one way"),
    "other labels": ("distance,label\n1,1\n2,-1\n", "line 3: label '-1'; expected 1 (a match) or 0"),
    "both measures": ("distance,score,label\n1,1,1\n2,2,0\n", "both distances and scores"),
    "neither measure": ("value,label\n1,1\n2,0\n", "distance,label or score,label"),
    "no header": ("0.5,1\n0.75,0\n", "expected one that names the columns"),
    "too many columns": ("distance,label\n1,1,0\n2,0\n3,1\n", "line 2: 3 columns, expected 2"),
    "a column twice": ("distance,distance,label\n1,1,0\n", "names a column twice"),
    "nothing": ("", "empty; expected distance,label"),
    "a header alone": ("distance,label\n", "no pairs"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_wrong_results_are_told_in_one_line(raybench, tmp_path, name):
    text, words = RESULTS[name]
    (tmp_path / "r.csv").write_text(text)
    only_line(
        raybench("run", "patch-pairs", "--results", tmp_path / "r.csv", "--out", tmp_path / "o", "--ray", "off"),
        "r.csv",
        words,
    )


ARRAYS = {
    "unequal lengths": ({"labels": [1, 0], "distances": [1.0]}, "1 distances but 2 labels"),
    "both measures": ({"labels": [1, 0], "distances": [1.0, 2], "scores": [1.0, 2]}, "both distances and scores"),
    "labels that are none": ({"labels": [1, 2], "distances": [1.0, 2]}, "row 1: label 2"),
    "NaN": ({"labels": [1, 0], "scores": [np.nan, 2]}, "row 0: the score is NaN"),
    "no labels": ({"distances": [1.0, 2]}, "expected arrays labels, and distances or scores"),
    "text": ({"labels": ["1", "0"], "distances": [1.0, 2]}, "labels is <U1, of shape (2,)"),
    "another shape": ({"labels": [1, 0], "distances": [[1.0, 2]]}, "distances is float64, of shape (1, 2)"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_arrays_are_told_in_one_line(raybench, tmp_path, name):
    arrays, words = ARRAYS[name]
    np.savez(tmp_path / "r.npz", **{key: np.array(value) for key, value in arrays.items()})
    only_line(
        raybench("run", "patch-pairs", "--results", tmp_path / "r.npz", "--out", tmp_path / "o", "--ray", "off"),
        "r.npz",
        words,
    )


def pairs(raybench, patches, text, *more, name="list.csv"):
    given = ("--pairs", patches.written(name, text), *more, "--out", patches.folder / "out", "--ray", "off")
    return raybench("run", "patch-pairs", *given)


SIFT = ("--descriptor", "sift")


def test_an_unknown_patch_and_a_pair_with_both_labels_are_told_together(raybench, patches):
    text = "a,b,label\np1,p2,1\np3,p999,0\np2,p1,0\n"
    said = pairs(raybench, patches, text, "--data", patches.singles(), *SIFT)
    assert said.code == 2
    assert len(said.errors) == 2
    assert "line 3: patch 'p999' is not there" in said.errors[0]
    assert "line 2 and line 4: the pair 'p1', 'p2' has both labels" in said.errors[1]


def test_lines_labels_and_patches_that_are_wrong_are_told_together(raybench, patches):
    text = "a,b,label\np1,p2,1\np3,p999,0\n,p2,1\np1,p4,maybe\np1,p3,no\np4\n"
    said = pairs(raybench, patches, text, "--data", patches.singles(), *SIFT)
    assert said.code == 2
    expected = ["line 7: 1 columns", "line 4: no name of a patch", "line 5: label 'maybe'"]
    expected += ["line 2: label '1', but 'no' in line 6", "line 3: patch 'p999' is not there"]
    assert len(said.errors) == len(expected)
    for line, words in zip(said.errors, expected, strict=True):
        assert words in line


def test_blank_lines_above_a_header_are_let_pass_and_counted(raybench, patches):
    text = "\n\na,b,label\n\np1,p2,1\np3,p999,0\n"
    only_line(pairs(raybench, patches, text, "--data", patches.singles(), *SIFT), "line 6: patch 'p999' is not there")


def test_a_broken_and_an_oblong_patch_are_told_together(raybench, patches):
    from PIL import Image

    folder = patches.singles()
    (folder / "deep/p1.png").write_bytes(b"no picture")
    Image.fromarray(patches.pixels[2][:40]).save(folder / "deep/p2.png")
    said = pairs(raybench, patches, "p1,p2,1\np3,p4,0\n", "--data", folder, *SIFT)
    assert said.code == 2
    assert len(said.errors) == 2
    assert "p1.png: no image" in said.errors[0]
    assert "p2.png: 64 x 40 px; a patch must be square" in said.errors[1]


def test_a_name_that_fits_two_patches_is_told(raybench, patches):
    folder = patches.singles()
    (folder / "p1.png").write_bytes((folder / "deep/p1.png").read_bytes())
    (folder / "deep2").mkdir()
    (folder / "deep2/p9.png").write_bytes((folder / "deep/p9.png").read_bytes())
    said = pairs(raybench, patches, "p1,p2,1\np3,p9,0\n", "--data", folder, *SIFT)
    only_line(said, "'p9' may be deep/p9.png or deep2/p9.png; name it in full")


def test_names_in_two_folders_of_which_one_is_missing_are_told(raybench, patches):
    text = "deep/p1,deep/p2,1\ndeep/p3,p2,0\ndeep/p3,other/p2,0\n"
    said = pairs(raybench, patches, text, "--data", patches.singles(), *SIFT)
    only_line(said, "'deep/p2' and 'other/p2' are both deep/p2.png but for their folders; is one of these missing?")
    named = {"vectors": np.eye(9, dtype=np.float32), "image_names": [f"deep/p{number}.png" for number in range(9)]}
    np.savez(patches.folder / "v.npz", **named)
    only_line(pairs(raybench, patches, text, "--features", patches.folder / "v.npz"), "is one of these missing?")


def test_names_may_lead_through_other_folders_than_the_patches_and_be_written_in_two_ways(raybench, patches):
    text = "/me/deep/p1.png,p2,1\n./deep/p1,/me/deep/p3.png,0\np1,deep/p3.png,0\np4,/you/deep/p3.png,0\n"
    assert pairs(raybench, patches, text, "--data", patches.singles(), *SIFT).code == 0


def test_sheets_that_lack_patches_are_told_with_the_reason(raybench, patches):
    folder = patches.sheets()
    text = "0 0 0 1 0 0\n299 1 0 2 2 0\n400 1 0 2 2 0\n"
    only_line(pairs(raybench, patches, text, "--data", folder, *SIFT), "line 3: patch '400'", "info.txt", "300 lines")
    (folder / "info.txt").write_text("0 0\n" * 100)
    text = "0 0 0 1 0 0\n299 1 0 2 2 0\n"
    only_line(pairs(raybench, patches, text, "--data", folder, *SIFT), "patch '299'", "100 lines, one per patch")
    (folder / "info.txt").write_text("0 0\n" * 300)
    (folder / "patches0001.bmp").unlink()
    only_line(pairs(raybench, patches, text, "--data", folder, *SIFT), "patch '299'", "no patches0001.bmp")


def test_a_picture_whose_number_is_that_of_no_patch_is_no_sheet(raybench, patches):
    folder = patches.sheets()
    (folder / f"patches{'9' * 20}.bmp").write_bytes(b"not looked at")
    said = pairs(raybench, patches, "0 0 0 1 0 0\n2 1 0 4 2 0\n", "--data", folder, *SIFT)
    assert said.code == 0, said.err


def test_strips_in_archives_are_told_to_be_unpacked(raybench, patches):
    strips = patches.strips()
    pack_shards(strips, patches.folder, 1)
    pack_tar(strips, patches.folder / "strips.tar")
    for archive in ("strips.tar", "shard-{000..000}.tar"):
        data = ("--data", patches.folder / archive, *SIFT)
        said = pairs(raybench, patches, "i_0.ref.1,i_0.ref.2,1\ni_0.ref.3,i_1.ref.4,0\n", *data)
        only_line(said, archive, "holds strips SEQ/IM.png, which only a folder may hold; unpack it")


def test_a_sheet_of_another_size_is_told_before_anything_is_computed(raybench, patches):
    from PIL import Image

    folder = patches.sheets()
    Image.new("L", (1024, 960)).save(folder / "patches0001.bmp")
    said = pairs(raybench, patches, "0 0 0 1 0 0\n299 1 0 2 2 0\n", "--data", folder, *SIFT)
    only_line(said, "patches0001.bmp: 1024 x 960 px")
    assert not (patches.folder / "out/stages").exists()


def test_lines_of_phototour_that_are_none_are_told_together(raybench, patches):
    text = "0 0 0 1 0 0\n2 2 0\n3 x 0 4 4 0\n"
    said = pairs(raybench, patches, text, "--data", patches.sheets(), *SIFT)
    assert said.code == 2
    assert len(said.errors) == 2
    assert "line 2: 3 columns, expected 6" in said.errors[0]
    assert "line 3: 'x' is no number of a patch or point" in said.errors[1]


def test_vectors_by_number_must_have_a_row_for_every_patch(raybench, patches):
    np.save(patches.folder / "v.npy", np.eye(5, dtype=np.float32))
    said = pairs(raybench, patches, "1,2,1\n3,7,0\n", "--features", patches.folder / "v.npy")
    only_line(said, "line 2: patch '7' is not there", "v.npy has 5 rows")
    said = pairs(raybench, patches, "p1,p2,1\np3,p4,0\n", "--features", patches.folder / "v.npy")
    only_line(said, "has no names of its 5 rows", "'p1'", "image_names")


def test_vectors_that_are_not_finite_are_told(raybench, patches):
    vectors = np.eye(5, dtype=np.float32)
    vectors[3, 1] = np.nan
    np.save(patches.folder / "v.npy", vectors)
    only_line(pairs(raybench, patches, "1,2,1\n3,4,0\n", "--features", patches.folder / "v.npy"), "row 3: NaN")


def test_a_folder_of_hidden_lists_alone_has_none(raybench, patches):
    folder = patches.folder / "lists"
    folder.mkdir()
    (folder / "._list.csv").write_text("left by a Mac")
    out = ("--out", patches.folder / "out", "--ray", "off")
    data = ("--data", patches.singles(), *SIFT)
    only_line(raybench("run", "patch-pairs", "--pairs", folder, *data, *out), "lists: has no such file in it")
    only_line(raybench("run", "patch-pairs", "--results", folder, *out), "lists: has no such file in it")


def test_what_is_given_must_fit_together(raybench, patches):
    singles = patches.singles()
    list_ = patches.written("list.csv", "p1,p2,1\np3,p4,0\n")
    out = ("--out", patches.folder / "out", "--ray", "off")
    only_line(raybench("run", "patch-pairs", *out), "give one of --descriptor, --features, --results")
    only_line(raybench("run", "patch-pairs", "--data", singles, *SIFT, *out), "--pairs is missing")
    only_line(raybench("run", "patch-pairs", "--results", list_, "--pairs", list_, *out), "leave out --pairs")
    only_line(raybench("run", "patch-pairs", "--results", singles / "no.csv", *out), "no.csv: does not exist")
