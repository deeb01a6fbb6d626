"""Revisited Oxford and Paris through the command line: golden figures, images with crops, codecs, and wrong input."""

import csv
import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from archives import files_of, pack_tar
from conftest import GOLDEN, only_line, spoil
from PIL import Image

from raybench.benchmarks.cases import stored_cases
from raybench.descriptors.thumbnail import Thumbnail
from raybench.runs.finished import finished_manifest, read_tables
from raybench.runs.samples import read_samples
from raybench.table import figure_cells

CASE = GOLDEN / "revisited"
DATA = CASE / "data"
SAID = json.loads((CASE / "expected.json").read_text())
FIGURES = ("map", "mp_at_1", "mp_at_5", "mp_at_10")
INLINE = ("--ray", "off", "--progress", "none")


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def run(raybench, out, *given):
    said = raybench("run", "revisited", "--out", out, *given)
    assert said.code == 0, said.err
    return said


def copied(tmp_path, *names):
    """Some of the golden folders, to be spoilt."""
    for name in names:
        shutil.copytree(DATA / name, tmp_path / "data" / name)
    return tmp_path / "data"


@pytest.mark.parametrize("executor", ["inline", pytest.param("ray", marks=pytest.mark.ray)])
def test_golden_figures_of_every_row_and_query(executor, raybench, request, tmp_path):
    if executor == "ray":
        request.getfixturevalue("local_ray")
    given = INLINE if executor == "inline" else ("--progress", "none", "--device", "cpu", "--cpus", "2")
    said = run(raybench, tmp_path, "--features", DATA, *given)
    rows = rows_of(tmp_path / "revisited.csv")
    assert list(rows[0]) == ["set", "setup", "queries", *FIGURES]
    expected = {(name, setup): figures for name, of in SAID["expected"].items() for setup, figures in of.items()}
    assert {(row["set"], row["setup"]) for row in rows} == set(expected)
    names = list(dict.fromkeys(row["set"] for row in rows))
    assert names == ["roxford5k", "roxford5k+r1m", "rparis6k", "rparis6k+r1m", "ties"]
    for row in rows:
        figures = expected[row["set"], row["setup"]]
        assert int(row["queries"]) == figures["queries"]
        assert [float(row[name]) for name in FIGURES] == pytest.approx([figures[name] for name in FIGURES], abs=1e-9)
    assert_golden_queries(tmp_path)
    assert "not of length 1" in said.out and "rparis6k/references" in said.out and "roxford5k" not in said.err


def assert_golden_queries(out):
    table = pq.read_table(out / "tables/per_query.parquet")
    columns = ["set", "setup", "query", "positives", "junk", "ap", "p_at_1", "p_at_5", "p_at_10"]
    assert table.column_names == columns
    rows = {(row["set"], row["setup"], row["query"]): row for row in table.to_pylist()}
    for name, setups in SAID["per_query"].items():
        for setup, queries in setups.items():
            for query, values in queries.items():
                row = rows[name, setup, query]
                found = [row[column] for column in columns[-4:]]
                assert found == pytest.approx(values or [np.nan] * 4, abs=1e-9, nan_ok=True)
                assert (row["positives"] == 0) == (values is None)


def test_the_shard_size_changes_no_byte(raybench, tmp_path):
    for size in ("1000", "90", "7"):
        run(raybench, tmp_path / size, "--features", DATA, "--shard-size", size, *INLINE)
    for name in ("revisited.csv", "tables/ties.csv", "tables/per_query.parquet", "samples/roxford5k+r1m_Flat.npz"):
        assert len({(tmp_path / size / name).read_bytes() for size in ("1000", "90", "7")}) == 1, name


def test_ties_are_between_the_published_extremes(raybench, tmp_path):
    run(raybench, tmp_path, "--features", DATA, "--set", "ties", *INLINE)
    rows = {row["row"]: row for row in rows_of(tmp_path / "tables/ties.csv") if row["figure"] == "map"}
    for setup, ends in SAID["ties_other_orders"].items():
        row = rows[f"ties | {setup}"]
        assert float(row["worst"]) == pytest.approx(ends["positives last"], abs=1e-9)
        assert float(row["best"]) == pytest.approx(ends["positives first"], abs=1e-9)


def test_a_set_whose_vectors_are_shorter_than_the_distractors_is_said(raybench, tmp_path):
    said = run(raybench, tmp_path, "--features", DATA, "--set", "ties", *INLINE)
    assert "WARNING: ties has vectors of dimension 8, revisitop1m of 16: no rows ties+r1m." in said.out


def test_vectors_may_be_more_than_are_listed_and_have_a_suffix(raybench, tmp_path):
    data = copied(tmp_path, "rparis6k")
    file = data / "rparis6k/references.npz"
    arrays = np.load(file)
    names = [*(f"{name}.jpg" for name in arrays["image_names"]), "another.jpg", "aaa"]
    vectors = np.concatenate([arrays["vectors"], np.full((2, 16), 9, np.float32)])
    order = np.random.default_rng(1).permutation(len(names))
    np.savez(file, image_names=np.array(names)[order], vectors=vectors[order])
    said = run(raybench, tmp_path / "out", "--features", data, *INLINE)
    assert "UNLISTED: 2 vectors of rparis6k/references are of images that are not in its list; left out." in said.out
    for row in rows_of(tmp_path / "out/revisited.csv"):
        assert float(row["map"]) == pytest.approx(SAID["expected"]["rparis6k"][row["setup"]]["map"], abs=1e-9)


def test_samples_of_each_query_once_give_the_main_table(raybench, tmp_path):
    run(raybench, tmp_path, "--features", DATA, "--bootstrap", "20", *INLINE)
    manifest = finished_manifest(str(tmp_path))
    stored = read_samples(str(tmp_path), manifest)
    found = {}
    for sample in stored.samples:
        found.update(zip(sample.figures, sample.draw(np.ones(len(sample.units), np.int64)), strict=True))
    cells = figure_cells(read_tables(str(tmp_path), manifest)[0], ("set", "setup"), set(FIGURES))
    assert {(one.row, one.figure): value for one, value in found.items()} == {
        (cell.row, cell.figure): pytest.approx(cell.value, rel=1e-14) for cell in cells
    }
    assert len(rows_of(tmp_path / "tables/intervals.csv")) == len(cells)


def test_runs_are_compared_query_by_query_and_other_truth_is_refused(raybench, tmp_path):
    data = copied(tmp_path, "roxford5k")
    run(raybench, tmp_path / "a", "--features", data, *INLINE)
    file = data / "roxford5k/references.npz"
    arrays = np.load(file)
    changed = np.round(arrays["vectors"], 1)
    np.savez(file, image_names=arrays["image_names"], vectors=changed)
    run(raybench, tmp_path / "b", "--features", data, *INLINE)
    said = raybench("compare", tmp_path / "a", tmp_path / "b", "--draws", "50", "--format", "csv")
    assert said.code == 0, said.err
    rows = list(csv.DictReader(said.out.splitlines()))
    assert len(rows) == 2 * 3 * 4 and {row["row"] for row in rows} >= {"roxford5k | easy"}
    truth = json.loads((data / "roxford5k/gnd_roxford5k.json").read_text())
    truth["gnd"][3]["easy"] = truth["gnd"][3]["easy"][1:]
    (data / "roxford5k/gnd_roxford5k.json").write_text(json.dumps(truth))
    run(raybench, tmp_path / "c", "--features", data, *INLINE)
    only_line(raybench("compare", tmp_path / "a", tmp_path / "c"), "roxford5k/truth has the digest")


def test_of_several_codecs_the_first_is_in_the_main_table_and_all_beside_it(raybench, tmp_path):
    given = ("--features", DATA, "--set", "rparis6k", "--codecs", "L2norm,Flat;Flat")
    said = run(raybench, tmp_path, *given, *INLINE)
    main, beside = rows_of(tmp_path / "revisited.csv"), rows_of(tmp_path / "tables/by_codec.csv")
    assert [row.pop("codec") for row in beside] == ["L2norm,Flat"] * 6 + ["Flat"] * 6
    assert beside[:6] == main and main[0]["map"] != beside[6]["map"]
    expected = SAID["expected"]["rparis6k+r1m"]["hard"]["map"]
    assert float(beside[-1]["map"]) == pytest.approx(expected, abs=1e-9)
    assert "By codec L2norm,Flat, the first of --codecs; tables/by_codec.csv has all." in said.out


def test_a_codec_that_fails_leaves_empty_rows(raybench, tmp_path):
    data = copied(tmp_path, "rparis6k")
    np.savez(data / "training.npz", image_names=np.array(["a", "b"] * 20), vectors=np.ones((40, 16), np.float32))
    given = ("--features", data, "--codecs", "PCAW16,L2norm,Flat;Flat")
    assert raybench("run", "revisited", "--out", tmp_path / "x", *given, *INLINE).code == 2  # names come twice
    names = np.array([f"t{number}" for number in range(40)])
    np.savez(data / "training.npz", image_names=names, vectors=np.ones((40, 16), np.float32))
    said = run(raybench, tmp_path / "out", *given, *INLINE)
    assert [row["map"] for row in rows_of(tmp_path / "out/revisited.csv")] == [""] * 3
    assert float(rows_of(tmp_path / "out/tables/by_codec.csv")[-1]["map"]) > 0
    assert "WARNING: codec 'PCAW16,L2norm,Flat'" in said.out


def test_a_setup_without_positives_has_no_figures_and_a_warning(raybench, tmp_path):
    data = copied(tmp_path, "rparis6k")
    file = data / "rparis6k/gnd_rparis6k.json"
    truth = json.loads(file.read_text())
    for entry in truth["gnd"]:
        entry["easy"] = []
    file.write_text(json.dumps(truth))
    said = run(raybench, tmp_path / "out", "--features", data, *INLINE)
    easy = rows_of(tmp_path / "out/revisited.csv")[0]
    assert list(easy.values()) == ["rparis6k", "easy", "0", "", "", "", ""]
    assert "WARNING: rparis6k, easy: no query has a positive" in said.out


def test_a_limited_run_says_so(raybench, tmp_path):
    said = run(raybench, tmp_path, "--features", DATA, "--limit", "5", *INLINE)
    assert "LIMITED: the first 5 queries" in said.out
    assert {int(row["queries"]) for row in rows_of(tmp_path / "revisited.csv")} <= set(range(1, 6))


# From images


def own_figures(root, name):
    """Vectors of the demo's images by their own arithmetic, in a tree that `--features` takes."""
    truth = json.loads((root / name / f"gnd_{name}.json").read_text())
    thumbnail = Thumbnail()

    def vector(stem, box=None):
        image = Image.open(root / name / "jpg" / f"{stem}.jpg").convert("RGB")
        image = image if box is None else image.crop(tuple(box))
        (row,) = thumbnail.describe(np.stack([thumbnail.prepare(np.asarray(image))]))
        return (row.astype(np.float64) / np.linalg.norm(row.astype(np.float64))).astype(np.float32)

    boxes = [entry["bbx"] for entry in truth["gnd"]]
    queries = [vector(stem, box) for stem, box in zip(truth["qimlist"], boxes, strict=True)]
    return {"queries": (truth["qimlist"], queries), "references": (truth["imlist"], map(vector, truth["imlist"]))}


def test_from_images_queries_are_cropped_and_descriptors_normalised(landmarks, raybench, tmp_path):
    run(raybench, tmp_path / "images", "--data", landmarks, "--descriptor", "thumbnail", *INLINE)
    folder = tmp_path / "own/landmarks"
    folder.mkdir(parents=True)
    shutil.copy(landmarks / "landmarks/gnd_landmarks.json", folder)
    for role, (names, vectors) in own_figures(landmarks, "landmarks").items():
        np.savez(folder / f"{role}.npz", image_names=np.array(names), vectors=np.stack(list(vectors)))
    run(raybench, tmp_path / "vectors", "--features", tmp_path / "own", *INLINE)
    from_images = [row for row in rows_of(tmp_path / "images/revisited.csv") if row["set"] == "landmarks"]
    assert from_images == rows_of(tmp_path / "vectors/revisited.csv")
    assert len(rows_of(tmp_path / "images/revisited.csv")) == 6
    assert 0 < float(from_images[2]["map"]) < float(from_images[1]["map"]) < 1
    cases = stored_cases(str(tmp_path / "images"), {}, ())
    assert len(cases) == 6 and not any("AP 100.00" in case.caption for case in cases)
    assert {case.kind for case in cases} == {"worst"}
    assert all(case.panels[0].name == case.unit and all(panel.jpeg for panel in case.panels) for case in cases)
    assert not (tmp_path / "vectors/pictures").exists()


def test_queries_that_miss_nothing_are_no_mistakes_and_junk_is_called_junk(raybench, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3)).astype(np.uint8)
    images = {"same": noise[0], "opposite": 255 - noise[0], "a": noise[1], "b": noise[2], "query": noise[0]}
    for name, positive, junk in (("all_found", 0, []), ("mine", 1, [0])):
        folder = tmp_path / "data" / name
        (folder / "jpg").mkdir(parents=True)
        for stem, image in images.items():
            Image.fromarray(image).save(folder / "jpg" / f"{stem}.jpg")
        gnd = [{"bbx": [0, 0, 63, 63], "easy": [positive], "hard": [], "junk": junk}]
        truth = {"imlist": list(images)[:-1], "qimlist": ["query"], "gnd": gnd}
        (folder / f"gnd_{name}.json").write_text(json.dumps(truth))
    run(raybench, tmp_path / "out", "--data", tmp_path / "data", "--descriptor", "thumbnail", *INLINE)
    (case,) = stored_cases(str(tmp_path / "out"), {}, ())
    assert [(panel.label, panel.name, panel.right) for panel in case.panels[:2]] == [
        ("query", "query", None), ("first, junk", "same", None),
    ]  # fmt: skip
    assert case.row == "mine | medium" and case.panels[2].name == "opposite"
    assert sorted(path.name for path in (tmp_path / "out/pictures").iterdir()) == ["cases.json", "worst_mine.jpg"]


def test_exported_descriptors_read_back_to_the_same_table(landmarks, raybench, tmp_path):
    given = ("--data", landmarks, "--descriptor", "thumbnail", "--export-descriptors", "true")
    run(raybench, tmp_path / "a", *given, *INLINE)
    said = run(raybench, tmp_path / "b", "--features", tmp_path / "a/results", *INLINE)
    assert (tmp_path / "a/revisited.csv").read_bytes() == (tmp_path / "b/revisited.csv").read_bytes()
    assert "not of length 1" not in said.out


def test_data_on_object_storage_give_the_same_table(landmarks, s3, raybench, tmp_path):
    root = s3.upload(landmarks, f"{s3.bucket('revisited')}/data")
    for out, data in (("local", landmarks), ("remote", root)):
        run(raybench, tmp_path / out, "--data", data, "--descriptor", "thumbnail", *INLINE)
    assert (tmp_path / "local/revisited.csv").read_bytes() == (tmp_path / "remote/revisited.csv").read_bytes()


@pytest.fixture
def archives(landmarks, tmp_path):
    """The demo's set with archives for pictures: one for the set, two in `jpg` for the distractors."""
    data = shutil.copytree(landmarks, tmp_path / "archives", ignore=shutil.ignore_patterns("jpg"))
    pack_tar(landmarks / "landmarks/jpg", data / "landmarks/jpg.tar", above="jpg/")
    loose, packed = landmarks / "revisitop1m/jpg", data / "revisitop1m/jpg"
    packed.mkdir()
    for number in range(2):
        pack_tar(loose, packed / f"revisitop1m.{number + 1}.tar", names=files_of(loose)[number::2])
    return data


def test_archives_in_the_place_of_jpg_give_the_same_tables(landmarks, archives, raybench, tmp_path):
    for out, data in (("a", landmarks), ("b", archives)):
        run(raybench, tmp_path / out, "--data", data, "--descriptor", "thumbnail", *INLINE)
    for name in ("revisited.csv", "tables/per_query.parquet", "pictures/worst_landmarks.jpg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    shutil.rmtree(archives)
    said = raybench("rescore", tmp_path / "b", "--out", tmp_path / "c", "--codecs", "Flat", "--ray", "off")
    assert said.code == 0, said.err
    assert (tmp_path / "c/revisited.csv").read_bytes() == (tmp_path / "a/revisited.csv").read_bytes()


def test_a_folder_around_all_distractors_is_found_in_an_archive(landmarks, raybench, tmp_path):
    data = shutil.copytree(landmarks, tmp_path / "data")
    loose = data / "revisitop1m/jpg"
    names = [f"00/{path.name}" for path in sorted((loose / "00").iterdir())]
    for other in set(loose.iterdir()) - {loose / "00"}:
        shutil.rmtree(other)
    (data / "revisitop1m/revisitop1m.txt").write_text("".join(f"{name}\n" for name in names))
    given = ("--data", data, "--descriptor", "thumbnail", *INLINE)
    run(raybench, tmp_path / "a", *given)
    pack_tar(loose, data / "revisitop1m/jpg.tar")
    shutil.rmtree(loose)
    run(raybench, tmp_path / "b", *given)
    assert (tmp_path / "a/revisited.csv").read_bytes() == (tmp_path / "b/revisited.csv").read_bytes()
    assert raybench("compare", tmp_path / "a", tmp_path / "b", "--force").code == 0
    (data / "revisitop1m/revisitop1m.txt").write_text(f"{names[0]}\n00/none.jpg\n")
    only_line(check(raybench, "--data", data, "--descriptor", "thumbnail"), "no 00/none.jpg, which")


def test_pictures_that_archives_lack_and_broken_archives_are_said_together(archives, raybench, tmp_path):
    (archives / "landmarks/jpg.tar").write_bytes(b"no archive" * 100)
    pack_tar(archives, archives / "revisitop1m/jpg/revisitop1m.1.tar", names=["revisitop1m/revisitop1m.txt"])
    said = raybench(
        "run", "revisited", "--out", tmp_path / "a", "--data", archives, "--descriptor", "thumbnail", *INLINE
    )
    assert said.code == 2 and "landmarks/jpg.tar" in said.errors[0]
    assert any("revisitop1m/jpg: no 0" in line and "revisitop1m.txt lists" in line for line in said.errors)


def test_archives_that_are_packed_whole_are_refused_with_what_to_do(archives, raybench, tmp_path):
    for path in [archives / "landmarks/jpg.tar", *(archives / "revisitop1m/jpg").iterdir()]:
        path.rename(path.with_name(f"{path.name}.gz"))
    said = raybench(
        "run", "revisited", "--out", tmp_path / "a", "--data", archives, "--descriptor", "thumbnail", *INLINE
    )
    assert said.code == 2 and sum("unpack it" in line for line in said.errors) == 2


@pytest.fixture
def pictures(landmarks, tmp_path):
    """The demo's set, to be spoilt."""
    return shutil.copytree(landmarks, tmp_path / "pictures")


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_files_that_are_cut_short_are_read_counted_and_said(pictures, raybench, tmp_path):
    whole = run(raybench, tmp_path / "whole", "--data", pictures, "--descriptor", "thumbnail", *INLINE)
    cut(pictures / "landmarks/jpg/place_000003.jpg")
    cut(pictures / "landmarks/jpg/view_000005.jpg")
    cut(pictures / "revisitop1m/jpg/02/0000002.jpg")
    said = run(raybench, tmp_path / "cut", "--data", pictures, "--descriptor", "thumbnail", *INLINE)
    words = "CUT SHORT: 3 image files end early and were read as far as they go: landmarks/queries/place_000003"
    assert words in said.out and "CUT SHORT" not in whole.out
    assert raybench("check", "revisited", "--data", pictures, "--descriptor", "thumbnail").code == 0


def test_images_that_can_not_be_read_are_an_error_or_left_out_with_their_labels(pictures, raybench, tmp_path):
    for name in ("place_000003", "view_000005"):
        (pictures / f"landmarks/jpg/{name}.jpg").write_bytes(b"no picture")
    given = ("--data", pictures, "--descriptor", "thumbnail", *INLINE)
    said = raybench("run", "revisited", "--out", tmp_path / "a", *given)
    assert said.code == 2 and len(said.errors) == 2 and "view_000005.jpg" in said.errors[1]
    said = run(raybench, tmp_path / "b", *given, "--on-bad-input", "skip")
    assert "SKIPPED: 2 images could not be read" in said.out
    assert [row["queries"] for row in rows_of(tmp_path / "b/revisited.csv")] == ["7"] * 6
    assert "landmarks/queries: place_000003: can't be read" in finished_manifest(str(tmp_path / "b")).skipped


def test_other_codecs_of_a_finished_run_need_no_extraction(landmarks, raybench, tmp_path):
    run(raybench, tmp_path / "a", "--data", landmarks, "--descriptor", "thumbnail", *INLINE)
    said = raybench("rescore", tmp_path / "a", "--out", tmp_path / "b", "--codecs", "L2norm,Flat", "--ray", "off")
    assert said.code == 0, said.err
    computed = {one["name"]: one["computed"] for one in finished_manifest(str(tmp_path / "b")).stages}
    assert computed["describe-images"] == 0
    assert raybench("verify", tmp_path / "a", "--share", "0.2").code == 0


def test_a_finished_run_is_scored_again_when_its_images_are_gone(pictures, raybench, tmp_path):
    run(raybench, tmp_path / "a", "--data", pictures, "--descriptor", "thumbnail", *INLINE)
    shutil.rmtree(pictures)
    given = ("--out", tmp_path / "b", "--codecs", "L2norm,Flat;Flat", "--ray", "off")
    said = raybench("rescore", tmp_path / "a", *given)
    assert said.code == 0, said.err
    by_codec = rows_of(tmp_path / "b/tables/by_codec.csv")
    assert [row for row in by_codec if row.pop("codec") == "Flat"] == rows_of(tmp_path / "a/revisited.csv")
    computed = {one["name"]: one["computed"] for one in finished_manifest(str(tmp_path / "b")).stages}
    assert computed["describe-images"] == computed["image-sizes"] == 0
    only_line(raybench("rescore", tmp_path / "a", "--out", tmp_path / "c", "--set", "x", "--ray", "off"), "no set")


def test_a_plan_of_a_run_is_made(landmarks, raybench):
    said = raybench(
        "plan", "revisited", "--data", landmarks, "--descriptor", "thumbnail", "--format", "json", "--ray", "off"
    )
    assert said.code == 0, said.err
    assert {"describe-images", "count-standings"} <= {one["name"] for one in json.loads(said.out)["stages"]}


# Wrong input


def check(raybench, *given):
    return raybench("check", "revisited", *given)


def test_all_that_is_wrong_is_said_together(raybench, tmp_path):
    data = copied(tmp_path, "roxford5k", "rparis6k", "ties")
    spoil(data / "roxford5k/gnd_roxford5k.json", lambda text: text.replace('"junk": [23, 51]', '"junk": [23, 999]'))
    arrays = np.load(data / "rparis6k/queries.npz")
    keep = arrays["image_names"] != arrays["image_names"][2]
    np.savez(data / "rparis6k/queries.npz", image_names=arrays["image_names"][keep], vectors=arrays["vectors"][keep])
    (data / "ties/references.npz").unlink()
    said = check(raybench, "--features", data)
    assert said.code == 2 and len(said.errors) == 3
    label, vector, file = said.errors
    assert "junk has 999; expected positions in imlist, 0 to 299" in label
    assert f"no vector of '{arrays['image_names'][2]}', which" in vector
    assert "ties: no references.h5" in file


def test_what_is_wrong_with_a_truth_and_with_its_images_is_said_together(pictures, raybench, tmp_path):
    data = copied(tmp_path, "roxford5k")
    spoil(data / "roxford5k/gnd_roxford5k.json", lambda text: text.replace('"junk": [23, 51]', '"junk": [23, 999]'))
    (data / "roxford5k/queries.npz").unlink()
    label, file = check(raybench, "--features", data).errors
    assert "junk has 999" in label and "no queries.h5" in file
    (pictures / "landmarks/jpg/place_000001.jpg").unlink()
    gnd = json.loads((pictures / "landmarks/gnd_landmarks.json").read_text())
    gnd["gnd"][0]["bbx"], gnd["gnd"][2]["bbx"] = [5, 5, 5, 9], [2.6, 3, 3.4, 9]
    (pictures / "landmarks/gnd_landmarks.json").write_text(json.dumps(gnd))
    box, crop, image = check(raybench, "--data", pictures, "--descriptor", "thumbnail").errors
    assert "gnd[0] ('place_000000'): bbx is [5, 5, 5, 9]" in box and "gnd[2] ('place_000002')" in crop
    assert "no place_000001.jpg" in image


def test_a_vector_that_comes_twice_is_said(raybench, tmp_path):
    data = copied(tmp_path, "ties")
    arrays = np.load(data / "ties/queries.npz")
    names = [*arrays["image_names"], f"{arrays['image_names'][0]}.jpg"]
    np.savez(data / "ties/queries.npz", image_names=names, vectors=np.concatenate([arrays["vectors"]] * 2)[:13])
    only_line(check(raybench, "--features", data), f"name '{arrays['image_names'][0]}'", "too; names must differ")


def test_vectors_of_two_dimensions_are_said(raybench, tmp_path):
    data = copied(tmp_path, "ties")
    arrays = np.load(data / "ties/queries.npz")
    np.savez(data / "ties/queries.npz", image_names=arrays["image_names"], vectors=arrays["vectors"][:, :5])
    only_line(check(raybench, "--features", data), "dimension 8", "has 5")


def test_training_vectors_of_another_dimension_are_said_where_a_codec_trains(raybench, tmp_path):
    data = copied(tmp_path, "ties")
    names = np.array([f"t{number}" for number in range(40)])
    vectors = np.random.default_rng(1).standard_normal((40, 5)).astype(np.float32)
    np.savez(data / "training.npz", image_names=names, vectors=vectors)
    only_line(check(raybench, "--features", data, "--codecs", "Flat;PCA4,Flat"), "training.npz: dimension 5", "has 8")
    assert check(raybench, "--features", data).code == 0


def test_a_pickled_truth_is_not_read_and_the_line_says_how_to_convert_it(raybench, tmp_path):
    data = copied(tmp_path, "ties")
    file = data / "ties/gnd_ties.json"
    truth = json.loads(file.read_text())
    file.with_suffix(".pkl").write_bytes(pickle.dumps(truth))
    file.unlink()
    said = check(raybench, "--features", data)
    only_line(said, "gnd_ties.pkl and no gnd_ties.json", "python -c")
    program = said.errors[0].partition('python -c "')[2].rstrip('"')
    subprocess.run([sys.executable, "-c", program], cwd=data / "ties", check=True)
    assert json.loads(file.read_text()) == truth
    file.with_suffix(".pkl").write_bytes(pickle.dumps(print))
    assert subprocess.run([sys.executable, "-c", program], cwd=data / "ties", capture_output=True).returncode


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--features", "DATA", "--set", "roxford"), "roxford: no gnd_roxford.json"),
        (("--features", "DATA/ties"), "no set; expected folders SET with gnd_SET.json"),
        (("--features", "DATA/nowhere"), "does not exist"),
        (("--data", "DATA"), "give one of --descriptor, --features"),
        (("--descriptor", "thumbnail"), "no --data"),
        (("--data", "DATA", "--features", "DATA"), "--data would do nothing with --features"),
        (("--features", "DATA", "--exif-rotate", "true"), "--exif-rotate"),
        (("--features", "DATA", "--codecs", "PCA4,Flat"), "needs a training set"),
        (("--features", "DATA", "--codecs", "IVF4,Flat"), "can't stand before Flat"),
    ],
)
def test_wrong_options_are_one_line(given, words, raybench):
    only_line(check(raybench, *(word.replace("DATA", str(DATA)) for word in given)), words)


def test_missing_images_and_boxes_without_pixels_are_said(pictures, raybench):
    (pictures / "landmarks/jpg/place_000001.jpg").unlink()
    (pictures / "revisitop1m/jpg/00/0000000.jpg").unlink()
    file = pictures / "landmarks/gnd_landmarks.json"
    truth = json.loads(file.read_text())
    truth["gnd"][0]["bbx"], truth["gnd"][2]["bbx"] = [2.6, 3, 3.4, 9], [0, 0, 1e7, 1e7]
    truth["gnd"][4]["bbx"] = [1.6, 3, 2.4, 9]
    file.write_text(json.dumps(truth))
    said = check(raybench, "--data", pictures, "--descriptor", "thumbnail")
    assert said.code == 2
    holds, also, large, image, distractor = said.errors
    assert "gnd[0] ('place_000000')" in holds and "holds no pixel" in holds
    assert "gnd[4]" in also and "holds no pixel" in also
    assert "gnd[2]" in large and "--max-image-pixels" in large
    assert "no place_000001.jpg" in image and "no 00/0000000.jpg" in distractor


def test_distractors_that_are_listed_twice_or_have_no_vector_are_said(raybench, tmp_path):
    data = copied(tmp_path, "roxford5k", "revisitop1m")
    spoil(data / "revisitop1m/revisitop1m.txt", lambda text: text + "19/9999999.jpg\n")
    only_line(check(raybench, "--features", data), "no vector of '19/9999999'", "revisitop1m.txt lists")
    spoil(data / "revisitop1m/revisitop1m.txt", lambda text: text.replace("19/9999999", "00/0000000"))
    only_line(check(raybench, "--features", data), "'00/0000000.jpg' comes twice")


def test_a_distractor_that_is_listed_with_jpg_and_without_is_said(raybench, tmp_path):
    data = copied(tmp_path, "roxford5k", "revisitop1m")
    spoil(data / "revisitop1m/revisitop1m.txt", lambda text: text + "00/0000000\n")
    only_line(check(raybench, "--features", data), "revisitop1m.txt: '00/0000000' comes twice", "with .jpg and without")
