"""The jobs of copy detection: the published flags, from images and model files to the published CSV files."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from image_models import torchscript_file, weight_file
from plain_copy_detection import described_sets, disc_figures

from raybench.cli.sscd_flags import copydays_arguments, disc_arguments

ROOT = Path(__file__).parents[2]
NETWORK = ("--backbone=CV_RESNET18", "--dims=32", "--size=32", "--preserve_aspect_ratio=true")
CODECS = "Flat;PCAW16,L2norm,Flat"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One network, as weights and as TorchScript."""
    folder = tmp_path_factory.mktemp("models")
    weights = weight_file(folder / "weights.classy.pt")
    return weights, torchscript_file(folder / "model.torchscript.pt", weights)


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def disc_flags(copies, model, out):
    return [
        "--disc_path",
        copies / "disc",
        "--output_path",
        out,
        "--model_state",
        model,
        f"--codecs={CODECS}",
        *NETWORK,
    ]


@pytest.mark.parametrize("model", ["s3://key:secret@bucket/model.pt", "no/such/model.pt"])
def test_a_model_that_cannot_be_had_is_one_line_and_shows_no_secret(model, copies, raybench, tmp_path):
    said = raybench("run", *disc_arguments([*map(str, disc_flags(copies, model, tmp_path)), "--ray=off"]))
    assert (said.code, len(said.errors)) == (2, 1)
    assert "secret" not in said.err


@pytest.mark.seconds
def test_weights_and_torchscript_give_one_table_which_a_plain_script_gives_too(copies, models, raybench, tmp_path):
    for number, model in enumerate(models):
        given = disc_arguments([*map(str, disc_flags(copies, model, tmp_path / str(number))), "--ray=off"])
        assert raybench("run", *given).code == 0
    tables = [rows_of(tmp_path / number / "disc_metrics.csv") for number in "01"]
    assert list(tables[0][0]) == ["codec", "score_norm", "uAP", "accuracy-at-1", "recall-at-p90"]
    for weights, script in zip(*tables, strict=True):
        assert (weights["codec"], weights["score_norm"]) == (script["codec"], script["score_norm"])
        assert figures(weights) == pytest.approx(figures(script), abs=1e-6)
    sets = described_sets(copies / "disc", models[1], 32)
    for row in tables[0][:2]:
        plain = disc_figures(copies / "disc", sets, row["codec"])
        # The plain script describes picture by picture: last bits differ, and on some CPUs two predictions swap places.
        assert figures(row) == pytest.approx(plain, abs=1e-4)


def figures(row):
    return [float(value) for value in list(row.values())[2:]]


def test_eight_devices_share_extraction_and_search(copies, models, raybench, local_ray, tmp_path):
    flags = [*map(str, disc_flags(copies, models[0], tmp_path)), "--gpus=8", "--score_norm=none", "--codecs=Flat"]
    assert raybench("run", *disc_arguments(flags)).code == 0
    for stage in ("describe-images", "search"):
        workers = [receipt["worker"] for receipt in receipts(tmp_path, stage)]
        assert len({worker["actor"] for worker in workers}) >= 8
        assert all("gpu" in worker["device"] for worker in workers)


def receipts(out, stage):
    files = sorted((out / "receipts").glob(f"*-{stage}.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_the_copydays_script_runs_by_itself_with_the_published_flags(copies, models, tmp_path):
    command = [
        *(sys.executable, ROOT / "jobs/copydays_eval.py", "--copydays_path", copies / "copydays"),
        *("--distractor_path", copies / "distractors", "--codec_train_path", copies / "training"),
        *("--output_path", tmp_path / "out", "--model_state", models[1], *NETWORK, f"--codecs={CODECS}"),
        *("--metadata=epoch 7", "--ray=off"),
    ]
    said = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    rows = rows_of(tmp_path / "out/copydays_metrics.csv")
    assert list(rows[0]) == ["codec", "strong_mAP", "overall_uAP", "metadata"]
    assert [row["codec"] for row in rows] == CODECS.split(";")


def test_the_flags_have_the_published_defaults():
    given = copydays_arguments(["--copydays_path=c", "--output_path=o", "--model_state=sscd:w.pt"])
    options = dict(zip(given[1::2], given[2::2], strict=True))
    assert (options["--codecs"], options["--preserve_aspect_ratio"], options["--size"]) == ("Flat", "false", "288")
    assert (options["--backbone"], options["--dims"], options["--descriptor"]) == ("TV_RESNET50", "512", "sscd:w.pt")
    assert (options["--data"], options["--out"], options["--k"]) == ("c", "o", "100")


def test_a_model_is_told_by_its_content_and_network_flags_go_with_weights_only(models):
    weights, script = (
        disc_arguments(["--disc_path=d", "--output_path=o", f"--model_state={model}"]) for model in models
    )
    assert f"sscd:{models[0]}" in weights and "--backbone" in weights
    assert f"torchscript:{models[1]}" in script and "--backbone" not in script


def test_weights_of_another_backbone_are_refused_before_any_compute(copies, models, raybench, tmp_path):
    flags = [*map(str, disc_flags(copies, models[0], tmp_path / "out")), "--ray=off", "--backbone=CV_RESNET50"]
    said = raybench("run", *disc_arguments(flags))
    assert said.code == 2
    assert "CV_RESNET18" in said.err
    assert not (tmp_path / "out").exists()


def test_other_booleans_than_true_and_false_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        disc_arguments(["--disc_path=d", "--output_path=o", "--preserve_aspect_ratio=maybe"])
    assert "expected true or false, found 'maybe'" in capsys.readouterr().err
