"""Pictures of a folder as a set: names in order, files in the same order, and names that become the same."""

import pytest

from raybench.benchmarks.images.sets import pictures
from raybench.errors import ProblemList


def pictures_of(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"")
    problems = ProblemList()
    return pictures("references", str(folder), False, problems), problems.lines


@pytest.mark.parametrize("names", [("a.jpg", "b.png"), ("a.jpg", "a-b.jpg")])
def test_names_and_files_are_in_the_order_of_stems(tmp_path, names):
    found, problems = pictures_of(tmp_path, *names[::-1])
    assert not problems
    assert found.source.keys == names
    assert [found.names[0], found.names[1]] == [name.rpartition(".")[0] for name in names]


def test_every_group_of_files_that_share_a_stem_is_noted_once(tmp_path):
    _, problems = pictures_of(tmp_path, "c.jpg", "b.png", "a.jpg", "z/a.jpg", "z/b.jpg", "a.png")
    same = "have the same name but for folder and suffix; keep one"
    assert problems == [f"{tmp_path}: a.jpg and a.png and z/a.jpg {same}", f"{tmp_path}: b.png and z/b.jpg {same}"]
