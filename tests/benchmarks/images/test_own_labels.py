"""Labels of one's own images: grades become gains, a query's own image among the references is junk."""

import numpy as np
import pytest

from raybench import storage
from raybench.benchmarks.images.own_labels import labels_of, own_notes, own_pairs, truth_uri
from raybench.benchmarks.images.sets import PictureSet
from raybench.errors import ConfigError, ProblemList
from raybench.formats.names import Names
from raybench.formats.relevance import read_relevance
from raybench.sources.image_files import ImageFiles


def pictures(root, *names):
    """A set of these files of a folder, whether they are pictures or not."""
    root.mkdir(exist_ok=True)
    for name in names:
        (root / f"{name}.png").write_bytes(name.encode())
    entries = [entry for entry in storage.list_files(str(root)) if entry.name.removesuffix(".png") in names]
    return PictureSet("some", Names.of(names), ImageFiles.of(str(root), entries))


NONE = np.zeros(0, np.int64), np.zeros(0, np.int64)


def labels(text, queries, references, own=NONE):
    problems = ProblemList()
    found = labels_of(read_relevance(text.encode(), "truth.csv", problems), queries, references, own, problems)
    problems.check()
    return list(zip(found.pairs.query.tolist(), found.pairs.reference.tolist(), found.gain.tolist(), strict=True))


def test_a_pair_graded_0_is_as_good_as_one_without_a_label(tmp_path):
    queries, references = pictures(tmp_path / "q", "a", "b"), pictures(tmp_path / "r", "x", "y", "z")
    assert labels("b,z,2.5\na,y,0\na,x,1\n", queries, references) == [(0, 0, 1.0), (1, 2, 2.5)]


def test_junk_has_no_gain_and_is_no_relevant_pair(tmp_path):
    queries, references = pictures(tmp_path / "q", "a"), pictures(tmp_path / "r", "x", "y")
    assert labels("a,y,hard\na,x,junk\n", queries, references) == [(0, 0, 0.0), (0, 1, 1.0)]


def test_files_that_both_sets_have_are_own_pairs_by_name_and_place(tmp_path):
    references = pictures(tmp_path / "r", "a", "b", "c", "d")
    queries = pictures(tmp_path / "r", "b", "d")
    own = own_pairs(queries, references)
    assert [part.tolist() for part in own] == [[0, 1], [1, 3]]
    (note,) = own_notes(queries, references, own)
    assert note.startswith("2 queries are among the references themselves")


def test_a_file_is_the_same_however_it_is_spelled_and_named(tmp_path):
    references = pictures(tmp_path / "r", "a", "b", "c")
    (tmp_path / "lists").mkdir()
    uris = ("../r/c.png", f"file://{tmp_path}/r/b.png", f"{tmp_path}/lists/../r//a.png", "../q/a.png")
    pictures(tmp_path / "q", "a")
    lines = [f"{uri},mine{number}\n" for number, uri in enumerate(uris)]
    (tmp_path / "lists/some.csv").write_text("uri,name\n" + "".join(lines))
    source = ImageFiles.scan(str(tmp_path / "lists/some.csv"))
    queries = PictureSet("queries", Names.of(source.keys), source)
    own = own_pairs(queries, references)
    assert [part.tolist() for part in own] == [[0, 1, 2], [2, 1, 0]]


def test_files_of_one_name_in_two_places_are_no_own_pairs_but_said(tmp_path):
    queries, references = pictures(tmp_path / "q", "a", "b"), pictures(tmp_path / "r", "b", "c")
    own = own_pairs(queries, references)
    assert [len(part) for part in own] == [0, 0]
    (note,) = own_notes(queries, references, own)
    assert note.startswith("1 names stand in queries and in references (b), in different files")


def test_a_querys_own_image_is_junk_even_where_the_truth_says_otherwise(tmp_path):
    both = pictures(tmp_path / "r", "a", "b")
    assert labels("a,a\na,b\n", both, both, own_pairs(both, both)) == [(0, 0, 0.0), (0, 1, 1.0), (1, 1, 0.0)]


def test_truth_is_looked_for_in_the_data_where_it_is_not_named(tmp_path):
    with pytest.raises(ConfigError, match="no --ground-truth: name a CSV or Parquet file"):
        truth_uri(None, None)
    with pytest.raises(ConfigError, match=r"no ground_truth\.csv in /"):
        truth_uri(None, str(tmp_path))
    (tmp_path / "ground_truth.parquet").write_bytes(b"")
    assert truth_uri(None, str(tmp_path)) == f"{tmp_path}/ground_truth.parquet"
    assert truth_uri(None, None, str(tmp_path)) == f"{tmp_path}/ground_truth.parquet"
    assert truth_uri("mine.csv", str(tmp_path)) == "mine.csv"
