"""The worst mistakes of copy detection are drawn from what was matched and what was not."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.images.mistakes import MOST_CASES
from raybench.benchmarks.images.sheets import PICTURE, Panel, match_sheet
from raybench.errors import DataError
from raybench.runs.finished import finished_manifest, read_tables

HEADER = "query_id,reference_id,score"
INLINE = ("--ray", "off", "--progress", "none", "--codecs", "Flat", "--descriptor", "thumbnail")


def test_a_sheet_frames_right_ones_green_and_wrong_ones_red():
    image = np.full((50, 50, 3), 128, np.uint8)
    panels = [Panel("query", "a", image), Panel("true", "b", image, True), Panel("wrong", "c", image, False)]
    drawn = np.asarray(Image.open(io.BytesIO(match_sheet([panels]))).convert("RGB")).astype(int)
    frames = [drawn[12 + PICTURE[1] // 2, 11 + place * (PICTURE[0] + 12)] for place in range(3)]
    assert abs(frames[0] - frames[0].mean()).max() < 40
    assert frames[1][1] > frames[1][0] + 20
    assert frames[2][0] > frames[2][1] + 60


@pytest.fixture(scope="module")
def runs(copies, tmp_path_factory):
    """A run of each benchmark, whose data may be moved away: the folders of both, and of the images."""
    from raybench.cli.commands import exit_code

    out, data = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("images")
    for name in ("disc", "copydays", "distractors"):
        shutil.copytree(copies / name, data / name)
    beside = {"disc2021": (), "copydays": ("--distractors", data / "distractors")}
    for name, folder in (("disc2021", "disc"), ("copydays", "copydays")):
        given = ("run", name, "--data", data / folder, "--out", out / name, *beside[name], *INLINE)
        assert exit_code([str(argument) for argument in given]) == 0
    return out, data


def cases_of(out):
    return stored_cases(str(out), {}, ())


def asked(out, *units):
    """The cases of these queries, as a page asks for them."""
    manifest = finished_manifest(str(out))
    hook = BENCHMARKS[manifest.benchmark].open().cases
    return hook(str(out), manifest.arguments, read_tables(str(out), manifest), units)


def predictions(out):
    with (out / "results/predictions.csv").open() as file:
        return list(csv.DictReader(file))


def test_sheets_and_cases_are_drawn_and_both_benchmarks_offer_them_to_the_report(runs):
    out, _ = runs
    for name, kinds in (("disc2021", {"false alarm", "missed"}), ("copydays", {"missed"})):
        files = {kind.replace(" ", "_").replace("alarm", "alarms") + ".jpg" for kind in kinds}
        assert {path.name for path in (out / name / "pictures").iterdir()} == {"cases.json", *files}
        cases = BENCHMARKS[name].open().gallery(str(out / name), {}, ())
        assert {case.kind for case in cases} == kinds
        assert len({(case.kind, case.unit) for case in cases}) == len(cases), "a query once among those of a kind"
        assert all(panel.jpeg and panel.name for case in cases for panel in case.panels)
        assert {case.row for case in cases} == {"Flat | None" if name == "disc2021" else "Flat"}


def test_a_false_alarm_shows_the_wrong_pair_with_its_score_and_place_in_the_pool(runs):
    out, data = runs
    true = {tuple(line.split(",")) for line in (data / "disc/val_groundtruth_matches.csv").read_text().split()}
    rows = sorted(predictions(out / "disc2021"), key=lambda row: -float(row["score"]))
    place, worst = next(
        (number, row) for number, row in enumerate(rows, 1) if (row["query_id"], row["reference_id"]) not in true
    )
    case = cases_of(out / "disc2021")[0]
    assert (case.kind, case.unit, case.panels[1].name) == ("false alarm", worst["query_id"], worst["reference_id"])
    assert f"score {float(worst['score']):.4g}, number {place} of all {len(rows)} candidates" in case.caption
    assert "threshold for precision 90%" in case.caption
    assert [panel.right for panel in case.panels[:2]] == [None, False]


def test_a_query_whose_images_are_among_the_false_alarms_is_not_shown_again_as_missed(runs):
    out, _ = runs
    shown = [
        (case.unit, *sorted((panel.name, panel.right is True) for panel in case.panels))
        for case in cases_of(out / "disc2021")
    ]
    assert len(set(shown)) == len(shown)
    assert sum(case.kind == "missed" for case in cases_of(out / "disc2021")) == MOST_CASES


def test_queries_are_drawn_by_name_from_what_was_predicted(runs):
    out, data = runs
    true = dict(
        line.split(",") for line in (data / "disc/val_groundtruth_matches.csv").read_text().split() if line[-1] != ","
    )
    first = {row["query_id"]: row["reference_id"] for row in reversed(predictions(out / "disc2021"))}
    right = next(query for query, reference in first.items() if true.get(query) == reference)
    wrong = next(query for query, reference in first.items() if query in true and true[query] != reference)
    alone = next(query for query in first if query not in true)
    found = asked(out / "disc2021", wrong, "unknown", alone, right)
    assert [(case.unit, case.kind) for case in found] == [(wrong, "missed"), (alone, "false alarm"), (right, "right")]
    assert [panel.name for panel in found[0].panels] == [wrong, first[wrong], true[wrong]]
    assert [panel.right for panel in found[0].panels] == [None, False, True]
    assert all(panel.jpeg for case in found for panel in case.panels)


def test_images_in_folders_below_are_found_by_name(copies, raybench, tmp_path):
    data = shutil.copytree(copies / "disc", tmp_path / "disc")
    for folder in ("val_query", "val_ref"):
        (data / folder / "part").mkdir()
        for image in [path for path in (data / folder).iterdir() if path.is_file()][::2]:
            image.rename(data / folder / "part" / image.name)
    assert raybench("run", "disc2021", "--data", data, "--out", tmp_path / "out", *INLINE).code == 0
    found = asked(tmp_path / "out", *(f"Q0000{number}" for number in range(8)))
    assert len(found) == 8 and all(panel.jpeg for case in found for panel in case.panels)


def test_copies_are_drawn_by_name_with_originals_and_distractors(runs):
    out, _ = runs
    rows = predictions(out / "copydays")
    fooled = next(row for row in rows if row["reference_id"].startswith("D"))["query_id"]
    first = next(row["reference_id"] for row in rows if row["query_id"] == "original/200000.jpg")
    right, other = asked(out / "copydays", "original/200000.jpg", fooled)
    assert (right.kind, right.panels[1].name, first) == ("right", "original/200000.jpg", "original/200000.jpg")
    assert all(panel.jpeg for panel in other.panels)


def test_names_in_predictions_that_lead_elsewhere_are_not_followed(runs, tmp_path):
    out, data = runs
    shutil.copytree(out / "disc2021", tmp_path / "run")
    (data / "secret.jpg").write_bytes(next((data / "disc/val_query").iterdir()).read_bytes())
    for name in ("../../secret", "../../secret.jpg", str(data / "secret.jpg")):
        (tmp_path / "run/results/predictions.csv").write_text(f"{HEADER}\nQ00000,{name},1.0\n")
        (case,) = asked(tmp_path / "run", "Q00000")
        assert case.panels[0].jpeg and not case.panels[1].jpeg
    (tmp_path / "run/results/predictions.csv").write_text(f"{HEADER}\nQ00000,R000000,high\n")
    with pytest.raises(DataError, match="not as a run leaves it"):
        asked(tmp_path / "run", "Q00000")


def test_images_that_are_gone_or_broken_leave_an_empty_frame_with_words(copies, raybench, tmp_path):
    data = shutil.copytree(copies / "disc", tmp_path / "disc")
    images = sorted((data / "val_query").iterdir())
    for image in images[::2]:
        image.write_bytes(b"no picture")
    given = ("--data", data, "--out", tmp_path / "out", "--on-bad-input", "skip", *INLINE)
    assert raybench("run", "disc2021", *given).code == 0
    for image in images:
        image.unlink()
    for reference in (data / "val_ref").iterdir():
        reference.write_bytes(b"")
    assert asked(tmp_path / "out", *(image.stem for image in images)) == []
    assert all(case.panels[0].jpeg for case in cases_of(tmp_path / "out")), "drawn while the data was there"
    images[1].write_bytes(next((copies / "disc/val_query").iterdir()).read_bytes())
    (case,) = asked(tmp_path / "out", images[1].stem)
    assert [panel.label.endswith("the image can't be read") for panel in case.panels[:2]] == [False, True]


def test_pictures_belong_to_the_run_and_go_with_it(copies, raybench, tmp_path):
    given = ("--data", copies / "disc", "--out", tmp_path, *INLINE)
    assert raybench("run", "disc2021", *given).code == 0
    files = json.loads((tmp_path / "manifest.json").read_text())["files"]
    assert {"pictures/false_alarms.jpg", "pictures/missed.jpg", "pictures/cases.json"} <= set(files)


def test_there_are_none_where_a_run_begins_with_vectors(copies, raybench, tmp_path):
    given = ("--data", copies / "disc", "--out", tmp_path / "a", *INLINE)
    assert raybench("run", "disc2021", *given, "--export-descriptors").code == 0
    truth = ("--ground-truth", copies / "disc/val_groundtruth_matches.csv", "--codecs", "Flat", "--ray", "off")
    assert raybench("run", "disc2021", "--features", tmp_path / "a/results", "--out", tmp_path / "b", *truth).code == 0
    assert not (tmp_path / "b/pictures").exists()


@pytest.mark.slow
def test_cases_are_kept_on_and_drawn_from_object_storage(copies, raybench, s3):
    bucket = s3.bucket("cases")
    s3.upload(copies / "disc", f"{bucket}/disc")
    assert raybench("run", "disc2021", "--data", f"{bucket}/disc", "--out", f"{bucket}/out", *INLINE).code == 0
    stored, named = cases_of(f"{bucket}/out"), asked(f"{bucket}/out", "Q00006", "Q00000")
    assert (len(stored) > 8, len(named)) == (True, 2)
    assert all(panel.jpeg for case in (*stored, *named) for panel in case.panels)
