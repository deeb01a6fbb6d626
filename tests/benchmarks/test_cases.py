"""Cases are kept in a run's folder in a form that is held to, wherever the folder comes from."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from raybench.benchmarks.cases import CASES, MOST_BYTES, cases_text, parsed_cases, stored_cases, thumbnail
from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.errors import DataError

JPEG = thumbnail(np.full((30, 40, 3), 90, np.uint8))
ODD = 'a"<b>\\\u2028\n../é'
CASE = ReportPicture(
    ODD,
    ODD,
    b"",
    "missed",
    ODD,
    "Flat | None",
    ODD,
    (PicturePanel("query", ODD, JPEG), PicturePanel("x", "y", b"", True)),
)


def test_what_is_written_reads_back_equal_whatever_names_hold():
    assert parsed_cases(cases_text([CASE, CASE]), "file") == [CASE, CASE]


def test_thumbnails_keep_their_aspect_and_small_images_their_size():
    large = Image.open(io.BytesIO(thumbnail(np.zeros((900, 300, 3), np.uint8), 240)))
    small = Image.open(io.BytesIO(thumbnail(np.zeros((65, 65), np.uint8), 240)))
    assert (large.size, small.size, small.mode) == ((80, 240), (65, 65), "L")


@pytest.mark.parametrize(
    "damage",
    [
        lambda case: case.update(kind="<script>"),
        lambda case: case.update(title=3),
        lambda case: case.pop("unit"),
        lambda case: case["panels"][0].update(jpeg="PHN2Zz4="),  # <svg>
        lambda case: case["panels"][0].update(jpeg="no base64!"),
        lambda case: case["panels"][0].update(right="yes"),
        lambda case: case.update(panels=7),
    ],
)
def test_a_file_of_another_form_is_refused(damage):
    case = json.loads(cases_text([CASE]))[0]
    damage(case)
    with pytest.raises(DataError, match="not as a run leaves it"):
        parsed_cases(json.dumps([case]).encode(), "file")


def test_a_file_without_end_is_not_read_whole(tmp_path):
    (tmp_path / "pictures").mkdir()
    with (tmp_path / CASES).open("wb") as file:
        file.truncate(100 * MOST_BYTES)
    with pytest.raises(DataError, match="larger than"):
        stored_cases(str(tmp_path), {}, ())


def test_a_run_without_cases_has_none(tmp_path):
    assert stored_cases(str(tmp_path), {}, ()) == []
