"""Copydays: every golden figure through the command line, and what happens to images and wrong input."""

import csv
import json
import shutil

import h5py
import numpy as np
import pytest
import torch
from conftest import GOLDEN
from PIL import Image

from raybench.formats.copydays import BLOCKS

CASE = GOLDEN / "copydays"
DATA = CASE / "data"
SAID = json.loads((CASE / "expected.json").read_text())
CODECS = ";".join(SAID["expected"])
INLINE = ("--ray", "off", "--progress", "none")


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def run(raybench, out, *given):
    said = raybench("run", "copydays", "--out", out, *given)
    assert said.code == 0, said.err
    return said


def assert_golden(out):
    rows = {row["codec"]: row for row in rows_of(out / "copydays_metrics.csv")}
    assert list(rows) == list(SAID["expected"])
    blocks = {(row["codec"], row["block"]): float(row["mAP"]) for row in rows_of(out / "tables/blocks.csv")}
    for codec, expected in SAID["expected"].items():
        assert float(rows[codec]["strong_mAP"]) == pytest.approx(expected["strong_mAP"], abs=1e-9)
        assert float(rows[codec]["overall_uAP"]) == pytest.approx(expected["overall_uAP"], abs=2e-6)
        for block, value in expected["blocks"].items():
            assert blocks[codec, block] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("executor", ["inline", pytest.param("ray", marks=pytest.mark.ray)])
def test_golden_figures_from_vectors(executor, raybench, request, tmp_path):
    if executor == "ray":
        request.getfixturevalue("local_ray")
    given = INLINE if executor == "inline" else ("--progress", "none", "--device", "cpu", "--cpus", "2")
    run(raybench, tmp_path, "--features", DATA, "--codecs", CODECS, *given)
    assert_golden(tmp_path)


@pytest.mark.seconds
def test_the_number_of_reference_shards_changes_no_byte(raybench, tmp_path):
    for size in (400, 154, 62):  # of 307 originals and distractors: one shard, two, five
        given = ("--features", DATA, "--codecs", CODECS, "--shard-size", size)
        run(raybench, tmp_path / str(size), *given, *INLINE)
    for name in ("copydays_metrics.csv", "tables/blocks.csv"):
        assert len({(tmp_path / size / name).read_bytes() for size in ("400", "154", "62")}) == 1


def test_vectors_may_come_as_hdf5_under_the_names_of_the_challenge(raybench, tmp_path):
    vectors = tmp_path / "vectors"
    vectors.mkdir()
    for name, target in (("copydays", "copydays"), ("distractors", "distractors"), ("train", "training")):
        arrays = np.load(DATA / f"{name}.npz")
        with h5py.File(vectors / f"{target}.h5", "w") as file:
            file["vectors"], file["image_names"] = arrays["embeddings"], arrays["names"].astype("S")
    run(raybench, tmp_path / "out", "--features", vectors, "--codecs", CODECS, *INLINE)
    assert_golden(tmp_path / "out")


def test_from_images_a_block_of_untouched_copies_is_found_and_strong_ones_are_harder(copies, raybench, tmp_path):
    said = run(raybench, tmp_path, *pictures(copies), "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    blocks = {row["block"]: float(row["mAP"]) for row in rows_of(tmp_path / "tables/blocks.csv")}
    assert blocks["original"] == blocks["jpegqual/75"] == 1.0
    assert 0 < blocks["strong"] < blocks["crops/10"]
    assert "strong_mAP" in said.out


def test_published_rows_stand_beside_and_say_why_they_do_not_compare(copies, raybench, tmp_path):
    run(raybench, tmp_path, *pictures(copies), "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    verdicts = {row["comparable"] for row in rows_of(tmp_path / "tables/published.csv")}
    assert verdicts == {"no, because it is for 3,212 images and 10,000 distractors; this run has 410 and 160"}


def test_without_training_the_codecs_that_need_it_are_left_out_with_a_note(copies, raybench, tmp_path):
    given = ("--data", copies / "copydays", "--distractors", copies / "distractors", "--descriptor", "thumbnail")
    said = run(raybench, tmp_path, *given, *INLINE)
    assert [row["codec"] for row in rows_of(tmp_path / "copydays_metrics.csv")] == ["Flat"]
    assert "No training set" in said.out


def test_a_codec_that_fails_is_a_row_without_figures_and_the_others_go_on(copies, raybench, tmp_path):
    said = run(raybench, tmp_path, *pictures(copies), "--descriptor", "thumbnail", *INLINE)
    flat, white = rows_of(tmp_path / "copydays_metrics.csv")
    assert float(flat["strong_mAP"]) > 0
    assert (white["codec"], white["strong_mAP"]) == ("PCAW704,L2norm,Flat", "")
    assert "WARNING: codec 'PCAW704,L2norm,Flat'" in said.out
    assert said.err.splitlines()[-1].startswith("WARNING: codec 'PCAW704,L2norm,Flat': PCA to dimension 704 needs 705")
    assert said.err.splitlines()[-1].endswith("such as --codecs 'PCAW94,L2norm,Flat'.")


def test_training_images_that_are_distractors_or_originals_too_are_counted(copies, raybench, tmp_path):
    for folder, number in (("distractors", 3), ("copydays/original", 2)):
        (tmp_path / "training").mkdir(exist_ok=True)
        for picture in sorted((copies / folder).iterdir())[:number]:
            shutil.copy(picture, tmp_path / "training")
    sets = ("--distractors", copies / "distractors", "--training", tmp_path / "training")
    given = ("--data", copies / "copydays", *sets, "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    said = run(raybench, tmp_path / "out", *given)
    assert "LEAKAGE: 2 copydays have a descriptor that a training image has, too." in said.out
    assert "LEAKAGE: 3 distractors have a descriptor that a training image has, too." in said.out


def test_metadata_becomes_a_last_column(raybench, tmp_path):
    run(raybench, tmp_path, "--features", DATA, "--codecs", "Flat", "--metadata", "epoch 7", *INLINE)
    (row,) = rows_of(tmp_path / "copydays_metrics.csv")
    assert list(row) == ["codec", "strong_mAP", "overall_uAP", "metadata"]
    assert row["metadata"] == "epoch 7"


def test_a_limited_run_takes_the_first_originals_and_says_so(copies, raybench, tmp_path):
    given = (*pictures(copies), "--descriptor", "thumbnail", "--codecs", "Flat", "--limit", 5)
    said = run(raybench, tmp_path, *given, *INLINE)
    assert "LIMITED: the first 5 originals" in said.out
    skipped = json.loads((tmp_path / "manifest.json").read_text())["skipped"]
    assert skipped == []
    assert float(rows_of(tmp_path / "copydays_metrics.csv")[0]["overall_uAP"]) > 0.5


def test_an_image_that_cannot_be_decoded_is_named_or_skipped_and_counted(copies, raybench, tmp_path):
    data = tmp_path / "copydays"
    shutil.copytree(copies / "copydays", data)
    broken = data / "jpegqual/50/200300.jpg"
    broken.write_bytes(broken.read_bytes()[:200])
    given = ("--data", data, "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    said = raybench("run", "copydays", *given, "--out", tmp_path / "fails")
    assert said.code == 2
    assert "jpegqual/50/200300.jpg" in said.err
    said = run(raybench, tmp_path / "skips", *given, "--on-bad-input", "skip")
    assert "SKIPPED: 1 images could not be read; 1 queries" in said.out
    manifest = json.loads((tmp_path / "skips/manifest.json").read_text())
    assert manifest["skipped"] == ["copydays: jpegqual/50/200300.jpg: can't be read"]


def pictures(copies):
    return (
        *("--data", copies / "copydays", "--distractors", copies / "distractors"),
        *("--training", copies / "training"),
    )


def test_originals_of_which_none_can_be_read_are_an_error_even_where_bad_input_is_skipped(copies, raybench, tmp_path):
    shutil.copytree(copies / "copydays", tmp_path / "copydays")
    for picture in (tmp_path / "copydays/original").iterdir():
        picture.write_bytes(b"no image")
    given = ("--data", tmp_path / "copydays", "--descriptor", "thumbnail", "--on-bad-input", "skip")
    said = raybench("run", "copydays", *given, "--out", tmp_path / "out", *INLINE)
    assert (said.code, len(said.errors)) == (2, 1)
    assert "original" in said.errors[0]


def test_a_block_of_another_size_is_named(copies, raybench, tmp_path):
    data = tmp_path / "copydays"
    shutil.copytree(copies / "copydays", data)
    (data / "crops/30/200000.jpg").unlink()
    said = raybench("check", "copydays", "--data", data, "--descriptor", "thumbnail")
    assert said.code == 2
    assert said.errors == [
        f"{data}: block crops/30 has 19 images, original has 20; they must be as many, since images are paired by "
        "position in name order"
    ]


def test_all_problems_are_listed_at_once(copies, raybench, tmp_path):
    data = tmp_path / "copydays"
    shutil.copytree(copies / "copydays/original", data / "original")
    shutil.copytree(copies / "copydays/original", data / "cropz/10")
    Image.new("RGB", (8, 8)).save(data / "original/extra.png")
    given = ("--data", data, "--distractors", tmp_path / "none", "--codecs", "IVF4,Flat;Flat,PQ8")
    said = raybench("check", "copydays", *given, "--descriptor", "thumnail")
    assert said.code == 2
    wanted = ("did you mean thumbnail", "unknown block 'cropz/10'", f"{tmp_path}/none", "'IVF4'", "'PQ8'")
    for words in wanted:
        assert sum(words in line for line in said.errors) == 1, (words, said.errors)


def test_distractors_beside_vectors_are_refused_and_not_left_out_silently(raybench):
    said = raybench("check", "copydays", "--features", CASE / "data", "--distractors", "folder")
    assert said.code == 2
    assert said.errors == ["copydays: --distractors: would do nothing with --features; leave it out"]


def test_one_way_in_must_be_given(raybench):
    said = raybench("check", "copydays", "--data", DATA)
    assert said.code == 2
    assert said.errors == ["copydays: give one of --descriptor, --features; got none of them"]


def test_feature_files_of_the_sscd_tools_count_through_the_published_order_of_blocks(raybench, tmp_path):
    """As `copydays_eval` leaves them: numbers for names, shuffled, some twice."""
    root, vectors = tmp_path / "tree", tmp_path / "vectors"
    arrays = np.load(DATA / "copydays.npz")
    rows = dict(zip(arrays["names"].tolist(), arrays["embeddings"], strict=True))
    for name in rows:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    ordered = [name for block in BLOCKS for name in sorted(rows) if name.rpartition("/")[0] == block]
    numbers = np.random.default_rng(0).permutation(len(ordered))
    numbers = np.concatenate([numbers, numbers[:3]])
    vectors.mkdir()
    embeddings = torch.tensor(np.stack([rows[ordered[number]] for number in numbers]))
    torch.save({"embeddings": embeddings, "instance_id": torch.tensor(numbers)}, vectors / "copydays.pt")
    for name, target in (("distractors", "distractors"), ("train", "codec_train")):
        found = torch.tensor(np.load(DATA / f"{name}.npz")["embeddings"])
        torch.save({"embeddings": found, "instance_id": torch.arange(len(found))}, vectors / f"{target}.pt")
    said = raybench("check", "copydays", "--features", vectors)
    assert said.code == 2 and "give --data too" in said.err
    run(raybench, tmp_path / "out", "--features", vectors, "--data", root, "--codecs", CODECS, *INLINE)
    assert_golden(tmp_path / "out")


def test_exported_descriptors_read_back_as_features_to_the_same_table(copies, raybench, tmp_path):
    codecs = ("--codecs", "Flat;PCA16,Flat")
    given = (*pictures(copies), "--descriptor", "thumbnail", *codecs, "--export-descriptors")
    run(raybench, tmp_path / "a", *given, *INLINE)
    run(raybench, tmp_path / "b", "--features", tmp_path / "a/results", *codecs, *INLINE)
    for name in ("copydays_metrics.csv", "tables/blocks.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
