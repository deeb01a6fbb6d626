"""DISC2021: every golden figure through the command line, from vectors and from predictions, and wrong input."""

import csv
import json
import shutil

import h5py
import numpy as np
import pyarrow.parquet
import pytest
import torch
from conftest import GOLDEN
from PIL import Image

from raybench import storage

CASE = GOLDEN / "disc"
SMALL, EXACT = CASE / "data/small", CASE / "data/exact"
SAID = json.loads((CASE / "expected.json").read_text())
NORMS = "1.0[0,2];0.5[1,3]"
INLINE = ("--ray", "off", "--progress", "none")


@pytest.fixture(scope="module")
def copies(copies):
    return copies / "disc"


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def run(raybench, out, *given):
    said = raybench("run", "disc2021", "--out", out, *given)
    assert said.code == 0, said.err
    return said


def tolerance(name, codec, figure):
    if name == "exact":
        return SAID["tolerance"]["exact"]
    special = SAID["tolerance"].get(f"small, codec {codec}", SAID["tolerance"]["small"])
    return special[figure]


def asked(name):
    """Codecs and score norms of a golden set, in their order."""
    keys = [key.split("|") for key in SAID[f"expected_{name}"]]
    return list(dict.fromkeys(key[0] for key in keys)), list(dict.fromkeys(key[1] for key in keys if key[1] != "None"))


def assert_golden(name, out):
    rows = {
        (row["codec"], row["score_norm"], row["candidates"]): row for row in rows_of(out / "tables/disc_variants.csv")
    }
    expected = SAID[f"expected_{name}"]
    assert {"|".join(key) for key in rows} == set(expected)
    for key, figures in expected.items():
        codec, norm, kind = key.split("|")
        for figure, value in figures.items():
            found = float(rows[codec, norm, kind][figure])
            assert found == pytest.approx(value, abs=tolerance(name, codec, figure)), (key, figure)


@pytest.mark.parametrize("name", ["small", "exact"])
@pytest.mark.parametrize("executor", ["inline", pytest.param("ray", marks=pytest.mark.ray)])
def test_golden_figures_from_vectors(executor, name, raybench, request, tmp_path):
    if executor == "ray":
        request.getfixturevalue("local_ray")
    codecs, norms = asked(name)
    how = INLINE if executor == "inline" else ("--progress", "none", "--device", "cpu", "--cpus", "2")
    given = ("--codecs", ";".join(codecs), "--score-norm", ";".join(norms))
    run(raybench, tmp_path, "--features", CASE / "data" / name, *given, *how)
    assert_golden(name, tmp_path)
    main = [(row["score_norm"], row["codec"]) for row in rows_of(tmp_path / "disc_metrics.csv")]
    assert main == [(norm, codec) for norm in ("None", *norms) for codec in codecs]


@pytest.mark.seconds
def test_the_number_of_reference_shards_changes_no_byte(raybench, tmp_path):
    codecs, norms = asked("small")
    for size in (600, 300, 120):  # of 600 references: one shard, two, five
        given = ("--codecs", ";".join(codecs), "--score-norm", ";".join(norms), "--shard-size", size)
        run(raybench, tmp_path / str(size), "--features", SMALL, *given, *INLINE)
    for name in ("disc_metrics.csv", "tables/disc_variants.csv", "results/predictions.csv"):
        assert len({(tmp_path / size / name).read_bytes() for size in ("600", "300", "120")}) == 1


def test_the_published_defaults_are_used_where_nothing_is_asked(raybench, tmp_path):
    run(raybench, tmp_path, "--features", SMALL, *INLINE)
    rows = [(row["codec"], row["score_norm"]) for row in rows_of(tmp_path / "disc_metrics.csv")]
    white = "PCAW24,L2norm,Flat"
    assert rows == [("Flat", "None"), (white, "None"), ("Flat", "1.00[0,2]"), (white, "1.00[0,2]")]
    run(raybench, tmp_path / "exact", "--features", EXACT, "--score-norm", "none", *INLINE)
    rows = [row["codec"] for row in rows_of(tmp_path / "exact/disc_metrics.csv")]
    assert rows == ["Flat", "L2norm,Flat", "PCAW12,L2norm,Flat", "L2norm,PCAW12,Flat"]


def test_global_candidates_are_the_main_table_where_asked_for(raybench, tmp_path):
    given = ("--features", SMALL, "--codecs", "Flat", "--score-norm", "none", *INLINE)
    run(raybench, tmp_path / "knn", *given)
    run(raybench, tmp_path / "global", *given, "--global-candidates")
    expected = SAID["expected_small"]
    for kind in ("knn", "global"):
        (row,) = rows_of(tmp_path / kind / "disc_metrics.csv")
        assert float(row["uAP"]) == pytest.approx(expected[f"Flat|None|{kind}"]["uAP"], abs=1e-6)


def test_golden_figures_from_predictions(raybench, tmp_path):
    run(raybench, tmp_path, "--results", SMALL / "predictions.csv", *INLINE)
    (row,) = rows_of(tmp_path / "disc_metrics.csv")
    assert (row["codec"], row["score_norm"]) == ("None", "None")
    expected = SAID["expected_predictions"]
    (variant,) = rows_of(tmp_path / "tables/disc_variants.csv")
    for name, golden in (
        ("uAP", "average_precision"),
        ("accuracy-at-1", "recall_at_rank1"),
        ("recall-at-p90", "recall_at_p90"),
        ("recall_at_10", "recall_at_rank10"),
        ("threshold_at_p90", "threshold_at_p90"),
    ):
        assert float(variant[name]) == pytest.approx(expected[golden], abs=1e-9)
    assert [row[name] for name in ("uAP", "recall-at-p90")] == [variant[name] for name in ("uAP", "recall-at-p90")]


def test_written_predictions_read_back_to_the_same_figures(raybench, tmp_path):
    run(raybench, tmp_path / "a", "--features", SMALL, "--codecs", "Flat", *INLINE)
    truth = ("--ground-truth", SMALL / "val_groundtruth_matches.csv")
    for norm, slug in (("None", "Flat_None_knn"), ("1.00[0,2]", "Flat_1.00-0-2_knn")):
        out = tmp_path / slug
        run(raybench, out, "--results", tmp_path / f"a/results/{slug}/predictions.csv", *truth, *INLINE)
        first = next(row for row in rows_of(tmp_path / "a/disc_metrics.csv") if row["score_norm"] == norm)
        (again,) = rows_of(out / "disc_metrics.csv")
        assert [again[name] for name in list(again)[2:]] == [first[name] for name in list(first)[2:]]
    plain, named = (tmp_path / "a/results" / name for name in ("predictions.csv", "Flat_None_knn/predictions.csv"))
    assert plain.read_bytes() == named.read_bytes()


def test_norms_that_differ_little_or_in_sign_have_rows_and_files_of_their_own(raybench, tmp_path):
    run(raybench, tmp_path, "--features", SMALL, "--codecs", "Flat", "--score-norm", "1.0[0,2];1.1[0,2]", *INLINE)
    alone = rows_of(tmp_path / "disc_metrics.csv")
    norms = ("--score-norm", "1.0[0,2];1.001[0,2];-1.0[0,2];1.1[0,2]", "--overwrite")
    run(raybench, tmp_path, "--features", SMALL, "--codecs", "Flat", *norms, *INLINE)
    rows = {row["score_norm"]: row for row in rows_of(tmp_path / "disc_metrics.csv")}
    assert list(rows) == ["None", "1.00[0,2]", "1.001[0,2]", "-1.00[0,2]", "1.10[0,2]"]
    assert [rows[row["score_norm"]] for row in alone] == alone
    assert len(list((tmp_path / "curves").iterdir())) == 2 * len(rows)
    assert len(list((tmp_path / "results").glob("*/predictions.csv"))) == len(rows)


def test_curves_end_at_the_recall_of_all_found_pairs(raybench, tmp_path):
    run(raybench, tmp_path, "--features", SMALL, "--codecs", "Flat", "--score-norm", "none", *INLINE)
    curve = pyarrow.parquet.read_table(tmp_path / "curves/Flat_None_knn.parquet").to_pydict()
    assert curve["recall"] == sorted(curve["recall"])
    assert all(np.diff(curve["score"]) <= 0)


def test_from_images_copies_are_found_better_than_by_chance(copies, raybench, tmp_path):
    given = ("--data", copies, "--descriptor", "thumbnail", "--codecs", "Flat;PCAW32,L2norm,Flat")
    run(raybench, tmp_path, *given, *INLINE)
    rows = rows_of(tmp_path / "disc_metrics.csv")
    assert [row["codec"] for row in rows] == ["Flat", "PCAW32,L2norm,Flat"] * 2
    assert float(rows[0]["accuracy-at-1"]) > 0.2


def test_bits_and_signs_of_pdq_give_the_same_table(copies, raybench, tmp_path):
    pytest.importorskip("pdqhash")
    for name in ("pdq", "pdq-float"):
        given = ("--data", copies, "--descriptor", name, "--codecs", "Flat")
        run(raybench, tmp_path / name, *given, *INLINE)
    tables = [(tmp_path / name / "disc_metrics.csv").read_bytes() for name in ("pdq", "pdq-float")]
    assert tables[0] == tables[1]


def test_folders_may_be_named_one_by_one(copies, raybench, tmp_path):
    renamed = tmp_path / "elsewhere"
    shutil.copytree(copies / "val_query", renamed / "q")
    shutil.copytree(copies / "val_ref", renamed / "r")
    given = ("--queries", renamed / "q", "--references", renamed / "r", "--descriptor", "thumbnail")
    truth = ("--ground-truth", copies / "val_groundtruth_matches.csv")
    run(raybench, tmp_path / "named", *given, *truth, *INLINE)
    run(raybench, tmp_path / "laid", "--data", copies, "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    named, laid = rows_of(tmp_path / "named/disc_metrics.csv"), rows_of(tmp_path / "laid/disc_metrics.csv")
    assert named == laid[:1]


@pytest.mark.parametrize("suffix", [".PNG", ".jp2", ".TIFF", ".webp"])
def test_images_of_every_kind_are_known_by_their_stems(suffix, copies, raybench, tmp_path):
    shutil.copytree(copies, tmp_path / "disc")
    true = next(row["reference_id"] for row in rows_of(copies / "val_groundtruth_matches.csv") if row["reference_id"])
    picture = tmp_path / f"disc/val_ref/{true}.jpg"
    Image.open(picture).save(picture.with_suffix(suffix))
    picture.unlink()
    assert raybench("check", "disc2021", "--data", tmp_path / "disc", "--descriptor", "thumbnail").code == 0


def test_a_limited_run_takes_the_first_queries_and_says_so(copies, raybench, tmp_path):
    given = ("--data", copies, "--descriptor", "thumbnail", "--codecs", "Flat", "--score-norm", "none", "--limit", 12)
    said = run(raybench, tmp_path, *given, *INLINE)
    assert "LIMITED: the first 12 queries" in said.out
    predicted = {row["query_id"] for row in rows_of(tmp_path / "results/predictions.csv")}
    assert len(predicted) == 12


def test_a_run_limited_to_one_query_keeps_the_training_images_that_norms_need(raybench, tmp_path):
    said = run(raybench, tmp_path, "--features", SMALL, "--limit", "1", "--codecs", "Flat", *INLINE)
    assert [row["uAP"] for row in rows_of(tmp_path / "disc_metrics.csv")] == ["1.0", "1.0"]
    assert "LIMITED: the first 1 queries" in said.out


def test_training_images_that_are_references_too_are_counted(copies, raybench, tmp_path):
    data = tmp_path / "disc"
    shutil.copytree(copies, data)
    for name in ("R000003", "R000007"):
        shutil.copy(data / f"val_ref/{name}.jpg", data / f"training/{name}.jpg")
    shutil.copy(data / "val_ref/R000011.jpg", data / "training/T999999.jpg")
    said = run(raybench, tmp_path / "out", "--data", data, "--descriptor", "thumbnail", "--codecs", "Flat", *INLINE)
    assert "LEAKAGE: 2 names stand in training and in references (R000003, R000007)" in said.out
    assert "LEAKAGE: 3 references have a descriptor that a training image has, too" in said.out


def test_broken_images_of_all_sets_are_said_at_once_and_nothing_is_described(copies, raybench, tmp_path):
    shutil.copytree(copies, tmp_path / "disc")
    broken = ["val_query/Q00002.jpg", "val_ref/R000003.jpg", "training/T000004.jpg"]
    for name in broken:
        (tmp_path / "disc" / name).write_bytes(b"no image")
    given = ("--data", tmp_path / "disc", "--descriptor", "thumbnail", "--out", tmp_path / "out")
    said = raybench("run", "disc2021", *given, *INLINE)
    assert said.code == 2
    assert [name for name, line in zip(broken, said.errors, strict=True) if name in line] == broken
    assert not list((tmp_path / "out").glob("receipts/*describe*"))


def test_a_skipped_image_is_counted_with_its_true_pairs(copies, raybench, tmp_path):
    data = tmp_path / "disc"
    shutil.copytree(copies, data)
    truth = rows_of(data / "val_groundtruth_matches.csv")
    matched = next(row for row in truth if row["reference_id"])
    (data / f"val_query/{matched['query_id']}.jpg").write_bytes(b"no picture")
    given = ("--data", data, "--descriptor", "thumbnail", "--codecs", "Flat", "--score-norm", "none", *INLINE)
    said = raybench("run", "disc2021", *given, "--out", tmp_path / "fails")
    assert said.code == 2 and f"{matched['query_id']}.jpg" in said.err
    said = run(raybench, tmp_path / "out", *given, "--on-bad-input", "skip")
    assert "SKIPPED: 1 images could not be read; 1 true pairs are left out with them" in said.out


@pytest.fixture
def vectors(tmp_path):
    folder = tmp_path / "vectors"
    shutil.copytree(SMALL, folder)
    return folder


def checked(raybench, *given):
    said = raybench("check", "disc2021", *given)
    assert said.code == 2, said.out
    return said.errors


def test_ground_truth_that_names_unknown_images_is_refused_with_its_lines(vectors, raybench):
    truth = vectors / "val_groundtruth_matches.csv"
    matched = next(row["query_id"] for row in rows_of(truth) if row["reference_id"])
    truth.write_text(truth.read_text() + f"Q99999,R000001\n{matched},R999999\n")
    errors = checked(raybench, "--features", vectors)
    assert len(errors) == 2
    assert "query 'Q99999' is not among the queries" in errors[0]
    assert "reference 'R999999' is not among the references" in errors[1]


def test_the_same_prediction_twice_is_refused(vectors, raybench):
    predictions = vectors / "predictions.csv"
    lines = predictions.read_text().splitlines()
    predictions.write_text("\n".join([*lines, lines[-1]]) + "\n")
    (error,) = checked(raybench, "--results", predictions)
    assert f"lines {len(lines)} and {len(lines) + 1}: the same prediction twice" in error


def test_vectors_of_another_dimension_or_with_nan_are_refused_all_at_once(vectors, raybench):
    arrays = np.load(vectors / "refs.npz")
    np.savez(vectors / "refs.npz", names=arrays["names"], embeddings=arrays["embeddings"][:, :20])
    arrays = np.load(vectors / "queries.npz")
    broken = arrays["embeddings"].copy()
    broken[7, 3] = np.nan
    np.savez(vectors / "queries.npz", names=arrays["names"], embeddings=broken)
    errors = checked(raybench, "--features", vectors)
    assert any("row 7" in line and "NaN" in line for line in errors)
    assert any("dimension" in line for line in errors)


def test_names_that_come_twice_are_refused(vectors, raybench):
    arrays = np.load(vectors / "refs.npz")
    names = arrays["names"].copy()
    names[5] = names[9]
    np.savez(vectors / "refs.npz", names=names, embeddings=arrays["embeddings"])
    errors = checked(raybench, "--features", vectors)
    assert any("names must differ" in line for line in errors)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--codecs", "PQ8"), "must end in Flat"),
        (("--codecs", "PCAQ12,Flat"), "'PCAQ12' can't stand before Flat"),
        (("--codecs", "PCAW99,L2norm,Flat"), "dimension 99"),
        (("--score-norm", "1.0[0,900]"), "needs 901 training vectors, there are 300"),
        (("--score-norm", "x[0,2]"), "expected weight[first,last]"),
        (("--k", "0"), "expected at least 1"),
        (("--backbone", "CV_RESNET50"), "for --descriptor sscd:URI only"),
    ],
)
def test_a_wrong_option_is_one_clear_line(option, words, vectors, raybench):
    (error,) = checked(raybench, "--features", vectors, *option)
    assert words in error


@pytest.mark.parametrize(
    ("way", "idle"),
    [
        ("--features", ("--queries", "x", "--training", "x", "--exif-rotate")),
        ("--results", ("--codecs", "Flat", "--score-norm", "none", "--k", "3", "--limit", "5")),
    ],
)
def test_options_that_would_do_nothing_are_refused(way, idle, vectors, raybench):
    (error,) = checked(raybench, way, vectors, *idle)
    assert f"would do nothing with {way}" in error
    assert all(option in error for option in idle if option.startswith("--"))


def test_training_smaller_than_the_codec_needs_is_refused(vectors, raybench):
    arrays = np.load(vectors / "train.npz")
    np.savez(vectors / "train.npz", names=arrays["names"][:10], embeddings=arrays["embeddings"][:10])
    (error,) = checked(raybench, "--features", vectors, "--codecs", "Flat;PCAW24,L2norm,Flat")
    assert "training vectors" in error and "10" in error


def test_a_missing_truth_is_said(vectors, raybench):
    (vectors / "val_groundtruth_matches.csv").unlink()
    (error,) = checked(raybench, "--features", vectors)
    assert "--ground-truth" in error


def test_equal_images_are_ordered_by_name_from_pictures_and_from_their_vectors_alike(copies, raybench, tmp_path):
    picture = next((copies / "val_ref").iterdir())
    for name in ("val_query/Q1.jpg", "val_ref/R1.jpg", "val_ref/R1-x.jpg", "val_ref/a/R9.jpg", "val_ref/b/R0.jpg"):
        (tmp_path / "disc" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, tmp_path / "disc" / name)
    truth = tmp_path / "disc/val_groundtruth_matches.csv"
    truth.write_text("Q1,R0\n")
    given = ("--k", "1", "--codecs", "Flat", *INLINE)
    pictures = ("--data", tmp_path / "disc", "--descriptor", "thumbnail", "--export-descriptors")
    vectors = ("--features", tmp_path / "a/results", "--ground-truth", truth)
    for out, way in (("a", pictures), ("b", vectors), ("c", (*pictures, "--limit", "9"))):
        run(raybench, tmp_path / out, *way, *given)
        assert rows_of(tmp_path / out / "results/predictions.csv")[0]["reference_id"] == "R0"
        assert rows_of(tmp_path / out / "disc_metrics.csv")[0]["uAP"] == "1.0"


def test_exported_descriptors_are_a_submission_and_read_back_as_features(copies, raybench, tmp_path):
    codecs = ("--codecs", "Flat;PCAW16,L2norm,Flat")
    given = ("--data", copies, "--descriptor", "thumbnail", *codecs, "--export-descriptors", *INLINE)
    run(raybench, tmp_path / "a", *given)
    truth = ("--ground-truth", copies / "val_groundtruth_matches.csv")
    run(raybench, tmp_path / "b", "--features", tmp_path / "a/results", *truth, *codecs, *INLINE)
    for name in ("disc_metrics.csv", "tables/disc_variants.csv", "tables/disc_thresholds.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    with h5py.File(tmp_path / "a/results/submission.h5") as file:
        assert (file["query"].shape[0], file["reference"].shape[0]) == (60, 160)
        assert file["query_ids"][0] in (b"Q00000", "Q00000")


def test_thresholds_come_with_intervals_around_them(raybench, tmp_path):
    run(raybench, tmp_path, "--features", SMALL, "--codecs", "Flat", "--score-norm", "none", *INLINE)
    variants = {row["candidates"]: row for row in rows_of(tmp_path / "tables/disc_variants.csv")}
    card = [row for row in rows_of(tmp_path / "tables/disc_thresholds.csv") if row["candidates"] == "knn"]
    assert [row["precision"] for row in card] == ["0.9", "0.95", "0.99"]
    assert [row["threshold"] for row in card] == [variants["knn"][f"threshold_at_p{p}"] for p in (90, 95, 99)]
    assert all(float(row["recall_low"]) <= float(row["recall"]) <= float(row["recall_high"]) for row in card)
    for row in rows_of(tmp_path / "tables/disc_intervals.csv"):
        assert float(row["uAP_low"]) < float(row["uAP"]) < float(row["uAP_high"])


def test_a_feature_file_of_the_sscd_tools_has_all_three_sets(raybench, tmp_path):
    """As `disc_eval` leaves it: embeddings with split and number of each image, in any order."""
    parts = {split: np.load(SMALL / f"{name}.npz") for split, name in enumerate(("refs", "queries", "train"))}
    numbers = np.concatenate([[int(name[1:]) for name in part["names"]] for part in parts.values()])
    splits = np.concatenate([np.full(len(part["names"]), split) for split, part in parts.items()])
    order = np.random.default_rng(0).permutation(len(numbers))
    tensors = {
        "embeddings": np.concatenate([part["embeddings"] for part in parts.values()])[order],
        "split": splits[order],
        "image_num": numbers[order],
        "instance_id": order,
    }
    torch.save({key: torch.tensor(value) for key, value in tensors.items()}, tmp_path / "predictions.pt")
    truth = ("--ground-truth", SMALL / "val_groundtruth_matches.csv")
    run(raybench, tmp_path / "a", "--features", tmp_path / "predictions.pt", *truth, *INLINE)
    run(raybench, tmp_path / "b", "--features", SMALL, *INLINE)
    assert (tmp_path / "a/disc_metrics.csv").read_bytes() == (tmp_path / "b/disc_metrics.csv").read_bytes()


def test_a_runs_own_results_folder_reads_back_to_its_first_row(raybench, tmp_path):
    run(raybench, tmp_path / "a", "--features", SMALL, "--codecs", "Flat", "--score-norm", "none", *INLINE)
    truth = ("--ground-truth", SMALL / "val_groundtruth_matches.csv")
    run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", *truth, *INLINE)
    first, again = (rows_of(tmp_path / name / "disc_metrics.csv")[0] for name in "ab")
    assert list(again.values())[2:] == list(first.values())[2:]


@pytest.mark.slow
def test_images_and_results_may_live_in_object_storage(copies, raybench, s3, tmp_path):
    bucket = s3.bucket("disc")
    data = s3.upload(copies, f"{bucket}/data")
    given = ("--descriptor", "thumbnail", "--codecs", "Flat;PCA16,Flat", *INLINE)
    run(raybench, tmp_path / "local", "--data", copies, *given)
    run(raybench, f"{bucket}/out", "--data", data, *given)
    assert storage.read(f"{bucket}/out/disc_metrics.csv") == (tmp_path / "local/disc_metrics.csv").read_bytes()
    name = "results/predictions.csv"
    assert storage.read(f"{bucket}/out/{name}") == (tmp_path / "local" / name).read_bytes()
