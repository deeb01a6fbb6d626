"""The worst mistakes of copy detection are drawn from what was matched and what was not."""

import io
import json

import numpy as np
from PIL import Image

from raybench.benchmarks.copies.sheets import PICTURE, Panel, match_sheet

INLINE = ("--ray", "off", "--progress", "none", "--codecs", "Flat", "--descriptor", "thumbnail")


def test_a_sheet_frames_right_ones_green_and_wrong_ones_red():
    image = np.full((50, 50, 3), 128, np.uint8)
    panels = [Panel("query", "a", image), Panel("true", "b", image, True), Panel("wrong", "c", image, False)]
    drawn = np.asarray(Image.open(io.BytesIO(match_sheet([panels]))).convert("RGB")).astype(int)
    frames = [drawn[12 + PICTURE[1] // 2, 11 + place * (PICTURE[0] + 12)] for place in range(3)]
    assert abs(frames[0] - frames[0].mean()).max() < 40
    assert frames[1][1] > frames[1][0] + 20
    assert frames[2][0] > frames[2][1] + 60


def test_disc_and_copydays_draw_their_mistakes_and_the_report_shows_them_again(copies, raybench, tmp_path):
    disc, days = tmp_path / "disc", tmp_path / "days"
    assert raybench("run", "disc2021", "--data", copies / "disc", "--out", disc, *INLINE).code == 0
    assert raybench("run", "copydays", "--data", copies / "copydays", "--out", days, *INLINE).code == 0
    for out, names in ((disc, ("false_alarms", "missed")), (days, ("missed",))):
        assert sorted(path.stem for path in (out / "pictures").iterdir()) == sorted(names)
        assert (out / "report.html").read_text().count("<img src='data:image/jpeg;base64,") == len(names)
    assert raybench("report", disc, days, "--out", tmp_path / "both.html").code == 0
    assert (tmp_path / "both.html").read_text().count("<img src='data:image/jpeg;base64,") == 3


def test_pictures_belong_to_the_run_and_go_with_it(copies, raybench, tmp_path):
    given = ("--data", copies / "disc", "--out", tmp_path, *INLINE)
    assert raybench("run", "disc2021", *given).code == 0
    files = json.loads((tmp_path / "manifest.json").read_text())["files"]
    assert {"pictures/false_alarms.jpg", "pictures/missed.jpg"} <= set(files)


def test_there_are_none_where_a_run_begins_with_vectors(copies, raybench, tmp_path):
    given = ("--data", copies / "disc", "--out", tmp_path / "a", *INLINE)
    assert raybench("run", "disc2021", *given, "--export-descriptors").code == 0
    truth = ("--ground-truth", copies / "disc/val_groundtruth_matches.csv", "--codecs", "Flat", "--ray", "off")
    assert raybench("run", "disc2021", "--features", tmp_path / "a/results", "--out", tmp_path / "b", *truth).code == 0
    assert not (tmp_path / "b/pictures").exists()
