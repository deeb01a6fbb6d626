"""Demo data of one's own: folders of things, and truth that names their pictures."""

import csv

import pytest

from raybench.demo.own_images import EDITED, PLAIN, THINGS, make_own_images


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("own")
    make_own_images(made)
    return made


def test_every_picture_has_the_others_of_its_thing_as_matches(folder):
    with (folder / "truth.csv").open() as file:
        rows = list(csv.DictReader(file))
    pictures = {path.relative_to(folder / "pictures").with_suffix("").as_posix() for path in folder.rglob("*.jpg")}
    each = PLAIN + EDITED
    assert len(pictures) == THINGS * each
    assert {row["query"] for row in rows} == {row["reference"] for row in rows} == pictures
    assert len(rows) == THINGS * each * (each - 1)
    assert {(row["grade"], row["reference"][-1] in "01") for row in rows} == {("positive", True), ("hard", False)}


def test_the_same_data_is_made_every_time(folder, tmp_path):
    make_own_images(tmp_path)
    for path in folder.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes()


def test_pictures_of_a_thing_are_found_better_than_by_chance(folder, raybench, tmp_path):
    both = ("--queries", folder / "pictures", "--references", folder / "pictures")
    given = (*both, "--ground-truth", folder / "truth.csv", "--descriptor", "thumbnail", "--out", tmp_path)
    said = raybench("run", "image-retrieval", *given, "--ray", "off", "--progress", "none")
    assert said.code == 0, said.err
    (row,) = csv.DictReader((tmp_path / "image_retrieval.csv").read_text().splitlines())
    assert row["queries"] == str(THINGS * (PLAIN + EDITED))
    assert 0.3 < float(row["mAP"]) < 1 and float(row["precision_at_1"]) > 0.5
