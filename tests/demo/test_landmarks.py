"""Demo data in the layout of Revisited Oxford and Paris: a truth that fits its images."""

import json

from PIL import Image

from raybench.demo.landmarks import DISTRACTORS, EASY, HARD, JUNK, OTHERS, PHOTOS, PLACE_PX, make_landmarks
from raybench.errors import ProblemList
from raybench.formats.revisited import read_revisited_truth


def test_every_place_has_easy_hard_and_junk_views_among_others(landmarks):
    file = landmarks / "landmarks/gnd_landmarks.json"
    truth = json.loads(file.read_text())
    assert read_revisited_truth(file.read_bytes(), "x", ProblemList()) is not None
    assert len(truth["qimlist"]) == len(PHOTOS)
    assert len(truth["imlist"]) == len(PHOTOS) * (EASY + HARD + JUNK) + OTHERS
    assert truth["imlist"] != sorted(truth["imlist"])
    counts = {tuple(len(entry[label]) for label in ("easy", "hard", "junk")) for entry in truth["gnd"]}
    assert counts == {(EASY, HARD, JUNK)}
    names = {path.stem for path in (landmarks / "landmarks/jpg").iterdir()}
    assert names == {*truth["imlist"], *truth["qimlist"]}


def test_a_query_is_more_than_its_box(landmarks):
    truth = json.loads((landmarks / "landmarks/gnd_landmarks.json").read_text())
    for name, entry in zip(truth["qimlist"], truth["gnd"], strict=True):
        picture = Image.open(landmarks / f"landmarks/jpg/{name}.jpg")
        assert picture.crop(tuple(entry["bbx"])).size == (PLACE_PX, PLACE_PX)
        assert picture.width > PLACE_PX < picture.height


def test_distractors_are_listed_with_their_folders(landmarks):
    names = (landmarks / "revisitop1m/revisitop1m.txt").read_text().splitlines()
    assert len(set(names)) == DISTRACTORS
    assert all((landmarks / "revisitop1m/jpg" / name).is_file() for name in names)


def test_the_same_set_is_made_every_time(landmarks, tmp_path):
    make_landmarks(tmp_path)
    for path in [path for path in landmarks.rglob("*") if path.is_file()]:
        assert path.read_bytes() == (tmp_path / path.relative_to(landmarks)).read_bytes()
