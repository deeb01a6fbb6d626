"""Demo data for copy detection: the published layouts, with copies that are copies."""

import csv

import pytest
from PIL import Image

from raybench.demo.copies import MATCHED, ORIGINALS, QUERIES, REFERENCES, make_copies
from raybench.formats.copydays import CROPS, JPEG_QUALITIES


@pytest.fixture
def folder(copies):
    return copies


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_copydays_has_every_published_block_with_as_many_images_as_originals(folder):
    originals = _names(folder / "copydays" / "original")
    assert len(originals) == ORIGINALS
    for kind, numbers in (("jpegqual", JPEG_QUALITIES), ("crops", CROPS)):
        assert _names(folder / "copydays" / kind) == sorted(map(str, numbers))
        assert all(_names(folder / "copydays" / kind / str(number)) == originals for number in numbers)


def test_every_strong_copy_shares_its_first_four_characters_with_one_original(folder):
    originals = [name[:4] for name in _names(folder / "copydays" / "original")]
    strong = _names(folder / "copydays" / "strong")
    assert len(set(originals)) == ORIGINALS < len(strong)
    assert {name[:4] for name in strong} == set(originals)


def test_disc_truth_names_images_that_are_there_and_queries_without_a_match(folder):
    with open(folder / "disc" / "val_groundtruth_matches.csv") as file:
        rows = list(csv.DictReader(file))
    assert [f"{row['query_id']}.jpg" for row in rows] == _names(folder / "disc" / "val_query")
    matched = [row["reference_id"] for row in rows if row["reference_id"]]
    assert (len(rows), len(matched), len(set(matched))) == (QUERIES, MATCHED, MATCHED)
    references = _names(folder / "disc" / "val_ref")
    assert len(references) == REFERENCES
    assert {f"{name}.jpg" for name in matched} <= set(references)


def test_pictures_have_several_shapes_so_that_batches_must_be_grouped(folder):
    shapes = {Image.open(path).size for path in (folder / "disc" / "val_query").iterdir()}
    assert len(shapes) > 3


def test_the_same_data_is_made_every_time(folder, tmp_path):
    make_copies(tmp_path)
    for path in [*folder.glob("disc/val_query/*"), *folder.glob("copydays/strong/*")]:
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes()
