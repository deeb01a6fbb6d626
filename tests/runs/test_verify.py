"""`raybench verify`: shards of a finished run, computed again by other cuts, are the same to the byte, or it says."""

import json
import shutil

import numpy as np
import pytest
from conftest import GOLDEN, only_line

from raybench.formats import shardfile

INLINE = ("--ray", "off", "--progress", "none")
HBENCH = GOLDEN / "hbench_classification/data"


def finished(folder, *given):
    from raybench.cli.commands import exit_code

    assert exit_code(["run", *map(str, given), "--out", str(folder), *INLINE]) == 0
    return folder


@pytest.fixture(scope="module")
def patches(tmp_path_factory):
    given = ("--features", HBENCH / "descriptors/block4", "--benchmarks", HBENCH / "benchmarks", "--shard-size", 2)
    return finished(tmp_path_factory.mktemp("verified") / "run", "hbench-classification", *given)


@pytest.fixture
def run(patches, tmp_path):
    """A copy of the run, to be changed."""
    return shutil.copytree(patches, tmp_path / "run")


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stage_folder(run, name):
    stages = json.loads((run / "manifest.json").read_text())["stages"]
    return run / "stages" / next(stage["digest"] for stage in stages if stage["name"] == name)


def test_a_run_is_unchanged_and_stays_untouched(run, raybench):
    before = content(run)
    said = raybench("verify", run, "--share", 1)
    assert said.code == 0, said.err
    assert said.out.startswith("unchanged: ")
    assert content(run) == before


def test_a_value_that_was_flipped_in_a_stored_shard_is_found(run, raybench):
    shard = stage_folder(run, "read-vectors") / "000001.shard"
    label = f"{shard.parent.name}/{shard.name}"
    arrays = {name: array.copy() for name, array in shardfile.decode(shard.read_bytes(), label).items()}
    arrays["vectors"][3, 0] += 0.5
    shard.write_bytes(shardfile.encode(arrays, label))
    said = raybench("verify", run, "--share", 1)
    assert said.code == 5
    lines = [line for line in said.out.splitlines() if line.startswith("differs: read-vectors: shard 1 (")]
    assert len(lines) == 1
    assert "vectors differs in 1 of 480 values, the first in row 3, by up to 0.5" in lines[0]
    assert said.out.splitlines()[-1].startswith("different: ")


def test_a_shard_of_each_stage_is_looked_at_however_small_the_share(run, raybench):
    said = raybench("verify", run, "--share", 0.001)
    stages = json.loads((run / "manifest.json").read_text())["stages"]
    assert f"unchanged: {len(stages)} of " in said.out


def test_the_seed_chooses_the_shards(run, raybench):
    for shard in stage_folder(run, "read-vectors").iterdir():
        if shard.name != "000000.shard":
            shard.write_bytes(shard.read_bytes()[:-64])
    found = {raybench("verify", run, "--seed", seed).code for seed in range(8)}
    assert 5 in found


def test_a_table_that_was_edited_is_found(run, raybench):
    table = run / "hbench_classification.csv"
    table.write_text(table.read_text().replace("0.", "0.1", 1))
    said = raybench("verify", run)
    assert said.code == 5
    assert "differs: hbench_classification.csv" in said.out


def test_an_output_file_that_was_edited_is_found(run, raybench):
    (file,) = sorted(run.glob("results/classification/*/*.results"))[:1]
    file.write_text(file.read_text() + "1,1\n")
    said = raybench("verify", run, "--share", 1)
    assert said.code == 5
    assert f"file {file.relative_to(run)} differs" in said.out


def test_inputs_that_changed_are_said(tmp_path, raybench):
    vectors = shutil.copytree(HBENCH / "descriptors/block4", tmp_path / "vectors")
    given = ("--features", vectors, "--benchmarks", HBENCH / "benchmarks")
    run = finished(tmp_path / "run", "hbench-classification", *given)
    (file,) = sorted(vectors.rglob("*.csv"))[:1]
    file.write_text(file.read_text().replace("1", "2", 1))
    only_line(raybench("verify", run), run, "inputs changed since the run (patches)", "nothing to verify against")


def test_stages_that_were_removed_are_said(run, raybench):
    shutil.rmtree(run / "stages")
    only_line(raybench("verify", run), run, "none of its stages is in the store", "run it again and keep them")


def test_a_run_of_which_nothing_can_be_verified_is_not_called_unchanged(run, raybench):
    manifest = json.loads((run / "manifest.json").read_text())
    for stage in manifest["stages"]:
        if (folder := run / "stages" / stage["digest"]).exists():
            shutil.rmtree(folder)
    (folder / "000000.shard").parent.mkdir()
    (folder / "000000.shard").write_bytes(b"of another cut")
    shutil.rmtree(run / "results")
    shutil.rmtree(run / "curves")
    only_line(raybench("verify", run), run, "nothing could be verified (read-vectors: ")


def test_what_is_gone_of_the_stages_is_not_verified_and_that_is_said(run, raybench):
    shutil.rmtree(stage_folder(run, "pairs"))
    said = raybench("verify", run)
    assert said.code == 0
    assert "not verified: pairs: " in said.err
    assert "not verified: pairs-fold: shard " in said.err


@pytest.mark.seconds
def test_a_search_by_smaller_tiles_is_the_same(copies, raybench, tmp_path):
    given = ("disc2021", "--data", copies / "disc", "--descriptor", "thumbnail", "--codecs", "Flat")
    said = raybench("verify", finished(tmp_path / "run", *given), "--share", 1)
    assert said.code == 0, said.out
    assert said.out.startswith("unchanged: ")


def test_closer_ones_counted_by_fewer_references_are_the_same(raybench, tmp_path):
    data = GOLDEN / "hpatches_retrieval/data"
    given = ("hpatches-retrieval", "--features", data / "descriptors/grey16", "--tasks", data / "tasks")
    said = raybench("verify", finished(tmp_path / "run", *given), "--share", 1)
    assert said.code == 0, said.out


def test_a_codec_that_could_not_be_trained_fails_again_and_leaves_the_rest_verified(raybench, tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    rng = np.random.default_rng(0)
    for role, letter, count in (("queries", "Q", 6), ("references", "R", 6), ("training", "T", 5)):
        names = np.array([f"{letter}{number}" for number in range(count)])
        vectors = rng.normal(size=(count, 16)).astype(np.float32)
        np.savez(given / f"{role}.npz", vectors=vectors, image_names=names)
    (given / "val_groundtruth_matches.csv").write_text("query_id,reference_id\nQ0,R0\nQ1,R1\n")
    run = finished(tmp_path / "run", "disc2021", "--features", given)
    assert "its rows are empty" in (run / "manifest.json").read_text()
    said = raybench("verify", run)
    assert said.out.startswith("unchanged: ") and not said.out.endswith(" 0 tables\n")
    assert "not verified" not in said.err
